//! Takes that a caller plans together and decides one after the other, where counters live in memory.

use flowgate::Reading;
use flowgate_engine::{HitBuffer, PlannedTake, Request, RequestNames, TakeAnswer};

use super::{Service, Snapshot};
use crate::observer::PassCounts;

/// What takes that are decided one after the other share: the rules, the memory of their hits, and their counts, which are
/// reported once.
#[derive(Debug)]
pub(crate) struct TakeWork<'r> {
    snapshot: &'r Snapshot,
    hits: HitBuffer<'r>,
    counts: PassCounts<'r>,
}

impl<'r> TakeWork<'r> {
    pub(crate) fn new(snapshot: &'r Snapshot) -> TakeWork<'r> {
        TakeWork { snapshot, hits: HitBuffer::default(), counts: PassCounts::default() }
    }
}

impl Service {
    /// Plans a take.
    #[inline]
    pub(crate) fn plan_take(
        &self,
        snapshot: &Snapshot,
        cost: u64,
        names: &RequestNames,
        texts: &[&str],
        plan: &mut PlannedTake,
    ) {
        self.decider.plan_ahead(&snapshot.rules, cost, names, texts, plan);
    }

    /// Decides a take that was planned, counts it and passes the answer to `tell`. `request` is called only while there are bans
    /// by hand, or if the decision is ranked or logged, or starts a ban. `None` if the plan no longer holds.
    #[inline]
    pub(crate) fn take_planned<'r, 'q>(
        &self,
        work: &mut TakeWork<'r>,
        plan: &PlannedTake,
        request: impl Fn() -> Request<'q>,
        at: Reading,
        tell: impl FnOnce(&TakeAnswer<'r>),
    ) -> Option<()> {
        let TakeWork { snapshot, hits, counts } = work;
        // The answer may own a whole decision, so it stays where it is.
        let answer = &self.decider.decide_planned(&snapshot.rules, plan, hits, &request, at);
        match answer {
            None => return None,
            Some(TakeAnswer::Passes(pass)) => self.observer.note_pass(counts, request, pass.rule(), at.now),
            Some(TakeAnswer::Denied(denied)) => self.observer.note_denied(request, denied, at.now),
            Some(TakeAnswer::Decided(decision)) => self.observer.note(request, decision, at.now),
        }
        answer.as_ref().map(tell)
    }
}
