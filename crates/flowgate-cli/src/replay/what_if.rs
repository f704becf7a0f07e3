//! What if the count were another? Each limit by itself, at some sixteen counts around its own, in the same pass.
//!
//! Rule       A curve belongs to one limit of one rule (and, under `limits_by`, to one value). It sees the requests
//!            that the rule matched, and decides each at every count as if this limit were the only one: no other
//!            limit, rule or ban holds anything back. So a curve answers "what would this limit do", at its own
//!            count, too.
//! Rule       A subject is denied at a count if any of its requests is.
//! Bound      [`CURVES`] curves, the first that see a request. A curve remembers at most `subjects` subjects and
//!            `bytes` of counters: before it would pass either, it forgets half of its subjects, chosen by a hash, and
//!            from then on looks only at the others. Shares are then those of the sample, which is whole subjects
//!            from their first request to their last.

mod curve;
mod variants;

use flowgate::{Op, Time};
use flowgate_engine::{Limits, Request, RuleDef};
use hashbrown::HashMap;

use curve::Curve;
pub use curve::{Curve as Measured, Point, Spared};

/// Curves in a report; one more costs as much as sixteen limits.
pub const CURVES: usize = 32;
/// What all curves together may hold, unless that leaves too little for each. One in a thousand is 33 of 32,768
/// subjects: enough to tell it, and the rest need not be looked at.
const ALL_BYTES: usize = 32 << 20;
const ALL_SUBJECTS: usize = 1 << 15;
const LEAST_BYTES: usize = 4 << 20;
const LEAST_SUBJECTS: usize = 1 << 13;

/// The bounds of one curve.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of counters.
    pub bytes: usize,
    /// Subjects.
    pub subjects: usize,
}

/// All curves.
#[derive(Debug)]
pub struct WhatIf {
    rules: Vec<RuleCurves>,
    curves: Vec<Curve>,
    bounds: Bounds,
    /// Curves that found no place.
    left_out: usize,
}

/// The limits of a rule whose curves may be wanted.
#[derive(Debug)]
struct RuleCurves {
    def: RuleDef,
    /// The curves of the limits that are for all, or that are the default of `limits_by`.
    general: Option<Vec<usize>>,
    /// Those of each value of `limits_by`.
    cases: HashMap<String, Vec<usize>>,
}

impl WhatIf {
    /// For these rules. Room is divided among the limits that there are.
    pub fn new(rules: &[RuleDef]) -> WhatIf {
        let limits: usize =
            rules.iter().map(|rule| lists(&rule.limits).map(|(_, limits)| limits.len()).sum::<usize>()).sum();
        let share = limits.clamp(1, CURVES);
        let bounds = Bounds {
            bytes: (ALL_BYTES / share).max(LEAST_BYTES),
            subjects: (ALL_SUBJECTS / share).max(LEAST_SUBJECTS),
        };
        WhatIf::bounded(rules, bounds)
    }

    /// For these rules, each curve within these bounds.
    pub fn bounded(rules: &[RuleDef], bounds: Bounds) -> WhatIf {
        let rules = rules.iter().map(|def| RuleCurves { def: def.clone(), general: None, cases: HashMap::new() });
        WhatIf { rules: rules.collect(), curves: Vec::new(), bounds, left_out: 0 }
    }

    /// Shows a request to the curves of a rule that matched it. `None` is a reset.
    pub fn add(&mut self, rule: usize, op: Option<Op>, request: &Request<'_>, now: Time) {
        let WhatIf { rules, curves, bounds, left_out } = self;
        let Some(RuleCurves { def, general, cases }) = rules.get_mut(rule) else { return };
        let case = case(&def.limits, request);
        let known = match case {
            Some(value) => cases.get(value),
            None => general.as_ref(),
        };
        let own = match known {
            Some(own) => own,
            None => {
                let own = open(def, rule, case, curves, *bounds, left_out);
                match case {
                    Some(value) => cases.entry(value.to_owned()).or_insert(own),
                    None => general.insert(own),
                }
            }
        };
        for &curve in own.iter() {
            curves[curve].add(op, request, now);
        }
    }

    /// The curves, by rule.
    pub fn curves(&self) -> Vec<&Curve> {
        let mut curves: Vec<&Curve> = self.curves.iter().collect();
        curves.sort_by_key(|curve| (curve.rule, curve.case.clone(), curve.number));
        curves
    }

    /// Limits for which there was no place.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

/// Which of a rule's lists of limits applies to a request: the value of `limits_by` that has its own, or `None`.
fn case<'a>(limits: &Limits, request: &Request<'a>) -> Option<&'a str> {
    match limits {
        Limits::ByField { field, cases, .. } => request.get(field).filter(|value| cases.contains_key(*value)),
        Limits::None | Limits::Fixed(_) => None,
    }
}

/// The lists of limits that a rule has, each with its value.
fn lists(limits: &Limits) -> impl Iterator<Item = (Option<&str>, &[flowgate::Limit])> {
    let (fixed, cases, default) = match limits {
        Limits::None => (None, None, None),
        Limits::Fixed(limits) => (Some(limits), None, None),
        Limits::ByField { cases, default, .. } => (None, Some(cases), default.as_ref()),
    };
    let cases = cases.into_iter().flatten().map(|(value, limits)| (Some(value.as_str()), limits.as_slice()));
    cases.chain(fixed.or(default).map(|limits| (None, limits.as_slice())))
}

/// Makes the curves of a list of limits, as many as there is place for.
fn open(
    def: &RuleDef,
    rule: usize,
    case: Option<&str>,
    curves: &mut Vec<Curve>,
    bounds: Bounds,
    left_out: &mut usize,
) -> Vec<usize> {
    let limits = lists(&def.limits).find(|(value, _)| *value == case).map_or(&[][..], |(_, limits)| limits);
    let mut opened = Vec::new();
    for (number, limit) in limits.iter().enumerate() {
        if limit.rate().is_none() {
            continue;
        }
        if curves.len() == CURVES {
            *left_out += 1;
            continue;
        }
        opened.push(curves.len());
        curves.push(Curve::new(def, rule, case.map(str::to_owned), number, limit, bounds));
    }
    opened
}
