//! The evaluation of one request, with rules as indices into their set: everything that a plan is made of.
//!
//! An evaluation borrows nothing. A store that answers later keeps it, and makes the hits of the plan from it when the
//! answer arrives.

use std::sync::Arc;

use flowgate::{Algorithm, BanHit, Hit, Op, Subject};
use smallvec::SmallVec;

use crate::bans::ManualBan;
use crate::rules::{Action, LimitListId, NamedLimit, Rule, RuleSet, Subjects, Values};

/// The hits of a plan. They are in file order, those of one rule next to each other.
pub(crate) type Hits<'r> = SmallVec<[Hit<'r>; 4]>;
pub(crate) type BanHits<'r> = SmallVec<[BanHit<'r>; 1]>;

/// The room for steps beyond the first few.
const MANY_STEPS: usize = 13;

/// The question of a request and the rules that matched.
#[derive(Clone, Debug)]
pub(crate) struct Evaluation {
    /// The operation that the caller asks for.
    pub(crate) asked: Op,
    pub(crate) cost: u64,
    pub(crate) steps: SmallVec<[Step; 3]>,
    /// Shadow rules without limits.
    pub(crate) passed_by: SmallVec<[u32; 2]>,
    pub(crate) end: End,
    /// Whether the limits of rules do not apply. The bans of the rules that match still do.
    pub(crate) skips_limits: bool,
}

/// A rule whose limits are applied to a subject. A step without limits only looks for a ban of the rule on the subject.
/// Such steps come last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) rule: u32,
    pub(crate) limits: LimitListId,
    pub(crate) subject: Subject,
}

impl Step {
    /// Whether the rule has matched.
    #[inline]
    pub(crate) fn has_limits(&self) -> bool {
        !self.limits.is_none()
    }
}

/// What ended the evaluation of the rules.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// The last rule: the limits decide.
    Bottom,
    /// A rule without limits: it decides what the limits above it let pass.
    Rule(u32),
    /// A ban by hand, before any rule.
    Ban(Arc<ManualBan>),
}

impl Evaluation {
    #[inline]
    pub(crate) fn new(asked: Op, cost: u64) -> Evaluation {
        Evaluation {
            asked,
            cost,
            steps: SmallVec::new(),
            passed_by: SmallVec::new(),
            end: End::Bottom,
            skips_limits: false,
        }
    }

    /// Begins anew, for another request.
    #[inline]
    pub(crate) fn begin(&mut self, asked: Op, cost: u64) {
        (self.asked, self.cost, self.end, self.skips_limits) = (asked, cost, End::Bottom, false);
        self.steps.clear();
        self.passed_by.clear();
    }

    /// Replaces the subjects by those of another request for which the rest of the evaluation holds, too.
    #[inline]
    pub(crate) fn replace_subjects(&mut self, rules: &RuleSet, values: &Values<'_>) {
        #[cfg(feature = "count-work")]
        crate::work::Work::count_evaluation();
        let mut subjects = Subjects::new(rules, values);
        for step in &mut self.steps {
            step.subject = subjects.counted_by(rules.rule(step.rule));
        }
    }

    /// Applies the limits of a rule.
    #[inline]
    pub(crate) fn push(&mut self, _: &Rule, step: Step) {
        if self.steps.len() == self.steps.inline_size() {
            // One allocation for a request of many rules, instead of one at each doubling.
            self.steps.reserve(MANY_STEPS);
        }
        self.steps.push(step);
    }

    /// Adds a rule that matches without its limits: only its ban applies.
    pub(crate) fn skip_limits(&mut self, rule: &Rule, step: Step) {
        self.skips_limits = true;
        if rule.ban().is_some() && self.asked.asks() {
            self.steps.push(Step { limits: LimitListId::NONE, ..step });
        }
    }

    /// Adds a search for bans that `rules` have imposed on the request's subjects. Leaves out rules that have matched
    /// already.
    #[cold]
    pub(crate) fn watch<'a>(
        &mut self,
        set: &RuleSet,
        rules: impl Iterator<Item = &'a Arc<Rule>>,
        values: &Values<'_>,
        subjects: &mut Subjects<'_, '_>,
    ) {
        for rule in rules {
            let is_there = self.steps.iter().any(|step| step.rule == rule.id);
            if !is_there && set.has_subject(rule, values) {
                let subject = subjects.counted_by(rule);
                self.steps.push(Step { rule: rule.id, limits: LimitListId::NONE, subject });
            }
        }
    }

    /// Whether any rule matched, or a ban by hand did.
    #[inline]
    pub(crate) fn matched(&self) -> bool {
        self.steps.first().is_some_and(Step::has_limits)
            || !self.passed_by.is_empty()
            || !matches!(self.end, End::Bottom)
    }

    /// Whether a rule without limits ends the evaluation and denies.
    pub(crate) fn ends_in_denial(&self, rules: &RuleSet) -> bool {
        matches!(self.end, End::Rule(rule) if rules.rule(rule).action != Action::Allow)
    }

    /// Whether the request asks to pass, and something other than a limit denies it.
    pub(crate) fn is_denied(&self, rules: &RuleSet) -> bool {
        self.asked.asks() && (matches!(self.end, End::Ban(_)) || self.ends_in_denial(rules))
    }

    /// Whether the evaluation reached the rule at this position.
    pub(crate) fn reached(&self, rule: u32) -> bool {
        match self.end {
            End::Bottom => true,
            End::Rule(last) => rule <= last,
            End::Ban(_) => false,
        }
    }

    /// The operation for the store. If something other than a limit has denied, the store must consume nothing. If no
    /// limit lets requests wait, a take with a longest wait is a plain take.
    #[inline]
    pub(crate) fn store_op(&self, rules: &RuleSet, hits: &[Hit<'_>]) -> Op {
        match self.asked {
            Op::Take | Op::TakeWithin(_) if self.ends_in_denial(rules) => Op::Deny,
            Op::TakeWithin(_) if !hits.iter().any(paces) => Op::Take,
            asked => asked,
        }
    }

    /// Adds the hits of all steps, under the limits and the bans that `rules` have for them.
    #[inline]
    pub(crate) fn add_hits<'r>(&self, rules: &'r RuleSet, hits: &mut Hits<'r>, bans: &mut BanHits<'r>) {
        if self.steps.len() > 1 {
            hits.reserve(self.steps.iter().map(|step| rules.limits(step.limits).len()).sum());
        }
        self.steps.iter().for_each(|step| Evaluation::hit(step, rules, hits, bans));
    }

    /// Adds the hits of one step, under the limits and the ban that `rules` have for it.
    #[inline]
    pub(crate) fn hit<'r>(step: &Step, rules: &'r RuleSet, hits: &mut Hits<'r>, bans: &mut BanHits<'r>) {
        let Step { rule, limits, subject } = *step;
        let rule = rules.rule(rule);
        let (id, flags) = (rule.id, rule.flags);
        for NamedLimit { id: counter, limit, .. } in rules.limits(limits) {
            hits.push(Hit::new(subject.counter(*counter), limit).in_rule(id, flags));
        }
        if let Some((ban, counter)) = rule.ban() {
            let hit = if step.has_limits() { BanHit::new } else { BanHit::watching };
            bans.push(hit(subject.counter(counter), ban, id));
        }
    }

    /// Whether the limits of the rule at a position are applied.
    pub(crate) fn limits_by(&self, rule: u32) -> bool {
        self.steps.iter().any(|step| step.rule == rule && step.has_limits())
    }
}

fn paces(hit: &Hit<'_>) -> bool {
    hit.limit().algorithm() == Algorithm::Pace
}
