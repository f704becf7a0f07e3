// The marks of a chart: published rules, restarts, bans by hand, times without the store.

import { clean, cut } from "../lib/text.js";
import { authorWords } from "./author.js";
import { f, w } from "./words.js";

const MAX_WHOM = 28;

/**
 * Marks with their words, from an answer of /v1/stats/history: `{ at, kind, words, until?, title?, several? }`. `several` is the sentence for
 * more than one of a kind. An outage without an end lasts until now.
 */
export function marksOf(history) {
  return history.marks.flatMap((mark, i) => {
    const { at, kind } = mark;
    if (kind === "rules") return [{ at, kind, words: mark.version ? w("mark.published", { version: mark.version }) : w("mark.loaded") }];
    if (kind === "start") return [{ at, kind, words: w("mark.restarted") }];
    if (kind === "pause") return [{ at, kind, words: w("mark.paused") }];
    if (kind === "resume") return [{ at, kind, words: w("mark.resumed") }];
    if (kind === "ban" || kind === "lift") return [banMark(mark)];
    if (kind !== "away") return [];
    const back = history.marks.slice(i + 1).find((each) => each.kind === "back");
    return [{ at, kind, until: back?.at ?? history.end, words: w("mark.outage", { at: f().clock(at) }) }];
  });
}

function banMark({ at, kind, ban }) {
  const whom = clean(`${ban.field}=${ban.value}`);
  const say = (most) => w(`mark.${kind}`, { whom: cut(whom, most) });
  return { at, kind, words: say(MAX_WHOM), title: `${f().clock(at, true)} ${say(256)} (${authorWords(ban.author)})`, several: `mark.${kind}s` };
}
