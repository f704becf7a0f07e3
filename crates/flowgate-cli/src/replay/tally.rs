//! What a policy did to the traffic: totals, per rule, per subject, over time.

use flowgate::Time;
use flowgate_engine::{DecidedBy, Decision, Request, RuleDef};

use super::timeline::{Timeline, Worst};
use super::top::Top;

/// The counts of one policy. Only requests that ask to pass and count (`take`) are in them.
#[derive(Debug)]
pub struct Tally {
    /// Requests that passed.
    pub passed: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Requests that no rule matched; they are among those that passed.
    pub unmatched: u64,
    /// One for each rule, in order.
    pub rules: Vec<RuleTally>,
    /// The subjects that were denied, by rule.
    pub top: Top,
    /// Passed and denied over time.
    pub timeline: Timeline,
    /// The minute with the most denials.
    pub minute: Worst,
    /// The hour with the most denials.
    pub hour: Worst,
}

/// The counts of one rule.
#[derive(Clone, Debug)]
pub struct RuleTally {
    /// Its name.
    pub name: String,
    /// The fields that make its subjects.
    pub by: Vec<String>,
    /// Whether it never denies; its denials are then what it would have done.
    pub shadow: bool,
    /// Requests that it matched, as far as the evaluation got.
    pub seen: u64,
    /// Those that it denied, whether or not another rule did so, too.
    pub denied: u64,
    /// Those of them that a ban of its own denied.
    pub banned: u64,
}

impl RuleTally {
    /// Those that it let pass.
    pub fn passed(&self) -> u64 {
        // A rule denies only what it has seen.
        self.seen.saturating_sub(self.denied)
    }
}

impl Tally {
    /// Nothing has happened yet.
    pub fn new(rules: &[RuleDef]) -> Tally {
        let rule = |rule: &RuleDef| RuleTally {
            name: rule.name.clone(),
            by: rule.by.clone(),
            shadow: rule.shadow,
            seen: 0,
            denied: 0,
            banned: 0,
        };
        Tally {
            passed: 0,
            denied: 0,
            unmatched: 0,
            rules: rules.iter().map(rule).collect(),
            top: Top::default(),
            timeline: Timeline::default(),
            minute: Worst::of_seconds(60),
            hour: Worst::of_seconds(3600),
        }
    }

    /// Counts a decision. That its rules have seen the request is counted by whoever saw the plan.
    #[inline]
    pub fn add(&mut self, decision: &Decision, request: &Request<'_>, now: Time) {
        let allowed = decision.allowed();
        self.count(allowed, decision.matched, now);
        if !allowed || !decision.shadow.is_empty() {
            self.add_denials(decision, request, now);
        }
    }

    /// Counts a request that passed, and that no shadow rule would have denied.
    #[inline]
    pub fn add_passed(&mut self, matched: bool, now: Time) {
        self.count(true, matched, now);
    }

    #[inline]
    fn count(&mut self, allowed: bool, matched: bool, now: Time) {
        self.passed += u64::from(allowed);
        self.denied += u64::from(!allowed);
        self.unmatched += u64::from(!matched);
        self.timeline.add(now, allowed);
        self.minute.add(now, allowed);
        self.hour.add(now, allowed);
    }

    fn add_denials(&mut self, decision: &Decision, request: &Request<'_>, now: Time) {
        let decided = decision.rule.as_ref().filter(|_| !decision.allowed()).map(|rule| rule.position());
        let exceeded = decision.exceeded.iter().map(|exceeded| exceeded.rule.position());
        let shadow = decision.shadow.iter().map(|rule| rule.position());
        let mut last = None;
        for rule in decided.into_iter().chain(exceeded.filter(|rule| Some(*rule) != decided)).chain(shadow) {
            // The limits of one rule stand next to each other.
            if last.replace(rule) == Some(rule) {
                continue;
            }
            let Some(tally) = self.rules.get_mut(rule) else { continue };
            tally.denied += 1;
            tally.banned += u64::from(decision.decided_by == DecidedBy::Ban && decided == Some(rule));
            self.top.add(rule, &tally.by, request, now);
        }
    }

    /// All requests.
    pub fn requests(&self) -> u64 {
        self.passed + self.denied
    }
}
