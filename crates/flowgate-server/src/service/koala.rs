//! Koala's rules beside the policy's: other rules and another way to decide, on the same counters.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use flowgate::Reading;
use flowgate_engine::{KoalaAnswer, KoalaAsk, KoalaErase, KoalaFile, KoalaRules, PolicyError, Request, RuleTally};

use super::{Answer, Operation, Service, StoreAway};

/// The rules in force; empty: Koala is not served.
#[derive(Debug, Default)]
pub(super) struct InForce {
    rules: ArcSwapOption<KoalaRules>,
    /// The same in this node's shares, for while the shared store is away; empty where there is none.
    local: ArcSwapOption<KoalaRules>,
}

impl Service {
    /// Puts a Koala rule file in force, or none. Requests under way finish with the old one; counters live on where
    /// their rule's number, fields, method and time stay, and so does what was tallied today.
    ///
    /// # Errors
    /// When the rules do not fit together, which those of a file that was loaded do; then nothing has changed.
    pub fn replace_koala(&self, file: Option<&KoalaFile>) -> Result<(), PolicyError> {
        let before = self.koala.rules.load_full();
        let compiled = file.map(|file| KoalaRules::new(file.clone(), self.engine.memory(), before.as_deref()));
        let rules = compiled.transpose()?;
        let local = rules.as_ref().zip(self.shared.as_ref()).map(|(rules, shared)| shared.koala_local(rules));
        self.koala.local.store(local.transpose()?.map(Arc::new));
        self.koala.rules.store(rules.map(Arc::new));
        Ok(())
    }

    /// The Koala rules in force; `None`: Koala is not served.
    pub fn koala_rules(&self) -> Option<Arc<KoalaRules>> {
        self.koala.rules.load_full()
    }

    /// Decides a request by Koala's rules, and tallies what it met unless it only counts.
    pub fn koala(&self, rules: &Arc<KoalaRules>, ask: KoalaAsk, request: &Request<'_>) -> Answer<KoalaAnswer> {
        self.koala_at(rules, ask, request, self.read())
    }

    /// As [`Service::koala`], at a time that was read for a batch.
    pub fn koala_at(
        &self,
        rules: &Arc<KoalaRules>,
        ask: KoalaAsk,
        request: &Request<'_>,
        at: Reading,
    ) -> Answer<KoalaAnswer> {
        let now = at.now;
        let banned = self.engine.koala_ban(ask, request, self.ban_time(at).now);
        let answer = match (banned, &self.shared, self.koala.local.load_full()) {
            (Some(banned), ..) => Answer::Now(banned),
            (None, Some(shared), Some(local)) => shared.koala(rules, &local, ask, request, now),
            _ => Answer::Now(self.engine.koala(rules, ask, request, now)),
        };
        self.observer.koala(rules, ask, at, answer)
    }

    /// Gives back what feedback gives back.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn koala_feedback(
        &self,
        rules: &Arc<KoalaRules>,
        erase: KoalaErase,
        request: &Request<'_>,
    ) -> Answer<Result<(), StoreAway>> {
        self.metrics().count_operation(Operation::Refund);
        if let Some(shared) = &self.shared {
            return shared.koala_feedback(rules, erase, request, self.now());
        }
        self.engine.koala_feedback(rules, erase, request, self.now());
        Answer::Now(Ok(()))
    }

    /// How much the rule of a number has counted for a request; `None`: there is no such rule.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn koala_value(
        &self,
        rules: &Arc<KoalaRules>,
        number: u32,
        request: &Request<'_>,
    ) -> Answer<Result<Option<u64>, StoreAway>> {
        self.metrics().count_operation(Operation::Peek);
        match &self.shared {
            Some(shared) => shared.koala_value(rules, number, request, self.now()),
            None => Answer::Now(Ok(self.engine.koala_value(rules, number, request, self.now()))),
        }
    }

    /// How often each Koala rule let pass and refused today, by this node.
    pub fn koala_tally(&self, rules: &KoalaRules) -> Vec<RuleTally> {
        rules.tally(self.now())
    }
}
