//! The results of one policy: totals, by rule, by subject, over time.

use flowgate::Time;
use flowgate_engine::{DecidedBy, Decision, Request, RuleDef};

use super::subject_counts::SubjectCounts;
use super::summary::RuleOutcome;
use super::timeline::{Timeline, WorstPeriod};

/// The counts of one policy. Only `take` operations are counted.
#[derive(Debug)]
pub(crate) struct PolicyResult {
    /// Requests that passed.
    pub passed: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Requests that no rule matched; they are also counted as passed.
    pub unmatched: u64,
    /// The counts of each rule, in the order of the rules.
    pub rules: Vec<RuleOutcome>,
    /// The subjects that each rule denied most.
    pub subjects: SubjectCounts,
    /// The subjects that each shadow rule would deny most.
    pub shadow_subjects: SubjectCounts,
    /// Passed and denied requests over time.
    pub timeline: Timeline,
    /// The minute with the most denials.
    pub minute: WorstPeriod,
    /// The hour with the most denials.
    pub hour: WorstPeriod,
}

impl PolicyResult {
    /// The results before the first request.
    pub(crate) fn new(rules: &[RuleDef]) -> PolicyResult {
        PolicyResult {
            passed: 0,
            denied: 0,
            unmatched: 0,
            rules: rules.iter().map(RuleOutcome::new).collect(),
            subjects: SubjectCounts::default(),
            shadow_subjects: SubjectCounts::default(),
            timeline: Timeline::default(),
            minute: WorstPeriod::new(60),
            hour: WorstPeriod::new(3600),
        }
    }

    /// Counts a decision. The caller counts `seen`, because the plan knows the rules that matched.
    #[inline]
    pub(crate) fn add(&mut self, decision: &Decision, request: &Request<'_>, now: Time) {
        let allowed = decision.allowed();
        self.count(allowed, decision.matched(), now);
        if !allowed || !decision.shadow.is_empty() {
            self.add_denials(decision, request, now);
        }
    }

    /// Counts a request by its verdict alone: no rule denies it, and no shadow rule would.
    #[inline]
    pub(crate) fn count(&mut self, allowed: bool, matched: bool, now: Time) {
        self.passed += u64::from(allowed);
        self.denied += u64::from(!allowed);
        self.unmatched += u64::from(!matched);
        self.timeline.add(now, allowed);
        self.minute.add(now, allowed);
        self.hour.add(now, allowed);
    }

    fn add_denials(&mut self, decision: &Decision, request: &Request<'_>, now: Time) {
        let decided = decision.rule().filter(|_| !decision.allowed()).map(|rule| rule.position());
        let exceeded = decision.exceeded().iter().map(|exceeded| exceeded.rule.position());
        let shadow = decision.shadow.iter().map(|rule| rule.position());
        let mut last = None;
        for rule in decided.into_iter().chain(exceeded.filter(|rule| Some(*rule) != decided)).chain(shadow) {
            // A rule with several exceeded limits appears once for each, one after the other. It counts once.
            if last.replace(rule) == Some(rule) {
                continue;
            }
            let Some(result) = self.rules.get_mut(rule) else { continue };
            if result.shadow {
                result.would_deny += 1;
                self.shadow_subjects.add(rule, &result.by, request, now);
                continue;
            }
            result.denied += 1;
            result.banned += u64::from(matches!(&decision.decided_by, DecidedBy::Ban { .. }) && decided == Some(rule));
            self.subjects.add(rule, &result.by, request, now);
        }
    }

    /// The number of requests.
    pub(crate) fn requests(&self) -> u64 {
        self.passed + self.denied
    }
}
