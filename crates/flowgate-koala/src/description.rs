//! The rules as an operator reads them: each as it is written, with what it did today.

use flowgate::Time;

use super::daily_counts::RuleCounts;
use super::rule::METHODS;
use super::rules::KoalaRules;

/// A rule as it is written, and what it did today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleDescription<'r> {
    /// Its line in the file, from 1.
    pub line: u64,
    /// `direct`, `count`, `base` or `leak`.
    pub method: &'static str,
    /// The conditions as they are written: `act=ask; qid=+`.
    pub conditions: &'r str,
    /// The length of the time in seconds, if it is given.
    pub time: Option<u64>,
    /// How often within the time, if it is given.
    pub count: Option<u64>,
    /// The requests of a day before the rule counts, if it is given.
    pub base: Option<u64>,
    /// What it asks for: `allow`, `captcha` or `deny`.
    pub result: &'static str,
    /// Its number, and what it did today.
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
