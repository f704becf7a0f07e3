//! The rules as an operator reads them: each rule as it is written, with its counts of today.

use flowgate::Time;

use super::daily_counts::RuleCounts;
use super::rule::METHODS;
use super::rules::KoalaRules;

/// A rule as it is written, and its counts of today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleDescription<'r> {
    /// The number of the rule's line in the file, from 1.
    pub line: u64,
    /// `direct`, `count`, `base` or `leak`.
    pub method: &'static str,
    /// The conditions as they are written: `act=ask; qid=+`.
    pub conditions: &'r str,
    /// The length of the rule's time in seconds; `None`: the rule does not give it.
    pub time: Option<u64>,
    /// How many requests the rule allows within its time; `None`: the rule does not give it.
    pub count: Option<u64>,
    /// The requests of a day that pass before the rule counts; `None`: the rule does not give it.
    pub base: Option<u64>,
    /// What the rule asks of callers: `allow`, `captcha` or `deny`.
    pub result: &'static str,
    /// The rule's number, and its counts of today.
    pub counts: RuleCounts,
}

impl KoalaRules {
    /// All rules, in the order of the file.
    pub fn describe(&self, now: Time) -> impl Iterator<Item = RuleDescription<'_>> {
        self.daily_counts.turn(&self.file.tz, now);
        let rules = self.file.rules.iter().zip(&self.counts).enumerate();
        rules.map(|(position, (rule, counts))| {
            let [time, count, base] = rule.numbers;
            let result = self.result_of(position);
            RuleDescription {
                line: rule.line,
                method: METHODS.iter().find(|(_, known)| *known == rule.method).map_or("", |(name, _)| name),
                conditions: &rule.conditions,
                time,
                count,
                base,
                result: if result.passes() {
                    "allow"
                } else if result.wants_captcha() {
                    "captcha"
                } else {
                    "deny"
                },
                counts: counts.read(rule.number),
            }
        })
    }
}
