//! What if the count were another? Each limit alone, at some sixteen counts around the configured one, in the same run.
//!
//! Rule       A curve belongs to one limit of one rule and, under `limits_by`, to one value. It sees the requests that
//!            the rule matched and decides each at every count as if this limit were the only one. The other limits,
//!            rules and bans have no effect on a curve, at the configured count either.
//! Rule       A subject is denied at a count if any of its requests is.
//! Bound      [`MAX_CURVES`] curves, for the first limits that see a request. A curve keeps at most `subjects` subjects
//!            and `bytes` bytes of counters. At either bound it drops the half of its subjects that a hash selects, and
//!            ignores their later requests. The shares are then those of a sample. A subject of the sample counts from
//!            its first request to its last.

mod curve;
mod variants;

use flowgate::Time;
use flowgate_api::Operation;
use flowgate_engine::{Limits, Request, RuleDef};
use hashbrown::HashMap;

pub use curve::Curve;

/// Curves in a report. One curve costs as much as sixteen limits.
pub const MAX_CURVES: usize = 32;
/// The memory and the subjects of all curves together, unless a curve's share falls below its minimum. A thousandth of
/// 32,768 subjects is 33 subjects, enough to tell 99.9 % from less.
const TOTAL_BYTES: usize = 32 << 20;
const TOTAL_SUBJECTS: usize = 1 << 15;
const MIN_CURVE_BYTES: usize = 4 << 20;
const MIN_CURVE_SUBJECTS: usize = 1 << 13;

/// The bounds of one curve.
#[derive(Clone, Copy, Debug)]
pub struct CurveBounds {
    /// The most bytes of counters.
    pub bytes: usize,
    /// The most subjects.
    pub subjects: usize,
}

/// The curves of all rules.
#[derive(Debug)]
pub struct WhatIf {
    rules: Vec<RuleCurves>,
    curves: Vec<Curve>,
    bounds: CurveBounds,
    /// The number of limits without a curve.
    pub left_out: usize,
}

/// A rule and the positions of its curves.
#[derive(Debug)]
struct RuleCurves {
    def: RuleDef,
    /// The curves of the plain limits, or of the default of `limits_by`.
    general: Option<Vec<usize>>,
    /// The curves of each value of `limits_by`.
    cases: HashMap<String, Vec<usize>>,
}

impl WhatIf {
    /// Curves for these rules. The limits share the memory equally.
    pub fn new(rules: &[RuleDef]) -> WhatIf {
        let limits: usize =
            rules.iter().map(|rule| limit_lists(&rule.limits).map(|(_, limits)| limits.len()).sum::<usize>()).sum();
        let share = limits.clamp(1, MAX_CURVES);
        let bounds = CurveBounds {
            bytes: (TOTAL_BYTES / share).max(MIN_CURVE_BYTES),
            subjects: (TOTAL_SUBJECTS / share).max(MIN_CURVE_SUBJECTS),
        };
        WhatIf::bounded(rules, bounds)
    }

    /// Curves for these rules, each within these bounds.
    pub fn bounded(rules: &[RuleDef], bounds: CurveBounds) -> WhatIf {
        let rules = rules.iter().map(|def| RuleCurves { def: def.clone(), general: None, cases: HashMap::new() });
        WhatIf { rules: rules.collect(), curves: Vec::new(), bounds, left_out: 0 }
    }

    /// Adds a request to the curves of a rule that matches it.
    pub fn add(&mut self, rule: usize, operation: Operation, request: &Request<'_>, now: Time) {
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
            curves[curve].add(operation, request, now);
        }
    }

    /// The curves in the order of the rules.
    pub fn curves(&self) -> Vec<&Curve> {
        let mut curves: Vec<&Curve> = self.curves.iter().collect();
        curves.sort_by_key(|curve| (curve.rule, curve.case.clone(), curve.number));
        curves
    }
}

/// The value of `limits_by` whose limits apply to a request; `None` if the plain or default limits apply.
fn case<'a>(limits: &Limits, request: &Request<'a>) -> Option<&'a str> {
    match limits {
        Limits::ByField { field, cases, .. } => request.get(field).filter(|value| cases.contains_key(*value)),
        Limits::None | Limits::Fixed(_) => None,
    }
}

/// The lists of limits of a rule, each with its value of `limits_by`.
fn limit_lists(limits: &Limits) -> impl Iterator<Item = (Option<&str>, &[flowgate::Limit])> {
    let (fixed, cases, default) = match limits {
        Limits::None => (None, None, None),
        Limits::Fixed(limits) => (Some(limits), None, None),
        Limits::ByField { cases, default, .. } => (None, Some(cases), default.as_ref()),
    };
    let cases = cases.into_iter().flatten().map(|(value, limits)| (Some(value.as_str()), limits.as_slice()));
    cases.chain(fixed.or(default).map(|limits| (None, limits.as_slice())))
}

/// Makes the curves of a list of limits, up to [`MAX_CURVES`] in all.
fn open(
    def: &RuleDef,
    rule: usize,
    case: Option<&str>,
    curves: &mut Vec<Curve>,
    bounds: CurveBounds,
    left_out: &mut usize,
) -> Vec<usize> {
    let limits = limit_lists(&def.limits).find(|(value, _)| *value == case).map_or(&[][..], |(_, limits)| limits);
    let mut opened = Vec::new();
    for (number, limit) in limits.iter().enumerate() {
        if limit.rate().is_none() {
            continue;
        }
        if curves.len() == MAX_CURVES {
            *left_out += 1;
            continue;
        }
        opened.push(curves.len());
        curves.push(Curve::new(def, rule, case.map(str::to_owned), number, limit, bounds));
    }
    opened
}
