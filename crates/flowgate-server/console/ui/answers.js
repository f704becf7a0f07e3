// What the server says, in the chosen language. Each sentence of everyday work has a code; its words are those of the code, and the
// server's own English text stands where a language has none.

import { fill } from "../lib/words.js";
import { cleanLine } from "../lib/text.js";
import { html } from "./html.js";
import { answersOf } from "./words.js";

/** A sentence as text: `{ text, translated }`. */
export function answer(text, code, values = {}) {
  const sentence = code ? answersOf().get(code) : undefined;
  const safe = () => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, cleanLine(value)]));
  return sentence === undefined ? { text: cleanLine(text), translated: false } : { text: fill(sentence, safe()), translated: true };
}

/** The same as a part of a page; English text is marked as such, and what is translated has the original in its title. */
export function Answer({ text, code, values, end = (words) => words }) {
  const said = answer(text, code, values);
  return said.translated ? html`<span title=${cleanLine(text)}>${end(said.text)}</span>` : html`<span lang="en">${end(said.text)}</span>`;
}

/** The hints of a finding, one after the other. */
export const Hints = ({ of }) => (of.hints?.length ? of.hints.map((hint, i) => html`${i ? "; " : ""}<${Answer} ...${hint} />`) : of.hint && html`<${Answer} text=${of.hint} />`);
