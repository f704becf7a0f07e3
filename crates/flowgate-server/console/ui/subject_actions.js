// What one does with a subject in a table: inspect it, ban it. Values are handed over, never put in the address.

import { clean, cut } from "../lib/text.js";
import { pairs } from "../lib/verdict.js";
import { parseFields } from "../lib/fields.js";
import { cell } from "../state/cell.js";
import { go, handover } from "../state/route.js";
import { logOuts } from "../state/session.js";
import { useRights } from "./basics.js";
import { html } from "./html.js";
import { w } from "./words.js";

/** The fields of a subject, which may be a text such as `user=42`. */
export const fieldsOf = (subject) => (typeof subject === "string" ? parseFields(subject) ?? [] : pairs(subject));

/** A subject as one text, for those who hear a button apart from its row. */
export const subjectText = (subject) => cut(clean(typeof subject === "string" ? subject : pairs(subject).map((pair) => pair.join("=")).join(" ")), 64) || w("subject.everyone");

/** Opens the page of subjects, filled in. */
export function inspect(fields, rule = null, subject = []) {
  handover.fields = { pairs: fields, rule, subject };
  go("subject");
}

/** The pair that the dialog of a ban is filled in with; null: it is closed. The app draws it, so that it outlasts its row. */
export const banning = cell(null);
logOuts.watch(() => banning.set(null));

/** @param props banned: a ban by hand denies it already */
export function SubjectActions({ subject, rule = null, label, ban = true, banned = false, large = false, fields = [] }) {
  const { write } = useRights();
  const own = fieldsOf(subject);
  if (!own.length) return null;
  const tone = large ? "b" : "b bare";
  const all = [...own, ...fields.filter(([name]) => !own.some(([each]) => each === name))];
  return html`<button type="button" class=${tone} aria-label=${label ? undefined : w("inspect.of", { whom: subjectText(subject) })} onClick=${() => inspect(all, rule, own)}>${label ?? w("inspect")}</button>
    ${(ban || banned) && html`<span class="second">${banned ? html`<span class="tag denied">${w("banned")}</span>` : write && html`<button type="button" class=${tone} aria-label=${w("ban.of", { whom: subjectText(subject) })} onClick=${() => banning.set(own[0])}>${w("ban")}</button>`}</span>`}`;
}
