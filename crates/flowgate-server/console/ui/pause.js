// The pause of all rules: shown on every page while it lasts, begun on the page of rules.

import { call } from "../state/api.js";
import { useCell } from "../state/cell.js";
import { noteFailure } from "../state/link.js";
import { stats } from "../state/stats.js";
import { say } from "../state/toast.js";
import { useState } from "../vendor/hooks.js";
import { Mistake, Notice, Segments, useNow, useRights } from "./basics.js";
import { Dialog } from "./dialog.js";
import { html } from "./html.js";
import { f, w } from "./words.js";

/** Nothing denies, and everybody who looks should know. */
export function Paused() {
  const until = useCell(stats)?.paused_until ?? null;
  const now = useNow(until !== null);
  if (!until || until <= now) return null;
  return html`<${Notice} title=${w("pause.title", { at: f().clock(until, true), left: f().span(Math.max(0, Math.ceil(until - now))) })} action=${html`<${EndPause} />`}>${w("pause.more")}</${Notice}>`;
}

export function EndPause() {
  const { write } = useRights();
  const [error, setError] = useState(null);
  const resume = async () => {
    try {
      await call("/v1/pause", { method: "DELETE" });
      say(w("pause.ended"));
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
    }
  };
  return write && html`<button type="button" class="b" onClick=${resume}>${w("pause.end")}</button><${Mistake} error=${error} />`;
}

const LENGTHS = ["10m", "1h", "8h"];

/** The panic button's dialog. */
export function PauseDialog({ close }) {
  const [length, setLength] = useState("10m");
  const [error, setError] = useState(null);
  const begin = async () => {
    try {
      await call("/v1/pause", { json: { for: length } });
      close();
    } catch (mistake) {
      noteFailure(mistake);
      setError(mistake);
    }
  };
  return html`<${Dialog} title=${w("pause.dialog")} close=${close} submit=${begin}
    footer=${html`<button type="button" class="b" onClick=${close}>${w("cancel")}</button><button class="b danger">${w("pause.begin", { length: w(`length.${length}`) })}</button>`}>
    <p>${w("pause.what")}</p>
    <div class="field"><span>${w("ban.for")}</span><${Segments} label=${w("ban.for")} value=${length} pick=${setLength} options=${LENGTHS.map((each) => ({ value: each, label: w(`length.${each}`) }))} /></div>
    <p class="label">${w("same")} <code>flowgate pause --for ${length}</code></p>
    <${Mistake} error=${error} />
  </${Dialog}>`;
}
