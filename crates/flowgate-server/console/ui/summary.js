// The rates of the last minute, for the rail: from the counts of five minutes, asked every few seconds.

import { recentRate } from "../lib/history.js";
import { denier } from "../lib/verdict.js";
import { cell } from "../state/cell.js";
import { sourceOf } from "../state/poll.js";

export const EVERY_S = 2;
const source = sourceOf("/v1/stats/history?range=5m&rules=top");

/**
 * `{ allowed, denied, shadow, rules }` a second, over the last minute; null before the first answer. `counts` of a rule
 * are what it denied, step by step.
 */
export const summary = cell(null);

/** Rates of the last minute of an answer of five minutes. */
export function ratesOf(data) {
  const rate = (list) => recentRate(list, data.step, 60) ?? 0;
  const three = (counts) => ({ allowed: rate(counts.allowed), denied: rate(counts.denied), shadow: rate(counts.shadow ?? []) });
  return { ...three(data.total), rules: data.rules.map((rule) => ({ rule: rule.rule, ...three(rule), counts: { step: data.step, end: data.end, denied: rule.denied } })) };
}

/** True while a rule denies loudly: the sentence of the overview is orange, and so is the rate in the rail. */
export const loud = (rates) => denier(rates.rules) !== null;

export function watchSummary() {
  source.state.watch(({ data }) => summary.set(data ? ratesOf(data) : null));
  source.watch("always", EVERY_S);
}
