// The marks of a chart: published rules, restarts, times without the store.

import { f, w } from "./words.js";

/** Marks with their words, from an answer of /v1/stats/history. An outage without an end lasts until now. */
export function marksOf(history) {
  const { marks } = history;
  return marks.flatMap((mark, i) => {
    if (mark.kind === "rules") return [{ at: mark.at, words: mark.version ? w("mark.published", { version: mark.version }) : w("mark.loaded") }];
    if (mark.kind === "start") return [{ at: mark.at, words: w("mark.restarted") }];
    if (mark.kind === "pause") return [{ at: mark.at, words: w("mark.paused") }];
    if (mark.kind === "resume") return [{ at: mark.at, words: w("mark.resumed") }];
    if (mark.kind !== "away") return [];
    const back = marks.slice(i + 1).find((each) => each.kind === "back");
    return [{ at: mark.at, until: back?.at ?? history.end, words: w("mark.outage", { at: f().clock(mark.at) }) }];
  });
}
