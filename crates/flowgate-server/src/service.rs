//! What every protocol calls: the engine, and the clock that is read once per call.
//!
//! Rule       A protocol translates bytes into one of these calls and the answer back; it neither reads the clock nor
//!            keeps state of its own about decisions. So all protocols give the same answers.
//! Rule       A call reads the clock once. A caller with several requests at hand (a pipeline, a batch) reads it
//!            once for all, by [`Service::read`], and uses the calls that end in `_at`.
//! Rule       Waits and the ends of bans that a call gives are in real time: the engine converts them by the reading.
//!            What Redis says is on Redis's time and is not converted.
//!
//! Rule       A call never blocks: it may be made from an event loop. Where counters live in memory its answer is there
//!            at once ([`Answer::Now`]) or, with `durable = "always"`, once its change is on the disk; where several nodes
//!            share them, after a round trip.

mod bans;
mod give_back;
mod joint;
mod keys;
mod pause;
mod planned;
mod snapshot;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use flowgate::{Clock, MemoryConfig, MemoryStats, MemoryStore, Op, Reading, Seed, Span, Time};
pub use flowgate_api::Operation;
use flowgate_api::Top;
use flowgate_engine::config::{self, Config, Denials, Durability};
use flowgate_engine::{Decider, Decision, Engine, Explanation, PolicyError, Request, RuleSet};

use crate::answer::Pending;
pub use crate::answer::{Answer, AnswerFuture};
use crate::clock_report;
use crate::durable::{self, Durable};
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::observer::Observer;
use crate::readiness::Readiness;
use crate::recent::Recent;
use crate::redis::{SharedStats, SharedStore};
use crate::server::StartError;
pub use bans::BanError;
pub use joint::JointRequest;
pub(crate) use joint::{PartRules, plan as plan_joint};
pub(crate) use keys::HashedKey;
pub use keys::KeyDecision;
use pause::PauseInForce;
pub use pause::{MAX_PAUSE, Pause};
pub(crate) use planned::TakeWork;
pub use snapshot::Snapshot;

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
/// assert_eq!(decision.remaining(), Some(4));
/// # Ok::<(), flowgate_engine::PolicyError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Service {
    /// Decides in memory, and keeps the bans.
    pub(crate) decider: Arc<Decider>,
    snapshot: Arc<ArcSwap<Snapshot>>,
    pub(crate) clock: Clock,
    pub(crate) observer: Arc<Observer>,
    /// When the service was started.
    pub started: Time,
    /// The store that nodes share; `None`: counters live in the engine's memory.
    pub(crate) shared: Option<Arc<SharedStore>>,
    /// The journal of counters in memory; `None`: they end with the process.
    pub(crate) durable: Option<Arc<Durable>>,
    /// `None` while the rules are in force.
    pause: Arc<Lock<Option<PauseInForce>>>,
}

/// The shared store does not answer, and only the shared store can answer this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shared store does not answer")]
pub struct StoreAway;

/// The answer of a reset.
#[derive(Debug)]
pub(crate) struct Reset<T> {
    /// The answer of a peek of cost 0 after the reset.
    pub(crate) decision: T,
    /// Whether the store has carried out the reset.
    pub(crate) is_done: bool,
}

impl<T> Reset<T> {
    pub(crate) fn into_result(self) -> Result<T, StoreAway> {
        if self.is_done { Ok(self.decision) } else { Err(StoreAway) }
    }

    fn map<U>(self, change: impl FnOnce(T) -> U) -> Reset<U> {
        Reset { decision: change(self.decision), is_done: self.is_done }
    }
}

impl Service {
    /// A service with these rules, empty counters of the size that the configuration allows, and the real clock.
    ///
    /// # Errors
    /// If the rules contradict each other. The rules of a loaded configuration are already checked.
    pub fn start(config: &Config) -> Result<Service, PolicyError> {
        Service::start_with_clock(config, Clock::System)
    }

    /// As [`Service::start`], with another clock: tests bring one that they move by hand.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub fn start_with_clock(config: &Config, clock: Clock) -> Result<Service, PolicyError> {
        let memory = memory_config(config);
        let service = match &config.store.redis {
            None => Service::new(Engine::without_rules(MemoryStore::new(memory)), clock),
            Some(redis) => {
                // The engine's memory stays empty: while Redis is away, the node counts in a memory of its own.
                let service = Service::new(Engine::without_rules(MemoryStore::default()), clock.clone());
                let shared = SharedStore::new(redis, memory, Arc::clone(&service.decider), clock);
                Service { shared: Some(Arc::new(shared)), ..service }
            }
        };
        service.configured(config)
    }

    /// As [`Service::start`], with the counters of the journal if they are durable. Blocks while it reads the journal.
    ///
    /// # Errors
    /// As [`Service::start`], and when the journal cannot be read or written.
    pub(crate) fn open(config: &Config, state: Option<&Path>) -> Result<Service, StartError> {
        if config.store.durable.mode == Durability::Off || config.store.redis.is_some() {
            return Ok(Service::start(config)?);
        }
        let clock = Clock::System;
        let mut opened = durable::open(config, state, memory_config(config), &clock)?;
        let memory = std::mem::take(&mut opened.memory);
        let service = Service::new(Engine::without_rules(memory), clock).configured(config)?;
        let durable = Durable::start(opened, config, &service)?;
        Ok(Service { durable: Some(Arc::new(durable)), ..service })
    }

    fn configured(self, config: &Config) -> Result<Service, PolicyError> {
        let observer = Arc::new(Observer::new(config.log.denials, &config.console, self.clock.clone()));
        let service = Service { observer, ..self };
        service.swap(service.compile(config)?);
        if config.console.sample == config::Sampling::Always {
            let by = crate::http::sample::commonest_field(&service.rules());
            service.recent().sample.start(service.now(), None, by);
        }
        Ok(service)
    }

    /// A service of an engine and a clock: tests bring one that they move by hand.
    pub fn new(engine: Engine, clock: Clock) -> Service {
        let (rules, decider) = engine.into_parts();
        let snapshot = Arc::new(ArcSwap::from_pointee(Snapshot::in_memory(rules, clock.now())));
        let started = clock.now();
        let observer = Arc::new(Observer::new(Denials::Off, &config::Console::default(), clock.clone()));
        Service {
            decider: Arc::new(decider),
            snapshot,
            clock,
            observer,
            started,
            shared: None,
            durable: None,
            pause: Arc::default(),
        }
    }

    /// Starts background tasks on the current runtime: they connect to the shared store, if there is one, watch it, report
    /// its state to `readiness`, and log steps of the wall clock.
    pub fn watch(&self, readiness: &Readiness) {
        clock_report::watch(self.clock.clone(), Arc::downgrade(&self.observer));
        if let Some(shared) = &self.shared {
            shared.redis.health.report_to(readiness.clone());
            shared.watch();
        }
        if let Some(durable) = &self.durable {
            durable.watch(readiness);
        }
    }

    /// The state of the shared store; `None` if counters live in memory.
    pub fn shared_stats(&self) -> Option<SharedStats> {
        self.shared.as_ref().map(|shared| shared.stats())
    }

    /// True if memory decides and answers do not wait for a disk.
    pub(crate) fn answers_at_once(&self) -> bool {
        self.shared.is_none() && !self.durable.as_ref().is_some_and(|durable| durable.is_always)
    }

    /// The time now, for a batch.
    #[inline]
    pub fn read(&self) -> Reading {
        self.clock.read()
    }

    /// The time now.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// A time that no step of the wall clock moves, for measuring how long ago something happened.
    pub(crate) fn monotonic(&self) -> Time {
        self.clock.monotonic()
    }

    /// Decides a request by the rules.
    #[inline]
    pub fn decide(&self, operation: Operation, request: &Request<'_>) -> Answer<Decision> {
        self.decide_at(operation, request, self.read())
    }

    /// As [`Service::decide`], at a time that was read for a batch.
    #[inline]
    pub fn decide_at(&self, operation: Operation, request: &Request<'_>, at: impl Into<Reading>) -> Answer<Decision> {
        self.decide_by(&self.snapshot.load(), operation, request, at.into())
    }

    /// As [`Service::decide_at`], by a snapshot of the rules that the caller holds.
    #[inline]
    pub fn decide_by(
        &self,
        snapshot: &Arc<Snapshot>,
        operation: Operation,
        request: &Request<'_>,
        at: Reading,
    ) -> Answer<Decision> {
        match operation.op() {
            Some(op) => self.decide_op(snapshot, op, operation, request, at),
            None => self.reset_decision(snapshot, request, at).map(|reset| reset.decision),
        }
    }

    /// Takes, for a caller that can delay a request by at most `longest`. A request that would have to wait longer is
    /// denied.
    pub fn take_within(
        &self,
        snapshot: &Arc<Snapshot>,
        longest: Span,
        request: &Request<'_>,
        at: Reading,
    ) -> Answer<Decision> {
        self.decide_op(snapshot, Op::TakeWithin(longest), Operation::Take, request, at)
    }

    /// Resets what matching rules have counted for the request's subjects, and answers as a peek of cost 0 after it.
    ///
    /// # Errors
    /// When the shared store does not answer. ([`Service::decide_by`] answers a degraded peek then.)
    pub fn reset_by(
        &self,
        snapshot: &Arc<Snapshot>,
        request: &Request<'_>,
        at: Reading,
    ) -> Answer<Result<Decision, StoreAway>> {
        self.reset_decision(snapshot, request, at).map(Reset::into_result)
    }

    /// The rules in force, for a caller that plans several takes.
    #[inline]
    pub(crate) fn load_snapshot(&self) -> impl Deref<Target = Arc<Snapshot>> {
        self.snapshot.load()
    }

    /// The hot path: memory decides by a direct call, without a plan that outlives the call.
    #[inline]
    fn decide_op(
        &self,
        snapshot: &Arc<Snapshot>,
        op: Op,
        operation: Operation,
        request: &Request<'_>,
        at: Reading,
    ) -> Answer<Decision> {
        let pending = match &self.shared {
            None => Pending::Now(self.decider.decide_by(&snapshot.rules, op, request, at)),
            Some(shared) => shared.decide(snapshot, op, request, at),
        };
        let is_noted = self.observer.begin(operation);
        match pending {
            Pending::Now(decision) => {
                if is_noted {
                    self.observer.note(|| request, &decision, at.now);
                }
                self.kept(op.changes() && decision.allowed(), decision, Decision::as_stopgap)
            }
            Pending::Later(sent) => self.observer.later(sent, is_noted, at, |observer, question, decision, now| {
                observer.note(|| question.request.get(), decision, now);
            }),
        }
    }

    fn reset_decision(&self, snapshot: &Arc<Snapshot>, request: &Request<'_>, at: Reading) -> Answer<Reset<Decision>> {
        self.observer.begin(Operation::Reset);
        let of_fronts = snapshot.fronts.snapshots().map(|rules| self.forget(rules, request, at));
        Answer::fold(of_fronts, true, |all, reset| all & reset.is_done).with(
            self.forget(snapshot, request, at),
            |all, Reset { decision, is_done }| Reset { decision, is_done: all & is_done },
        )
    }

    /// Resets what the rules of a snapshot, without its fronts, have counted for a request.
    fn forget(&self, snapshot: &Arc<Snapshot>, request: &Request<'_>, at: Reading) -> Answer<Reset<Decision>> {
        match &self.shared {
            None => {
                let decision = self.decider.reset_by(&snapshot.rules, request, at);
                self.kept(true, Reset { decision, is_done: true }, |reset| reset.map(Decision::as_stopgap))
            }
            Some(shared) => shared.reset(snapshot, request, at),
        }
    }

    /// What would be decided for a request by a snapshot, and why: every rule, and the state of its limits.
    pub fn explain(&self, snapshot: &Arc<Snapshot>, request: &Request<'_>) -> Answer<Explanation> {
        match &self.shared {
            None => Answer::Now(self.decider.explain_by(&snapshot.rules, request, self.read())),
            Some(shared) => shared.explain(snapshot, request, self.read()),
        }
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<RuleSet> {
        Arc::clone(&self.snapshot.load().rules)
    }

    /// What is counted, as text for Prometheus. Visits all counters: for a scrape, not for every request.
    pub fn prometheus(&self) -> String {
        crate::metrics::render(self)
    }

    /// The subjects of rules and the keys that asked most in the last minute or two.
    pub fn hottest(&self) -> Top<'static> {
        self.with_bans(self.observer.metrics.hottest.read(self.now()))
    }

    /// The subjects of rules and the keys that were denied most in the last minute or two.
    pub fn most_denied(&self) -> Top<'static> {
        self.with_bans(self.observer.metrics.most_denied.read(self.now()))
    }

    fn with_bans(&self, mut top: Top<'static>) -> Top<'static> {
        for subject in &mut top.subjects {
            let fields = subject.fields.iter().flat_map(|fields| &fields.0);
            subject.banned = self.is_banned_by_hand(fields.map(|(name, value)| (&*name.0, &*value.0)));
        }
        top
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.observer.metrics
    }

    /// What has happened lately.
    pub(crate) fn recent(&self) -> &Recent {
        &self.observer.recent
    }

    /// What the store holds and has evicted or refused. For reports, not for every request.
    pub fn stats(&self) -> MemoryStats {
        self.local_memory().stats()
    }

    /// The memory in which this node counts, always or while the shared store is away.
    fn local_memory(&self) -> &MemoryStore {
        self.shared.as_ref().map_or_else(|| self.decider.memory(), |shared| shared.local().decider.memory())
    }
}

/// The size of the memory, and a random seed.
fn memory_config(config: &Config) -> MemoryConfig {
    let max_bytes = usize::try_from(config.store.max_memory.bytes()).unwrap_or(usize::MAX);
    MemoryConfig { max_bytes, when_full: config.store.when_full, seed: Seed::random() }
}

#[cfg(test)]
mod tests {
    use flowgate::ManualClock;
    use flowgate_engine::Policy;

    use super::*;

    const START: Time = Time::from_secs(1_700_000_000);

    pub(super) fn service(toml: &str) -> (Service, ManualClock) {
        let config = Config::from_toml(toml).unwrap();
        let clock = ManualClock::new(START);
        let engine = Engine::new(&config.policy, MemoryStore::default()).unwrap();
        (Service::new(engine, clock.clone().into()), clock)
    }

    /// Counters in memory are decided at once.
    #[track_caller]
    pub(super) fn now<T>(answer: Answer<T>) -> T {
        answer.now().unwrap()
    }

    #[test]
    fn every_operation_on_the_fields_of_a_request() {
        let (service, clock) = service(r#"rule = [{ name = "reply", by = ["user"], limits = ["2/60s"] }]"#);
        let request = Request::new().field("user", "42");
        let left = |operation| now(service.decide(operation, &request)).remaining();
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
    fn other_rules_go_in_force_whole_and_keep_what_was_counted() {
        let (service, _) = service(r#"rule = [{ name = "reply", by = ["user"], limits = ["2/60s"] }]"#);
        let request = Request::new().field("user", "42");
        now(service.decide(Operation::Take, &request));
        let more = Config::from_toml(r#"rule = [{ name = "reply", by = ["user"], limits = ["5/60s"] }]"#).unwrap();
        service.replace(&more.policy).unwrap();
        assert_eq!(now(service.decide(Operation::Peek, &request)).remaining(), Some(4));
        let twice = Policy { rules: [more.policy.rules.clone(), more.policy.rules].concat(), ..Policy::default() };
        assert!(service.replace(&twice).is_err());
        assert_eq!(service.rules().rules.len(), 1);
        assert!(now(service.explain(&service.snapshot(), &request)).decision.allowed());
        assert_eq!(service.stats().counters, 1);
    }
}
