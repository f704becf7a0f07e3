// The dialog that publishes a draft: its difference once more, a note, one call with If-Match.

import { call, Refused } from "../state/api.js";
import { useCell } from "../state/cell.js";
import { noteFailure } from "../state/link.js";
import { stats } from "../state/stats.js";
import { useState } from "../vendor/hooks.js";
import { Mistake, Notice } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Difference } from "./difference.js";
import { restartWords } from "./findings.js";
import { html } from "./html.js";
import { gap, w } from "./words.js";

const PATIENCE_MS = 15_000;
export const MAX_NOTE = 200;

/** Headers carry ASCII; the server decodes the note as it decodes a part of a URL. */
export const noteHeader = (note) => (note.trim() ? { "X-Flowgate-Note": encodeURIComponent(note.trim()) } : {});

/** Names the settings of the file that wait for a restart of the server. */
export function RestartNotice() {
  const names = useCell(stats)?.restart_needed ?? [];
  return names.length > 0 && html`<${Notice} title=${restartWords(names)}>${w("publish.waits.more", { n: names.length })}</${Notice}>`;
}

export function PublishDialog({ text, base, etag, restart, close, done, conflicted }) {
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const send = async () => {
    if (busy) return;
    setBusy(true);
    try {
      const headers = { "If-Match": etag, ...noteHeader(note) };
      const { body, etag: sentEtag } = await call("/v1/rules", { method: "PUT", toml: text, headers, patience: PATIENCE_MS });
      done(body, sentEtag);
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
    <p class="label">${w("publish.what")}${restart.length > 0 && html`${gap()}${restartWords(restart)}`}</p>
    <${Mistake} error=${error} />
  </${Dialog}>`;
}
