// Somebody else has changed the file: yours, theirs and the base side by side, and parts to take over.
// There is no "overwrite": every part of theirs is taken over or left out by a click.

import { merge, resolved } from "../lib/merge.js";
import { cleanCode } from "../lib/text.js";
import { useMemo, useState } from "../vendor/hooks.js";
import { Card, Notice } from "./basics.js";
import { html } from "./html.js";
import { w } from "./words.js";

/** @param props key: another where theirs is another, as the choices hold for one text; base, yours, theirs: texts; done(text): the merged text, which is then based on theirs */
export function Conflict({ base, yours, theirs, done }) {
  const parts = useMemo(() => merge(base, yours, theirs), [base, yours, theirs]);
  const [choices, setChoices] = useState(new Map());
  const open = parts.flatMap((part, i) => (part.kind === "theirs" || part.kind === "conflict" ? [i] : []));
  const missing = open.filter((i) => !choices.has(i)).length;
  const text = resolved(parts, choices);
  const choose = (i, choice) => setChoices(new Map([...choices, [i, choice]]));
  const all = () => setChoices(new Map(open.map((i) => [i, parts[i].kind === "theirs" ? "theirs" : choices.get(i) ?? "theirs"])));
  return html`<${Notice} title=${w("conflict.title")}>${w("conflict.more")}</${Notice}>
    <${Card} title=${w("conflict.parts")} head=${html`<span class="label" role="status">${missing ? w("conflict.missing", { n: missing }) : w("conflict.ready")}</span>
      <button type="button" class="b" onClick=${all}>${w("conflict.takeAll")}</button><button type="button" class="b solid" disabled=${text === null} onClick=${() => done(text)}>${w("conflict.done")}</button>`}>
      <div class="conflict">
        <div class="three head label"><span>${w("conflict.base")}</span><span>${w("conflict.theirs")}</span><span>${w("conflict.yours")}</span></div>
        ${parts.map((part, i) => html`<${Part} key=${i} part=${part} choice=${choices.get(i)} choose=${(choice) => choose(i, choice)} />`)}
      </div>
    </${Card}>`;
}

function Part({ part, choice, choose }) {
  if (part.kind === "same") return html`<div class="skip-l">${w("diff.skipped", { n: part.base.length })}</div>`;
  const asks = part.kind === "theirs" || part.kind === "conflict";
  const pick = (value, words) => html`<button type="button" class="b" aria-pressed=${String(choice === value)} onClick=${() => choose(value)}>${words}</button>`;
  return html`<div class=${`part ${asks && !choice ? "open" : ""}`}>
    <div class="label">${w(`conflict.kind.${part.kind}`)}</div>
    <div class="three"><pre data-l=${w("conflict.base")}>${cleanCode(part.base.join("\n")) || "–"}</pre><pre data-l=${w("conflict.theirs")} class=${part.kind === "yours" ? "" : "theirs"}>${cleanCode(part.theirs.join("\n")) || "–"}</pre><pre data-l=${w("conflict.yours")} class=${part.kind === "theirs" ? "" : "yours"}>${cleanCode(part.yours.join("\n")) || "–"}</pre></div>
    ${asks && html`<div class="actions">${pick("theirs", w("conflict.take"))}${pick("yours", w("conflict.keep"))}${part.kind === "conflict" && pick("both", w("conflict.both"))}</div>`}
  </div>`;
}
