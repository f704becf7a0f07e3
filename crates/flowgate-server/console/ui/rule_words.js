// A rule in words: its conditions, its limits, its bans.

import { span } from "../lib/format.js";
import { parseLimit } from "../lib/limits.js";
import { clean } from "../lib/text.js";
import { Text } from "./basics.js";
import { html } from "./html.js";
import { f, w, wx } from "./words.js";

/** What a condition wants, as the file says it. */
export function wants(condition) {
  const { is } = condition;
  if (Array.isArray(is)) return is.join("|");
  return typeof is === "object" && is !== null ? JSON.stringify(is) : String(is);
}

/** `act=reply user=*`. */
export const Conditions = ({ of, most = 60 }) => html`<code>${of.map((condition, i) => html`${i ? " " : ""}<span class="f"><${Text} of=${condition.field} most=${40} />=</span><${Text} of=${wants(condition)} most=${most} />`)}</code>`;

/** The limits of a rule as texts, one for each; with `limits_by` one for each case. */
export function limitTexts(rule) {
  if (rule.limits_by) {
    const text = ([name, limits]) => `${clean(name)} ${limits.map(plain).join(", ")}`;
    const rest = rule.limits_by.default ? [["default", rule.limits_by.default]] : [];
    return [...Object.entries(rule.limits_by.cases), ...rest].map(text);
  }
  return (rule.limits ?? []).map(plain);
}

/** `sliding` is what a limit is unless it says otherwise. */
const plain = (limit) => clean(limit).replace(/^sliding /, "");

/** One sentence: whom it counts, how much. */
export function RuleSentence({ rule }) {
  const limits = (rule.limits ?? []).map(limitWords);
  const each = rule.by?.length ? wx("rule.each", { by: html`<code>${clean(rule.by.join(", "))}</code>` }) : w("rule.all");
  return html`${rule.limits_by ? w("rule.byCase") : limits.length ? html`${each}: ${limits.join(w("listComma"))}.` : w("rule.atOnce", { action: clean(rule.action) })} ${rule.ban ? banWords(rule.ban, "rule.ban.sentence") : ""}`;
}

function limitWords(text) {
  const limit = parseLimit(text);
  if (!limit) return clean(text);
  const values = { count: f().num(limit.count), period: limit.unit ? w(`unit.${unitName(limit.unit)}`) : span(limit.seconds), burst: limit.burst, zone: limit.zone };
  if (limit.kind === "bucket") return limit.burst ? w("limit.bucketBurst", values) : w("limit.bucket", values);
  if (limit.kind === "fixed") return limit.zone ? w("limit.fixedZone", values) : w("limit.fixed", values);
  if (limit.kind === "sliding") return w("limit.sliding", values);
  return clean(text);
}

const unitName = (unit) => ({ s: "s", sec: "s", second: "s", m: "min", min: "min", minute: "min", h: "h", hour: "h", d: "day", day: "day", w: "week", week: "week", month: "month", year: "year" })[unit] ?? "s";

/** `ban after 3 in 10m: 1m, 10m, 1h`. */
export function banWords(ban, key = "rule.ban") {
  return w(key, { after: ban.after, within: span(ban.within), lengths: ban.for.map(span).join(", ") });
}
