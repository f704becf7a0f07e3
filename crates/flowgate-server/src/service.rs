//! What every protocol calls: the engine, and the clock that is read once per call.
//!
//! Rule       A protocol translates bytes into one of these calls and the answer back; it neither reads the clock nor
//!            keeps state of its own about decisions. So all protocols give the same answers.
//! Rule       A call reads the clock once. Whoever has several requests at hand (a pipeline, a batch) reads it
//!            once for all, by [`Service::now`], and uses the calls that end in `_at`.
//!
//! Rule       A call never blocks: it may be made from an event loop. Where counters live in memory its answer is there
//!            at once ([`Answer::Now`]); where several nodes share them, after a round trip.

mod koala;

use std::sync::Arc;

use flowgate::{
    Clock, Key, Memory, MemoryConfig, MemoryStats, Op, OtherAlgorithm, Seed, Span, Throttle, ThrottleError,
    ThrottleReply, Time,
};
use flowgate_engine::config::{Config, Denials};
use flowgate_engine::{
    AdHoc, BanOrder, BanOrderError, Decision, Engine, Explanation, ManualBan, Policy, PolicyError, Request, RuleBan,
    RuleSet,
};

pub use crate::answer::{Answer, Awaited};
use crate::metrics::{Metrics, Top};
use crate::observer::Observer;
use crate::readiness::Readiness;
use crate::redis::{SharedStats, SharedStore};

/// The rules in force, their counters and bans, and the clock. Clones are the same service.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use flowgate_engine::{Request, config::Config};
/// use flowgate_server::{Operation, Service};
///
/// let config = Config::from_toml(r#"rule = [{ name = "reply", by = ["user"], limits = ["5/60s"] }]"#).unwrap();
/// let service = Service::start(&config)?;
/// let decision = service.decide(Operation::Take, &Request::new().field("user", "42")).await;
/// assert_eq!(decision.remaining, Some(4));
/// # Ok::<(), flowgate_engine::PolicyError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Service {
    engine: Arc<Engine>,
    clock: Clock,
    observer: Arc<Observer>,
    started: Time,
    /// Where counters live, unless in the engine's memory.
    shared: Option<Arc<SharedStore>>,
    koala: Arc<koala::InForce>,
}

/// What a caller asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// Check and count, in one step.
    #[default]
    Take,
    /// Would it pass? Changes nothing.
    Peek,
    /// Count, whatever the limits say.
    Record,
    /// Give back; never beyond a fresh state.
    Refund,
    /// Forget what was counted for the subject. Answers how things stand then.
    Reset,
}

/// An ad hoc key that was [expected](Service::expect): where it is counted is known already.
#[derive(Clone, Copy, Debug)]
pub struct Expected(Key);

/// The answer of a limit that the caller brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyDecision {
    /// May it happen, what is left, when to come back.
    pub decision: flowgate::Decision,
    /// Whether the store was away and the answer is a stopgap.
    pub degraded: bool,
}

impl KeyDecision {
    /// The store's own word.
    fn certain(decision: flowgate::Decision) -> KeyDecision {
        KeyDecision { decision, degraded: false }
    }
}

/// The store that the nodes share does not answer, and what was asked can only be answered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shared store does not answer")]
pub struct StoreAway;

/// Why a ban cannot be imposed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BanError {
    /// It makes no sense.
    #[error(transparent)]
    Order(#[from] BanOrderError),
    /// Other nodes would not learn of it.
    #[error(transparent)]
    Away(#[from] StoreAway),
}

impl Service {
    /// A service with these rules, empty counters of the size that the configuration allows, and the real clock.
    ///
    /// # Errors
    /// When the rules do not fit together, which those of a configuration that was loaded do.
    pub fn start(config: &Config) -> Result<Service, PolicyError> {
        let max_bytes = usize::try_from(config.store.max_memory.bytes()).unwrap_or(usize::MAX);
        let memory = MemoryConfig { max_bytes, when_full: config.store.when_full, seed: Seed::random() };
        let service = match &config.store.redis {
            None => {
                let engine = Engine::new(&config.policy, Memory::new(memory))?;
                Service::new(Arc::new(engine), Clock::System).log_denials(config.log.denials)
            }
            Some(redis) => {
                // What this node counts itself while Redis is away lies elsewhere: these stay empty.
                let engine = Arc::new(Engine::new(&config.policy, Memory::default())?);
                let shared = SharedStore::new(redis, memory, &config.policy, Arc::clone(&engine), Clock::System)?;
                let service = Service::new(engine, Clock::System).log_denials(config.log.denials);
                Service { shared: Some(Arc::new(shared)), ..service }
            }
        };
        service.replace_koala(config.koala_file.as_deref())?;
        Ok(service)
    }

    /// A service of an engine and a clock: tests bring one that they move by hand.
    pub fn new(engine: Arc<Engine>, clock: Clock) -> Service {
        let started = clock.now();
        let observer = Arc::new(Observer::new(Denials::Off, clock.clone()));
        Service { engine, clock, observer, started, shared: None, koala: Arc::default() }
    }

    /// Logs denials. To be called before anything is decided: counts begin anew.
    #[must_use]
    pub fn log_denials(self, denials: Denials) -> Service {
        Service { observer: Arc::new(Observer::new(denials, self.clock.clone())), ..self }
    }

    /// Connects to the shared store, if there is one, keeps looking after it, and tells `readiness` how it is. Needs a
    /// runtime, which does all that.
    pub fn watch(&self, readiness: &Readiness) {
        if let Some(shared) = &self.shared {
            shared.report_to(readiness.clone());
            shared.watch();
        }
    }

    /// How the shared store is; `None` where counters live in memory.
    pub fn shared_stats(&self) -> Option<SharedStats> {
        self.shared.as_ref().map(|shared| shared.stats())
    }

    /// The time now, for a batch.
    #[inline]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Decides a request by the rules.
    #[inline]
    pub fn decide(&self, operation: Operation, request: &Request<'_>) -> Answer<Decision> {
        self.decide_at(operation, request, self.now())
    }

    /// As [`Service::decide`], at a time that was read for a batch.
    #[inline]
    pub fn decide_at(&self, operation: Operation, request: &Request<'_>, now: Time) -> Answer<Decision> {
        let answer = self.decide_unnoted(operation.op(), request, now);
        self.observer.decision(operation, request, now, answer)
    }

    /// Takes, for a caller who cannot be held for longer than `longest`: a turn further away is denied.
    pub fn take_within(&self, longest: Span, request: &Request<'_>) -> Answer<Decision> {
        let now = self.now();
        let answer = self.decide_unnoted(Some(Op::TakeWithin(longest)), request, now);
        self.observer.decision(Operation::Take, request, now, answer)
    }

    /// `None`: forgets.
    #[inline]
    fn decide_unnoted(&self, op: Option<Op>, request: &Request<'_>, now: Time) -> Answer<Decision> {
        match (&self.shared, op) {
            (None, Some(op)) => Answer::Now(self.engine.decide(op, request, now)),
            (None, None) => Answer::Now(self.engine.reset(request, now)),
            (Some(shared), Some(op)) => shared.decide(op, request, now),
            (Some(shared), None) => shared.reset(request, now),
        }
    }

    /// Applies a limit that the caller brings to a key of the caller's.
    ///
    /// # Errors
    /// When the key is in use by a limit of another algorithm. A reset has no such error: it frees the key.
    #[inline]
    pub fn limit(&self, operation: Operation, call: AdHoc<'_>) -> Answer<Result<KeyDecision, OtherAlgorithm>> {
        self.limit_at(operation, call, self.now())
    }

    /// As [`Service::limit`], at a time that was read for a batch.
    ///
    /// # Errors
    /// As [`Service::limit`].
    #[inline]
    pub fn limit_at(
        &self,
        operation: Operation,
        call: AdHoc<'_>,
        now: Time,
    ) -> Answer<Result<KeyDecision, OtherAlgorithm>> {
        let answer = match (&self.shared, operation.op()) {
            (None, Some(op)) => Answer::Now(self.engine.limit(op, call, now).map(KeyDecision::certain)),
            (None, None) => {
                self.engine.limit_reset(call.key);
                let peek = self.engine.limit(Op::Peek, AdHoc { cost: 0, ..call }, now);
                Answer::Now(peek.map(KeyDecision::certain))
            }
            (Some(shared), Some(op)) => shared.limit(op, call, now),
            (Some(shared), None) => shared.limit_reset(call, now),
        };
        self.observer.key_answer(operation, call.key, now, answer)
    }

    /// Answers a call of `CL.THROTTLE` on a key of the caller's, which may have been [expected](Service::expect), at a
    /// time that was read for a batch. It is not counted: whoever has a batch counts it at once.
    ///
    /// # Errors
    /// When the key is in use by a limit, or the numbers do not fit.
    #[inline]
    pub fn throttle_at(
        &self,
        key: &[u8],
        expected: Option<Expected>,
        throttle: &Throttle,
        now: Time,
    ) -> Answer<Result<ThrottleReply, ThrottleError>> {
        match &self.shared {
            None => {
                let key = expected.map_or_else(|| self.engine.ad_hoc_key(key), |Expected(key)| key);
                Answer::Now(self.engine.throttle(key, throttle, now))
            }
            Some(shared) => shared.throttle(key, throttle, now),
        }
    }

    /// Says that an ad hoc key will be asked for in a moment. Changes nothing but how soon it is at hand.
    #[inline]
    pub fn expect(&self, key: &[u8]) -> Expected {
        let key = self.engine.ad_hoc_key(key);
        self.engine.expect(key);
        Expected(key)
    }

    /// How long an ad hoc key lives on; `None` when it is as if never used.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn key_lifetime(&self, key: &[u8]) -> Answer<Result<Option<Span>, StoreAway>> {
        self.key_lifetime_at(key, self.now())
    }

    /// As [`Service::key_lifetime`], at a time that was read for a batch.
    ///
    /// # Errors
    /// As [`Service::key_lifetime`].
    pub fn key_lifetime_at(&self, key: &[u8], now: Time) -> Answer<Result<Option<Span>, StoreAway>> {
        match &self.shared {
            None => Answer::Now(Ok(self.engine.limit_lifetime(key, now))),
            Some(shared) => shared.key_lifetime(key),
        }
    }

    /// Forgets an ad hoc key; true when it differed from one that was never used.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn key_reset(&self, key: &[u8]) -> Answer<Result<bool, StoreAway>> {
        self.key_reset_at(key, self.now())
    }

    /// As [`Service::key_reset`], at a time that was read for a batch.
    ///
    /// # Errors
    /// As [`Service::key_reset`].
    pub fn key_reset_at(&self, key: &[u8], now: Time) -> Answer<Result<bool, StoreAway>> {
        if let Some(shared) = &self.shared {
            return shared.key_reset(key);
        }
        // A counter that has run out may still lie in the table; to callers it is gone.
        let lived = self.engine.limit_lifetime(key, now).is_some();
        Answer::Now(Ok(self.engine.limit_reset(key) && lived))
    }

    /// Why a request would be decided as it would be: every rule, and how its limits stand.
    pub fn explain(&self, request: &Request<'_>) -> Answer<Explanation> {
        match &self.shared {
            None => Answer::Now(self.engine.explain(request, self.now())),
            Some(shared) => shared.explain(request, self.now()),
        }
    }

    /// Bans a value of a field, in place of an earlier ban of the same.
    ///
    /// # Errors
    /// When the value is neither a text nor addresses, there are too many bans, or the shared store does not answer.
    pub fn ban(&self, order: BanOrder<'_>) -> Answer<Result<Arc<ManualBan>, BanError>> {
        match &self.shared {
            None => Answer::Now(self.engine.ban(order, self.now()).map_err(BanError::Order)),
            Some(shared) => shared.ban(order, self.now()),
        }
    }

    /// Lifts a ban by its id, whoever imposed it; false when there is none.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn unban(&self, id: u64) -> Answer<Result<bool, StoreAway>> {
        match &self.shared {
            None => Answer::Now(Ok(self.engine.unban(id, self.now()))),
            Some(shared) => shared.unban(id, self.now()),
        }
    }

    /// Lifts the ban by hand of a field's value as it was given; false when there is none.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn unban_value(&self, field: &str, value: &str) -> Answer<Result<bool, StoreAway>> {
        match &self.shared {
            None => Answer::Now(Ok(self.engine.unban_value(field, value, self.now()))),
            Some(shared) => shared.unban_value(field, value, self.now()),
        }
    }

    /// The bans by hand that are in force, oldest first.
    pub fn bans(&self) -> Vec<Arc<ManualBan>> {
        self.engine.bans(self.now())
    }

    /// The fields by whose values somebody is banned by hand.
    pub fn ban_fields(&self) -> Vec<Arc<str>> {
        self.engine.ban_fields()
    }

    /// Whether some rule, or some Koala rule, looks at a field or counts by it.
    pub fn uses_field(&self, field: &str) -> bool {
        let koala = self.koala_rules();
        self.rules().field_names().any(|name| name == field) || koala.is_some_and(|rules| rules.uses_field(field))
    }

    /// The bans by rules that are in force, oldest first.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn rule_bans(&self) -> Answer<Result<Vec<RuleBan>, StoreAway>> {
        Answer::Now(Ok(self.engine.rule_bans(self.now())))
    }

    /// Puts other rules and lists in force, whole: requests under way finish with the old ones. Counters live on
    /// where their rule's name and `by` and their limit's algorithm and period stay.
    ///
    /// # Errors
    /// When the rules do not fit together; then nothing has changed.
    pub fn replace(&self, policy: &Policy) -> Result<(), PolicyError> {
        self.engine.replace(policy)?;
        self.shared.as_ref().map_or(Ok(()), |shared| shared.replace(policy))
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<RuleSet> {
        self.engine.rules()
    }

    /// What is counted, as text for Prometheus. Visits all counters: for a scrape, not for every request.
    pub async fn prometheus(&self) -> String {
        crate::metrics::render(self).await
    }

    /// Who asked most in the last minute or two: subjects of rules, and keys.
    pub fn hottest(&self) -> Top {
        self.observer.metrics.hottest.read(self.now())
    }

    /// Who was denied most in the last minute or two.
    pub fn most_denied(&self) -> Top {
        self.observer.metrics.most_denied.read(self.now())
    }

    /// When the service was started.
    pub fn started(&self) -> Time {
        self.started
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.observer.metrics
    }

    pub(crate) fn observer(&self) -> &Arc<Observer> {
        &self.observer
    }

    /// What the store holds and had to give up. Visits all of it: for a report, not for every request.
    pub fn stats(&self) -> MemoryStats {
        self.shared.as_ref().map_or_else(|| self.engine.memory().stats(), |shared| shared.local_stats())
    }
}

impl Operation {
    /// What it asks of counters; `None`: to forget them.
    fn op(self) -> Option<Op> {
        match self {
            Operation::Take => Some(Op::Take),
            Operation::Peek => Some(Op::Peek),
            Operation::Record => Some(Op::Record),
            Operation::Refund => Some(Op::Refund),
            Operation::Reset => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use flowgate::{Limit, ManualClock};

    use super::*;

    const START: Time = Time::from_secs(1_700_000_000);

    fn service(toml: &str) -> (Service, ManualClock) {
        let config = Config::from_toml(toml).unwrap();
        let clock = ManualClock::new(START);
        let engine = Engine::new(&config.policy, Memory::default()).unwrap();
        (Service::new(Arc::new(engine), clock.clone().into()), clock)
    }

    /// Counters in memory answer at once.
    #[track_caller]
    fn now<T>(answer: Answer<T>) -> T {
        answer.now().unwrap()
    }

    #[test]
    fn every_operation_on_the_fields_of_a_request() {
        let (service, clock) = service(r#"rule = [{ name = "reply", by = ["user"], limits = ["2/60s"] }]"#);
        let request = Request::new().field("user", "42");
        let left = |operation| now(service.decide(operation, &request)).remaining;
        assert_eq!(left(Operation::Take), Some(1));
        assert_eq!(left(Operation::Peek), Some(1), "a peek changes nothing");
        assert_eq!(left(Operation::Record), Some(0));
        assert!(!now(service.decide(Operation::Take, &request)).allowed());
        assert_eq!(left(Operation::Refund), Some(1));
        assert_eq!(left(Operation::Reset), Some(2));
        now(service.decide(Operation::Record, &request.clone().cost(2)));
        let (at, later) = (service.now(), service.now() + Span::from_secs(60));
        assert!(!now(service.decide_at(Operation::Take, &request, at)).allowed());
        assert!(now(service.decide_at(Operation::Peek, &request, later)).allowed(), "a batch brings its own time");
        clock.advance(Span::from_secs(60));
        assert!(now(service.decide(Operation::Take, &request)).allowed());
    }

    #[test]
    fn a_key_with_a_limit_of_the_callers() {
        let (service, clock) = service("");
        let (sliding, bucket): (Limit, Limit) = ("2/60s".parse().unwrap(), "bucket 2/60s".parse().unwrap());
        let call = |limit| AdHoc { key: b"k", limit, cost: 1 };
        assert_eq!(now(service.key_lifetime(b"k")), Ok(None));
        assert_eq!(now(service.limit(Operation::Take, call(&sliding))).unwrap().decision.remaining, Some(1));
        assert_eq!(now(service.limit(Operation::Take, call(&bucket))), Err(OtherAlgorithm));
        assert_eq!(now(service.key_lifetime(b"k")), Ok(Some(Span::from_secs(60))));
        assert_eq!(
            now(service.limit(Operation::Reset, call(&bucket))).unwrap().decision.remaining,
            Some(2),
            "a reset frees the key"
        );
        assert_eq!(now(service.limit(Operation::Take, call(&bucket))).unwrap().decision.remaining, Some(1));
        assert_eq!(now(service.key_reset(b"k")), Ok(true));
        assert_eq!(now(service.key_reset(b"k")), Ok(false));
        now(service.limit(Operation::Take, call(&sliding))).unwrap();
        clock.advance(Span::from_secs(60));
        assert_eq!(now(service.key_reset(b"k")), Ok(false), "it has run out by itself");
    }

    #[test]
    fn bans_come_and_go() {
        let (service, clock) = service("");
        let order = |field| BanOrder { field, value: "7", length: Span::from_secs(60), reason: "spam" };
        let banned = |field| !now(service.decide(Operation::Peek, &Request::new().field(field, "7"))).allowed();
        let ban = now(service.ban(order("user"))).unwrap();
        now(service.ban(order("name"))).unwrap();
        assert!(banned("user") && banned("name"));
        assert_eq!(service.bans().len(), 2);
        let unban = |id| now(service.unban(id)).unwrap();
        let unban_value = |field| now(service.unban_value(field, "7")).unwrap();
        assert!(unban(ban.id) && !unban(ban.id));
        assert!(unban_value("name") && !unban_value("name"));
        assert!(!banned("user") && !banned("name"));
        now(service.ban(order("user"))).unwrap();
        clock.advance(Span::from_secs(60));
        assert!(!banned("user") && service.bans().is_empty() && now(service.rule_bans()).unwrap().is_empty());
    }

    #[test]
    fn other_rules_go_in_force_whole_and_keep_what_was_counted() {
        let (service, _) = service(r#"rule = [{ name = "reply", by = ["user"], limits = ["2/60s"] }]"#);
        let request = Request::new().field("user", "42");
        now(service.decide(Operation::Take, &request));
        let more = Config::from_toml(r#"rule = [{ name = "reply", by = ["user"], limits = ["5/60s"] }]"#).unwrap();
        service.replace(&more.policy).unwrap();
        assert_eq!(now(service.decide(Operation::Peek, &request)).remaining, Some(4));
        let twice = Policy { rules: [more.policy.rules.clone(), more.policy.rules].concat(), ..Policy::default() };
        assert!(service.replace(&twice).is_err());
        assert_eq!(service.rules().rules().len(), 1);
        assert!(now(service.explain(&request)).decision.allowed());
        assert_eq!(service.stats().counters, 1);
    }
}
