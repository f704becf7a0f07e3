// A rule in words: its conditions, its limits, its bans.

import { parseLimit } from "../lib/limits.js";
import { clean } from "../lib/text.js";
import { Text } from "./basics.js";
import { html } from "./html.js";
import { f, gap, w, wx } from "./words.js";

/** What a condition wants: one of its items, each as the file says it. */
export const wants = (condition) => condition.is.join("|");

/** `act=reply user=*`. */
export const Conditions = ({ of, most = 60 }) => html`<code>${of.map((condition, i) => html`${i ? " " : ""}<span class="cond"><span class="f"><${Text} of=${condition.field} most=${40} />=</span><${Text} of=${wants(condition)} most=${most} /></span>`)}</code>`;

/** The limits of a rule as texts, one for each; with `limits_by` one for each case. */
export function limitTexts(rule) {
  if (rule.limits_by) {
    const text = ([name, limits]) => `${clean(name)} ${limits.map(plain).join(", ")}`;
    const rest = rule.limits_by.default ? [["default", rule.limits_by.default]] : [];
    return [...Object.entries(rule.limits_by.cases), ...rest].map(text);
  }
  return (rule.limits ?? []).map(plain);
}

/** A limit as one would write it: `5/min` for `sliding 5/1m`, as `sliding` is what a limit is unless it says otherwise. */
export const plain = (limit) => clean(limit).replace(/^sliding /, "").replace(/\/1(s|m|h|d|w)(?=\s|$)/g, (_, unit) => `/${SINGLE.get(unit)}`);
const SINGLE = new Map([["s", "s"], ["m", "min"], ["h", "h"], ["d", "day"], ["w", "week"]]);

/** An action: `deny` and `allow` in words, one of the rule's own as the file says it. */
export const actionWords = (action) => (action === "deny" || action === "allow" ? w(`action.${action}`) : action);

/** One sentence: whom it counts, how much. */
export function RuleSentence({ rule }) {
  const limits = (rule.limits ?? []).map(limitWords);
  const each = rule.by?.length ? wx("rule.each", { by: html`<code>${clean(rule.by.join(", "))}</code>` }) : w("rule.all");
  return html`${rule.limits_by ? w("rule.byCase") : limits.length ? html`${each}${w("colon")}${limits.join(w("listComma"))}${w("stop")}` : w("rule.atOnce", { action: clean(actionWords(rule.action)) })}${rule.ban ? `${gap()}${banWords(rule.ban)}` : ""}`;
}

function limitWords(text) {
  const limit = parseLimit(text);
  if (!limit || !KINDS.has(limit.kind)) return clean(text);
  if (!limit.after) return rateWords(limit);
  // The zone says when the free period begins; of the limit after it, only days and longer begin by a zone.
  const free = rateWords({ ...limit.after, kind: "fixed", zone: limit.zone });
  return w("limit.after", { free, rest: rateWords({ ...limit, zone: limit.seconds < DAY ? null : limit.zone }) });
}

function rateWords({ kind, count, seconds, burst, zone }) {
  const unit = WHOLE.get(seconds);
  const per = unit ? w("per.unit", { unit: w(`unit.${unit}`) }) : w("per.length", { length: f().span(seconds) });
  const values = { count: f().num(count), per, period: f().span(seconds), burst, zone };
  if (kind === "bucket") return burst ? w("limit.bucketBurst", values) : w("limit.bucket", values);
  if (kind === "fixed") return zone ? w("limit.fixedZone", values) : w("limit.fixed", values);
  return w("limit.sliding", values);
}

const KINDS = new Set(["bucket", "fixed", "sliding"]);
const DAY = 86_400;
/** Periods that have a name, in seconds. */
const WHOLE = new Map([[1, "s"], [60, "min"], [3600, "h"], [86_400, "day"], [604_800, "week"], [2_592_000, "month"], [31_536_000, "year"]]);

/** `After 3 denials within 10 min it bans: 1 min, 10 min, 1 h.` */
export const banWords = (ban) => w("rule.ban.sentence", { after: ban.after, within: f().span(ban.within), lengths: ban.for.map((each) => f().span(each)).join(w("listAnd")) });

/** `ban 3/10m: 1m, 10m, 1h`, in the words of the file. */
export const banShort = (ban) => `ban ${ban.after}/${short(ban.within)}: ${ban.for.map(short).join(", ")}`;

function short(seconds) {
  const [size, name] = [[86_400, "d"], [3600, "h"], [60, "m"]].find(([each]) => seconds % each === 0) ?? [1, "s"];
  return `${seconds / size}${name}`;
}
