//! Takes that are planned before they are decided.

use flowgate::{Op, Reading};

use super::Decider;
use crate::plan::{End, Evaluation, HitBuffer, PlannedTake, RequestNames, TakeAnswer};
use crate::request::Request;
use crate::rules::RuleSet;

impl Decider {
    /// Plans a take ahead of its decision. A caller with several requests plans them all, prefetches the counters of
    /// [their subjects](PlannedTake::subjects), and then decides one after the other. The answers are the same, and the
    /// cache misses overlap. `texts` are the values of the fields with these names. The new plan replaces an older one, and
    /// reuses its evaluation if that holds for the new request, too.
    // Without the hint the compiler no longer inlines the loop over the rules into decisions that are not planned ahead.
    #[inline]
    pub fn plan_ahead(
        &self,
        rules: &RuleSet,
        cost: u64,
        names: &RequestNames,
        texts: &[&str],
        planned: &mut PlannedTake,
    ) {
        let mut values = rules.fields.no_values();
        let is_same = planned.read_fields(rules, names, texts, &mut values);
        let evaluation = &mut planned.evaluation;
        if is_same {
            evaluation.cost = cost;
            evaluation.replace_subjects(rules, &values);
        } else {
            evaluation.begin(Op::Take, cost);
            self.evaluate_rules(rules, &values, evaluation, Evaluation::push);
        }
    }

    /// Decides a take that was planned ahead. Returns `None` if other rules are in force by now, so that the take must
    /// be planned anew. `request` is called only if there are bans by hand, or if the request starts a ban.
    pub fn decide_planned<'r, 'q>(
        &self,
        rules: &'r RuleSet,
        planned: &PlannedTake,
        buffer: &mut HitBuffer<'r>,
        request: impl Fn() -> Request<'q>,
        at: Reading,
    ) -> Option<TakeAnswer<'r>> {
        let evaluation = planned.evaluation(rules)?;
        if self.bans.any_in_force(at.now)
            && let Some(ban) = self.bans.find(&request(), at.now)
        {
            let banned = Evaluation { end: End::Ban(ban), ..Evaluation::new(evaluation.asked, evaluation.cost) };
            return Some(self.answer_evaluation(rules, &banned, buffer, request, at));
        }
        Some(self.answer_evaluation(rules, evaluation, buffer, request, at))
    }

    #[inline]
    fn answer_evaluation<'r, 'q>(
        &self,
        rules: &'r RuleSet,
        evaluation: &Evaluation,
        buffer: &mut HitBuffer<'r>,
        request: impl FnOnce() -> Request<'q>,
        at: Reading,
    ) -> TakeAnswer<'r> {
        self.apply_evaluation(rules, evaluation, buffer, request, at).answer(at)
    }
}

#[cfg(test)]
mod tests;
