//! The reference for plans of several parts, written down as plainly as possible.
//!
//! A verdict is found by trying: the counter is copied, the costs of the earlier parts are counted on the copy, and the
//! part is asked. A wait is the earliest instant at which that passes.

use flowgate::{Decision, Op, Retry, Span, Verdict};

use super::naive::{self, Counter, NEVER, PASS, RuleHits};
use super::specs::{Algorithm, DAYS, MICROS};

/// After this long, every counter is as if never used.
const LONGEST_WAIT: u64 = 38_000 * DAYS;

/// One request of a step. Each of its hits names another counter.
#[derive(Clone, Debug)]
pub struct Part {
    /// The operation.
    pub op: Op,
    /// The request's cost in units.
    pub cost: u64,
    /// The rules that the request meets.
    pub rules: Vec<RuleHits>,
}

impl Part {
    fn asks(&self) -> bool {
        !matches!(self.op, Op::Record | Op::Refund)
    }

    fn enforced(&self) -> impl Iterator<Item = &RuleHits> {
        self.rules.iter().filter(|rule| !rule.flags.shadow)
    }
}

/// Decides the parts of a step together. Returns the answers of each part, one for each hit, in order.
pub fn apply(counters: &mut [Counter], parts: &[Part], now: u64) -> Vec<Vec<Decision>> {
    if let [Part { op, cost, rules }] = parts {
        return vec![naive::apply(counters, rules, *op, *cost, now)];
    }
    let mut refunds = Vec::new();
    for Part { op, cost, rules } in parts {
        let is_refund = *op == Op::Refund;
        refunds.push(is_refund.then(|| naive::apply(counters, rules, Op::Refund, *cost, now)));
    }
    let before = verdicts(counters, parts, now);
    let denied = parts.iter().zip(&before).any(|(part, verdicts)| part.asks() && verdicts.iter().any(|v| !v.allowed()));
    let mut shadows = count_shadows(counters, parts, now);
    if denied {
        charge_denied(counters, parts, &before, now);
    }
    let after = if denied { verdicts(counters, parts, now) } else { before };
    let mut answers = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        if let Some(refund) = refunds[number].take() {
            answers.push(refund);
            continue;
        }
        let (mut verdicts, mut of_part) = (after[number].iter(), Vec::new());
        for rule in &part.rules {
            if rule.flags.shadow {
                of_part.extend(shadows[number].drain(..rule.counters.len()));
                continue;
            }
            for &counter in &rule.counters {
                if !denied && part.op != Op::Peek {
                    counters[counter].charge(now, part.cost, false);
                }
                of_part.push(counters[counter].answer(now, *verdicts.next().unwrap()));
            }
        }
        answers.push(of_part);
    }
    answers
}

/// For each part the verdicts of its enforced hits, as if all parts before it had been counted.
fn verdicts(counters: &[Counter], parts: &[Part], now: u64) -> Vec<Vec<Verdict>> {
    let mut earlier: Vec<Vec<u64>> = vec![Vec::new(); counters.len()];
    let mut all = Vec::new();
    for part in parts {
        let mut of_part = Vec::new();
        if part.op != Op::Refund {
            for &counter in part.enforced().flat_map(|rule| &rule.counters) {
                let verdict =
                    if part.asks() { ask(&counters[counter], &earlier[counter], part.cost, now) } else { PASS };
                of_part.push(verdict);
                if part.op != Op::Peek {
                    earlier[counter].push(part.cost);
                }
            }
        }
        all.push(of_part);
    }
    all
}

/// Asks one counter for `cost` units once the `earlier` costs are counted.
fn ask(counter: &Counter, earlier: &[u64], cost: u64, now: u64) -> Verdict {
    let at = |time: u64| {
        let mut counter = counter.clone();
        earlier.iter().for_each(|&cost| counter.charge(time, cost, false));
        counter.check(time, cost)
    };
    if cost == 0 || at(now).allowed() {
        return at(now);
    }
    // A `pace` limit whose turn is more than 36,500 days away denies at once, as it does for a single request.
    let all = earlier.iter().sum::<u64>().saturating_add(cost);
    let is_pace = matches!(counter.spec.algorithm, Algorithm::Pace { .. });
    if is_pace && counter.spec.after.is_none() && counter.check(now, all) == NEVER {
        return NEVER;
    }
    // Waits of `approx` are whole microseconds.
    let grain = if counter.spec.algorithm == Algorithm::Approx { MICROS } else { 1 };
    if !at(now + LONGEST_WAIT).allowed() {
        return NEVER;
    }
    // Both are numbers of grains: the request is denied after `too_short` and allowed after `enough`.
    let (mut too_short, mut enough) = (0, LONGEST_WAIT / grain);
    while enough - too_short > 1 {
        let middle = too_short + (enough - too_short) / 2;
        if at(now + middle * grain).allowed() { enough = middle } else { too_short = middle }
    }
    Verdict::Deny(Retry::After(Span::from_nanos(enough * grain)))
}

/// Shadow rules see the parts one after the other, each by itself.
fn count_shadows(counters: &mut [Counter], parts: &[Part], now: u64) -> Vec<Vec<Decision>> {
    let mut all = Vec::new();
    for Part { op, cost, rules } in parts {
        let shadows: Vec<RuleHits> = rules.iter().filter(|rule| rule.flags.shadow).cloned().collect();
        let of_part = if *op == Op::Refund { Vec::new() } else { naive::apply(counters, &shadows, *op, *cost, now) };
        all.push(of_part);
    }
    all
}

/// Charges a denied step to those exceeded rules that count denied requests.
fn charge_denied(counters: &mut [Counter], parts: &[Part], verdicts: &[Vec<Verdict>], now: u64) {
    for (part, verdicts) in parts.iter().zip(verdicts) {
        if !part.asks() || part.op == Op::Peek {
            continue;
        }
        let mut verdicts = verdicts.iter();
        for rule in part.enforced() {
            let own: Vec<Verdict> = verdicts.by_ref().take(rule.counters.len()).copied().collect();
            if rule.flags.count_denied && own.iter().any(|verdict| !verdict.allowed()) {
                rule.counters.iter().for_each(|&counter| counters[counter].charge(now, part.cost, true));
            }
        }
    }
}
