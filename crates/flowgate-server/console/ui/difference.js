// The difference of two texts, drawn.

import { counts, folded, rows, words } from "../lib/diff.js";
import { cleanCode } from "../lib/text.js";
import { useMemo, useState } from "../vendor/hooks.js";
import { Card } from "./basics.js";
import { html } from "./html.js";
import { w } from "./words.js";

/** `+9 −3`. */
export const Changes = ({ added, removed }) => html`<span class="cnt"><span class="allowed">+${added}</span> <span class="denied">−${removed}</span></span>`;

export function Difference({ title, before, after, head }) {
  const list = useMemo(() => rows(before, after), [before, after]);
  const [whole, setWhole] = useState(false);
  const found = counts(list);
  const shown = whole ? list : folded(list);
  const same = found.added + found.removed === 0;
  return html`<${Card} title=${title} head=${html`${!same && html`<${Changes} ...${found} /><button type="button" class="b bare" aria-pressed=${String(whole)} onClick=${() => setWhole(!whole)}>${w(whole ? "diff.fold" : "diff.whole")}</button>`}${head}`}>
    ${same ? html`<p class="pad muted">${w("diff.same")}</p>` : html`<div class="hr"></div><div class="ed diff">${shown.map(draw)}</div>`}
  </${Card}>`;
}

const SPOKEN = new Map([["out", "diff.removed"], ["ins", "diff.added"]]);

function draw(row) {
  if (row.kind === "skip") return html`<div class="skip-l">${w("diff.skipped", { n: row.lines })}</div>`;
  const tone = row.kind === "same" ? "" : row.kind;
  const tag = row.kind === "out" ? "del" : "ins";
  const pieces = row.kind === "same" ? cleanCode(row.text) : words(row.text, row.pair).map((piece) => (piece.changed ? html`<${tag}>${cleanCode(piece.text)}</${tag}>` : cleanCode(piece.text)));
  return html`<div class=${`ln ${tone}`}>${row.b ?? row.a}</div><div class=${`tx ${tone}`}>${SPOKEN.has(row.kind) && html`<span class="unseen">${w(SPOKEN.get(row.kind))} </span>`}${pieces}</div>`;
}
