// The rates of the last minute, for the rail: from the counts of five minutes, asked every few seconds.

import { recentRate } from "../lib/history.js";
import { bansInForce, denier, isOwnAction, subjectsName } from "../lib/verdict.js";
import { cell } from "../state/cell.js";
import { serverNow } from "../state/link.js";
import { sourceOf } from "../state/poll.js";
import { wideBans } from "../state/wide_bans.js";

export const EVERY_S = 2;
const source = sourceOf("/v1/stats/history?range=5m&rules=top");

/**
 * `{ allowed, denied, own, shadow, rules }` a second, over the last minute; null before the first answer. `own` are those who
 * were asked for an action of the rule's own, such as `captcha`; they are not in `denied`, only in that of their rule.
 * `counts` of a rule are what it denied, step by step; `lately` are its rates over the last ten seconds, `newest` over the last four. `turn` is the newest start,
 * pause or end of a pause, as `{ kind, at }`.
 */
export const summary = cell(null);

/** The rates are means of so many seconds. */
const MEAN_S = 60;

/** Rates of the last minute of an answer of five minutes. */
export function ratesOf(data) {
  const { total } = data;
  const rate = (list, seconds = MEAN_S) => recentRate(list, data.step, seconds, total.allowed) ?? 0;
  const rates = (counts, seconds) => ({ allowed: rate(counts.allowed, seconds), denied: rate(counts.denied, seconds), shadow: rate(counts.shadow, seconds) });
  const own = rate(total.own_action);
  const all = rates(total);
  return {
    ...all,
    own,
    turn: data.marks.filter((mark) => ["start", "pause", "resume"].includes(mark.kind)).at(-1) ?? null,
    denied: all.denied - own,
    rules: data.rules.map((rule) => ({ rule: rule.rule, action: rule.action, ...rates(rule), lately: rates(rule, 10), newest: rates(rule, 4), counts: { step: data.step, end: data.end, denied: rule.denied } })),
  };
}

/**
 * True while the sentence of the overview is orange: then the rates of denials in the rail and on Live are, too. An action
 * of the rule's own is no denial; a pause is none, and neither is what a rule denied before a ban by hand.
 */
export function isLoud(rates, now) {
  if (bansInForce(rates.rules)) return wideBans.get().length > 0;
  const rule = denier(rates.rules);
  if (!rule || isOwnAction(rule.action) || now?.paused_until > serverNow()) return false;
  const subjects = (now?.most_denied.subjects ?? []).filter((each) => each.rule === subjectsName(rule.rule));
  return isStillLoud(rule, subjects);
}

/** Once a subject of a rule is banned by hand, only what the rule still denies counts: the minute before the ban is past. */
export const isStillLoud = (rule, subjects) => subjects.every((each) => !each.banned) || (subjects.some((each) => !each.banned) && denier([{ ...rule, ...rule.lately }]) !== null);

/** The start, the pause or the end of a pause that is not a minute old, so that the means hold time from before it; or null. */
export const recentTurn = (rates) => (rates.turn && serverNow() - rates.turn.at < MEAN_S ? rates.turn : null);

export function watchSummary() {
  source.state.watch(({ data }) => summary.set(data ? ratesOf(data) : null));
  source.watch("always", EVERY_S);
}
