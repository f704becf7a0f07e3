//! The results of each limit at other counts.

use serde::Serialize;

use super::advice;
use super::outcome::{RuleOutcome, rule_name};
use crate::what_if::{self, WhatIf};

/// The results at other counts.
#[derive(Clone, Debug, Serialize)]
pub struct Curves {
    /// One curve for each limit that saw a request.
    pub curves: Vec<Curve>,
    /// Limits without a curve, since there are too many.
    pub left_out: usize,
}

/// The results of one limit at other counts.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// The name of the rule.
    pub rule: String,
    /// The value of `limits_by`.
    pub case: Option<String>,
    /// The limit as configured.
    pub limit: String,
    /// The fields whose values are the rule's subject.
    pub by: Vec<String>,
    /// The period of the limit, as one says it: `a minute`.
    pub period: String,
    /// The advice as one sentence: the smallest count that leaves 99.9 % of the subjects alone.
    pub advice: String,
    /// Requests that the limit saw.
    pub requests: u64,
    /// Subjects that the limit saw.
    pub subjects: u64,
    /// The curve shows a sample of one subject in this many.
    pub one_in: u64,
    /// Counters that the store evicted.
    pub evicted: u64,
    /// The results at each count.
    pub points: Vec<Point>,
    /// The index of the configured count.
    pub configured: usize,
    /// The index of the smallest count that spares 99.9 % of the subjects, or of the requests without `by`.
    pub spares: Option<usize>,
}

/// The results at one count.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// The count.
    pub count: String,
    /// The count in millionths.
    pub millionths: u64,
    /// The limit with that count.
    pub limit: String,
    /// Requests that the limit would deny.
    pub requests: u64,
    /// Subjects of which the limit would deny at least one request.
    pub subjects: u64,
}

impl Curves {
    /// Whether there is more than one limit.
    pub(crate) fn are_several(&self) -> bool {
        self.curves.len() + self.left_out > 1
    }

    pub(super) fn new(what_if: &WhatIf, rules: &[RuleOutcome]) -> Curves {
        let curves = what_if.curves().into_iter().map(|curve| Curve::new(curve, rules)).collect();
        Curves { curves, left_out: what_if.left_out }
    }
}

impl Curve {
    fn new(curve: &what_if::Curve, rules: &[RuleOutcome]) -> Curve {
        let mut figures = Curve {
            rule: rule_name(rules, curve.rule),
            case: curve.case.clone(),
            limit: curve.limit.to_string(),
            by: curve.by.clone(),
            period: curve.limit.rate().map(|rate| advice::period(rate.period())).unwrap_or_default(),
            advice: String::new(),
            requests: curve.requests(),
            subjects: curve.subjects_seen(),
            one_in: curve.one_in(),
            evicted: curve.evicted(),
            points: curve.points(),
            configured: curve.configured(),
            spares: curve.sparing(),
        };
        figures.advice = advice::sentence(&figures);
        figures
    }
}
