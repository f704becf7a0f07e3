// The rates of the last minute, for the rail: from the counts of five minutes, asked every few seconds.

import { recentRate } from "../lib/history.js";
import { denier } from "../lib/verdict.js";
import { cell } from "../state/cell.js";
import { sourceOf } from "../state/poll.js";

export const EVERY_S = 2;
const source = sourceOf("/v1/stats/history?range=5m&rules=top");

/**
 * `{ allowed, denied, own, shadow, rules }` a second, over the last minute; null before the first answer. `own` are those who
 * were asked for an action of the rule's own, such as `captcha`; they are not in `denied`, only in that of their rule.
 * `counts` of a rule are what it denied, step by step; `lately` are its rates over the last ten seconds.
 */
export const summary = cell(null);

/** Rates of the last minute of an answer of five minutes. */
export function ratesOf(data) {
  const { total } = data;
  const rate = (list, seconds = 60) => recentRate(list, data.step, seconds, total.allowed) ?? 0;
  const rates = (counts, seconds) => ({ allowed: rate(counts.allowed, seconds), denied: rate(counts.denied, seconds), shadow: rate(counts.shadow, seconds) });
  const own = rate(total.own_action);
  const all = rates(total);
  return {
    ...all,
    own,
    denied: all.denied - own,
    rules: data.rules.map((rule) => ({ rule: rule.rule, action: rule.action, ...rates(rule), lately: rates(rule, 10), counts: { step: data.step, end: data.end, denied: rule.denied } })),
  };
}

/** True while a rule denies loudly: the sentence of the overview is orange, and so is the rate in the rail. */
export const loud = (rates) => denier(rates.rules) !== null;

export function watchSummary() {
  source.state.watch(({ data }) => summary.set(data ? ratesOf(data) : null));
  source.watch("always", EVERY_S);
}
