//! Koala's rules beside the policy's: other rules and another way to decide, on the same counters.
//!
//! ```text
//! endpoints ── form, jobs       what Koala's clients send
//!     │
//! Service::koala                a ban by hand, memory at once, or the shared store later
//!     │
//! question                      what is asked of the shared store, and this node's answer while it is away
//!     │
//! answers, metrics              what the clients get; what is counted
//!
//! rule_file                     /v1/koala, what an operator reads
//! ```

mod answers;
mod endpoints;
mod form;
mod jobs;
mod metrics;
mod question;
mod rule_file;

pub(crate) use metrics::{render, tallies};
#[cfg(test)]
pub(crate) use rule_file::ROUTES;
pub(crate) use rule_file::answer;

use std::sync::Arc;

use flowgate::{Limit, Reading};
use flowgate_engine::redis::RedisQuestion;
use flowgate_engine::{Explanation, PolicyError, Request};
use flowgate_koala::{KoalaAnswer, KoalaAsk, KoalaErase, KoalaFile, KoalaRules};

use crate::answer::{Answer, Pending};
use crate::fronts::FrontExplanation;
use crate::redis::{Local, OutcomesQuestion};
use crate::service::{Operation, Service, Snapshot, StoreAway};
use answers::Answers;
use question::KoalaQuestion;

/// Koala's rules in force.
#[derive(Debug)]
pub struct KoalaInForce {
    /// The rules.
    pub rules: KoalaRules,
    /// The same rules with this node's shares of the limits, for the time without the shared store; `None` where
    /// counters live in memory.
    local: Option<KoalaRules>,
    answers: Answers,
    /// The rules as a snapshot of the engine, to explain and to reset.
    pub(crate) snapshot: Arc<Snapshot>,
}

impl KoalaInForce {
    /// Compiles a rule file. Today's counts of the rules in `before` continue.
    pub(crate) fn compile(
        service: &Service,
        file: &KoalaFile,
        before: Option<&KoalaInForce>,
    ) -> Result<KoalaInForce, PolicyError> {
        let rules = KoalaRules::new(file.clone(), service.decider.memory(), before.map(|koala| &koala.rules))?;
        let in_shares = |Local { decider, settings }: &Local| {
            rules.with_limits(|limit: &Limit| settings.share_of(limit, settings.on_failure), decider.memory())
        };
        let local = service.shared.as_ref().map(|shared| in_shares(shared.local())).transpose()?;
        let answers = Answers::new(&rules);
        Ok(KoalaInForce::new(rules, local, answers))
    }

    fn new(rules: KoalaRules, local: Option<KoalaRules>, answers: Answers) -> KoalaInForce {
        let snapshot = Snapshot::of_rules(Arc::clone(&rules.set), local.as_ref().map(|local| Arc::clone(&local.set)));
        KoalaInForce { rules, local, answers, snapshot: Arc::new(snapshot) }
    }

    /// A copy that denies nothing.
    pub(crate) fn paused(&self) -> KoalaInForce {
        KoalaInForce::new(self.rules.paused(), self.local.as_ref().map(KoalaRules::paused), self.answers.clone())
    }

    /// What a browse answers to a request, and why.
    pub(crate) fn explained(&self, explanation: Explanation) -> FrontExplanation {
        let answer = self.rules.explained(&explanation);
        let decided = answer.decided();
        let allowed = !answer.banned && decided.is_none_or(|rule| self.rules.result_of(rule).passes());
        let rule = decided.map(|rule| self.rules.rule(rule).name().to_owned());
        FrontExplanation { name: "Koala", allowed, rule, explanation }
    }
}

impl Service {
    /// The Koala rules in force; `None`: Koala is not served.
    pub fn koala_rules(&self) -> Option<Arc<KoalaInForce>> {
        self.snapshot().fronts.koala.clone()
    }

    /// Decides a request by Koala's rules, and adds it to the counts of each rule that it met, except for an update.
    pub fn koala(
        &self,
        koala: &Arc<KoalaInForce>,
        ask: KoalaAsk,
        request: &Request<'_>,
        at: Reading,
    ) -> Answer<KoalaAnswer> {
        let rules = &koala.rules;
        let pending = match (rules.ban(&self.decider, ask, request, self.ban_time(at).now), self.shared.as_ref()) {
            (Some(banned), _) => Pending::Now(banned),
            (None, None) => Pending::Now(rules.decide(&self.decider, ask, request, at.now)),
            (None, Some(shared)) => {
                let plan = rules.plan(ask, request);
                match plan.plan.asks_redis() {
                    true => shared.ask(&KoalaQuestion { koala, ask, plan: &plan, request }, at),
                    false => Pending::Now(rules.conclude(ask, &plan)),
                }
            }
        };
        let is_noted = ask != KoalaAsk::Update || self.observer.begin(Operation::Record);
        match pending {
            Pending::Now(answer) => {
                if is_noted {
                    metrics::note(&self.observer, rules, || request, &answer, at.now);
                }
                self.kept(true, answer, KoalaAnswer::as_stopgap)
            }
            Pending::Later(sent) => self.observer.later(sent, is_noted, at, |observer, question, answer, now| {
                metrics::note(observer, &question.koala.rules, || question.request.get(), answer, now);
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
        let Some(shared) = self.shared.as_ref() else {
            koala.rules.feedback(&self.decider, erase, request, self.now());
            return self.kept(true, Ok(()), |given| given);
        };
        let plans = koala.rules.owned_feedback(erase, request).into_iter();
        let given = plans.map(|plan| shared.ask_redis(OutcomesQuestion { plan, conclude: |_| () }, self.now()));
        Answer::fold(given, Ok(()), Result::and)
    }

    /// What the rule with this number has counted for a request; `None`: no rule has this number.
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
        let Some(shared) = self.shared.as_ref() else {
            return Answer::Now(Ok(koala.rules.value(&self.decider, number, request, self.now())));
        };
        match koala.rules.owned_value(number, request) {
            None => Answer::Now(Ok(None)),
            Some(plan) if plan.groups() == 0 => Answer::Now(Ok(Some(0))),
            Some(plan) => {
                let question = OutcomesQuestion { plan, conclude: KoalaRules::concluded_value };
                shared.ask_redis(question, self.now()).map(|value| value.map(Some))
            }
        }
    }
}
