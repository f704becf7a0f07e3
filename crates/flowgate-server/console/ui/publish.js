// The dialog that publishes a draft: its difference once more, a note, one call with If-Match.

import { call, Refused } from "../state/api.js";
import { cell, useCell } from "../state/cell.js";
import { noteFailure } from "../state/link.js";
import { stats } from "../state/stats.js";
import { useState } from "../vendor/hooks.js";
import { Mistake, Notice } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Difference } from "./difference.js";
import { html } from "./html.js";
import { w, wx } from "./words.js";

const PATIENCE_MS = 15_000;
export const MAX_NOTE = 200;

/** Headers carry ASCII; the server decodes the note as it decodes a part of a URL. */
export const noteHeader = (note) => (note.trim() ? { "X-Flowgate-Note": encodeURIComponent(note.trim()) } : {});

/** The settings of the published text that the server reads at its next start: `{ names, started }`, or null. */
const waiting = cell(null);

/** Keeps what an answer to a publication says of settings, and returns their names. */
export function noteRestart(answer) {
  const names = answer.restart_needed ?? [];
  waiting.set(names.length ? { names, started: stats.get()?.started } : null);
  return names;
}

/** Names the settings that wait for a restart, until the server has started anew. */
export function RestartNotice() {
  const found = useCell(waiting);
  const started = useCell(stats)?.started;
  if (!found || found.started !== started) return null;
  const names = found.names.map((name, i) => html`${i ? w("listAnd") : ""}<code lang="en">${name}</code>`);
  return html`<${Notice} title=${wx("publish.waits", { names, n: found.names.length })}>${w("publish.waits.more", { n: found.names.length })}</${Notice}>`;
}

export function PublishDialog({ text, base, etag, close, done, conflicted }) {
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const send = async () => {
    if (busy) return;
    setBusy(true);
    try {
      const headers = { "If-Match": etag, ...noteHeader(note) };
      const { body } = await call("/v1/rules", { method: "PUT", toml: text, headers, patience: PATIENCE_MS });
      done(body);
    } catch (mistake) {
      if (mistake instanceof Refused && mistake.status === 412) return conflicted();
      noteFailure(mistake);
      setError(mistake);
      setBusy(false);
    }
    return undefined;
  };
  return html`<${Dialog} wide title=${w("publish.title")} close=${close} submit=${send}
    footer=${html`<button type="button" class="b" onClick=${close}>${w("cancel")}</button><button class="b danger" disabled=${busy}>${w("publish.do")}</button>`}>
    <label class="field"><span>${w("publish.note")}</span><input class="in w100 sans" data-first maxlength=${MAX_NOTE} value=${note} onInput=${(event) => setNote(event.target.value)} /></label>
    <div class="dialog-scroll"><${Difference} title=${w("step.difference")} before=${base} after=${text} /></div>
    <p class="label">${w("publish.what")}</p>
    <${Mistake} error=${error} />
  </${Dialog}>`;
}
