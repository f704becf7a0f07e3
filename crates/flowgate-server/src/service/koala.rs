//! Koala's rules beside the policy's: other rules and another way to decide, on the same counters.

use std::sync::Arc;

use flowgate::Reading;
use flowgate_engine::Request;
use flowgate_koala::{KoalaAnswer, KoalaAsk, KoalaErase, KoalaRules, RuleCounts};

use super::{Answer, KoalaInForce, Operation, Pending, Service, StoreAway};

impl Service {
    /// The Koala rules in force; `None`: Koala is not served.
    pub fn koala_rules(&self) -> Option<Arc<KoalaInForce>> {
        self.snapshot.load().koala().cloned()
    }

    /// Decides a request by Koala's rules, and adds it to the counts of each rule that it met, except for an update.
    pub fn koala(&self, koala: &Arc<KoalaInForce>, ask: KoalaAsk, request: &Request<'_>) -> Answer<KoalaAnswer> {
        self.koala_at(koala, ask, request, self.read())
    }

    /// As [`Service::koala`], at a time that was read for a batch.
    pub fn koala_at(
        &self,
        koala: &Arc<KoalaInForce>,
        ask: KoalaAsk,
        request: &Request<'_>,
        at: Reading,
    ) -> Answer<KoalaAnswer> {
        let banned = koala.rules.ban(&self.decider, ask, request, self.ban_time(at).now);
        let pending = match (banned, &self.shared) {
            (Some(banned), _) => Pending::Now(banned),
            (None, Some(shared)) => shared.koala(koala, ask, request, at),
            (None, None) => Pending::Now(koala.rules.decide(&self.decider, ask, request, at.now)),
        };
        let is_noted = ask != KoalaAsk::Update || self.observer.begin(Operation::Record);
        match pending {
            Pending::Now(answer) => {
                if is_noted {
                    self.observer.note_koala(&koala.rules, &answer, at.now);
                }
                Answer::Now(answer)
            }
            Pending::Later(sent) => self.observer.later(sent, is_noted, at, |observer, question, answer, now| {
                observer.note_koala(&question.koala.rules, answer, now);
            }),
        }
    }

    /// Gives units back to the counters of all leak rules that match.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn koala_feedback(
        &self,
        koala: &Arc<KoalaInForce>,
        erase: KoalaErase,
        request: &Request<'_>,
    ) -> Answer<Result<(), StoreAway>> {
        self.metrics().count_operation(Operation::Refund);
        if let Some(shared) = &self.shared {
            return shared.koala_feedback(&koala.rules, erase, request, self.now());
        }
        koala.rules.feedback(&self.decider, erase, request, self.now());
        Answer::Now(Ok(()))
    }

    /// How much the rule of a number has counted for a request; `None`: there is no such rule.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn koala_value(
        &self,
        koala: &Arc<KoalaInForce>,
        number: u32,
        request: &Request<'_>,
    ) -> Answer<Result<Option<u64>, StoreAway>> {
        self.metrics().count_operation(Operation::Peek);
        match &self.shared {
            Some(shared) => shared.koala_value(&koala.rules, number, request, self.now()),
            None => Answer::Now(Ok(koala.rules.value(&self.decider, number, request, self.now()))),
        }
    }

    /// The requests that each Koala rule allowed and denied today, by this node.
    pub fn koala_daily_counts(&self, rules: &KoalaRules) -> Vec<RuleCounts> {
        rules.daily_counts(self.now())
    }
}
