//! The reference for a plan: several rules, all or nothing.

use flowgate::{Decision, Op, RuleFlags, Verdict};

use super::{Counter, PASS};

/// One rule of a plan.
#[derive(Clone, Debug)]
pub struct RuleHits {
    /// How the rule's limits behave together.
    pub flags: RuleFlags,
    /// The indices of the rule's counters.
    pub counters: Vec<usize>,
}

/// Applies an operation to the counters of a plan. Returns an answer for each hit, in order.
pub fn apply(counters: &mut [Counter], plan: &[RuleHits], op: Op, cost: u64, now: u64) -> Vec<Decision> {
    let hits = || plan.iter().flat_map(|rule| rule.counters.iter().copied());
    match op {
        Op::Peek => hits().map(|hit| counters[hit].answer(now, counters[hit].check(now, cost))).collect(),
        Op::Record => {
            hits().for_each(|hit| counters[hit].charge(now, cost, false));
            hits().map(|hit| counters[hit].answer(now, PASS)).collect()
        }
        Op::CheckAndRecord => {
            let verdicts: Vec<Verdict> = hits().map(|hit| counters[hit].check(now, cost)).collect();
            hits().for_each(|hit| counters[hit].charge(now, cost, false));
            hits().zip(verdicts).map(|(hit, verdict)| counters[hit].answer(now, verdict)).collect()
        }
        Op::Refund => {
            hits().for_each(|hit| counters[hit].refund(now, cost));
            hits().map(|hit| counters[hit].answer(now, PASS)).collect()
        }
        _ => take(counters, plan, cost, now),
    }
}

fn take(counters: &mut [Counter], plan: &[RuleHits], cost: u64, now: u64) -> Vec<Decision> {
    let denies = |counters: &[Counter], rule: &RuleHits| {
        rule.counters.iter().any(|&hit| !counters[hit].check(now, cost).allowed())
    };
    let denied = plan.iter().any(|rule| !rule.flags.shadow && denies(counters, rule));
    let mut answers = Vec::new();
    for rule in plan {
        let before: Vec<Verdict> = rule.counters.iter().map(|&hit| counters[hit].check(now, cost)).collect();
        let exceeded = denies(counters, rule);
        let passes = if rule.flags.shadow { !exceeded } else { !denied };
        let counts_denial = !passes && exceeded && rule.flags.count_denied;
        if passes || counts_denial {
            rule.counters.iter().for_each(|&hit| counters[hit].charge(now, cost, counts_denial));
        }
        for (&hit, before) in rule.counters.iter().zip(before) {
            let verdict = if counts_denial { counters[hit].check(now, cost) } else { before };
            answers.push(counters[hit].answer(now, verdict));
        }
    }
    answers
}

/// The answer of several limits together.
pub fn together(answers: &[Decision]) -> Decision {
    let longest = answers.iter().filter_map(|answer| match answer.verdict {
        Verdict::Deny(retry) => Some(retry),
        Verdict::Allow { .. } => None,
    });
    if let Some(longest) = longest.max() {
        return *answers.iter().find(|answer| answer.verdict == Verdict::Deny(longest)).unwrap();
    }
    let delay = answers.iter().map(Decision::delay).max().unwrap_or_default();
    let fewest = answers.iter().map(|answer| answer.remaining).min().flatten();
    let tightest = *answers.iter().find(|answer| answer.remaining == fewest).unwrap();
    Decision { verdict: Verdict::Allow { delay }, ..tightest }
}
