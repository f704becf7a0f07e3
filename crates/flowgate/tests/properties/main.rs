//! What the algorithms promise, in virtual time, over random limits, costs and arrivals.
//!
//! Each file holds one promise. Random limits and the naive reference come from the testkit. `FLOWGATE_CASES=100`
//! multiplies the number of cases for a long run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bounds;
mod calendars;
mod drift;
mod ends;
mod joint;
mod plans;
mod reference;
mod stepped;
mod waits;

use flowgate::{Ask, CounterId, Decision, Hit, Limit, MemoryConfig, MemoryStore, Op, Plan, RuleFlags, Subject, Time};
use proptest::test_runner::Config;

/// The number of cases, times `FLOWGATE_CASES`.
pub(crate) fn cases(cases: u32) -> Config {
    let times = std::env::var("FLOWGATE_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    Config { failure_persistence: None, max_global_rejects: 1 << 20, ..Config::with_cases(cases * times) }
}

/// A small store with one subject under the limits of one rule.
pub(crate) struct Store {
    memory: MemoryStore,
    limits: Vec<(CounterId, Limit)>,
    flags: RuleFlags,
    subject: Subject,
}

impl Store {
    pub(crate) fn new<'a>(limits: impl IntoIterator<Item = &'a Limit>, count_denied: bool) -> Store {
        let memory = MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, ..MemoryConfig::default() });
        let number = |(index, limit): (usize, &Limit)| (memory.counter(&index.to_le_bytes()), limit.clone());
        let limits = limits.into_iter().enumerate().map(number).collect();
        let subject = memory.subject(b"subject");
        Store { memory, limits, flags: RuleFlags { count_denied, shadow: false }, subject }
    }

    pub(crate) fn from_limit(limit: &str) -> Store {
        Store::new([&limit.parse().unwrap()], false)
    }

    pub(crate) fn apply(&self, op: Op, cost: u64, now: u64) -> Decision {
        self.apply_to(self.subject, op, cost, now)
    }

    /// The fast path for one limit.
    pub(crate) fn apply_one(&self, op: Op, cost: u64, now: u64) -> Decision {
        let (counter, limit) = &self.limits[0];
        self.memory.apply_one(Ask::new(op, cost, Time::from_nanos(now)), self.subject.counter(*counter), limit)
    }

    pub(crate) fn take(&self, cost: u64, now: u64) -> Decision {
        self.apply(Op::Take, cost, now)
    }

    pub(crate) fn peek(&self, cost: u64, now: u64) -> Decision {
        self.apply(Op::Peek, cost, now)
    }

    /// A peek on behalf of a subject that was never seen.
    pub(crate) fn peek_fresh(&self, cost: u64, now: u64) -> Decision {
        self.apply_to(self.memory.subject(b"nobody"), Op::Peek, cost, now)
    }

    fn apply_to(&self, subject: Subject, op: Op, cost: u64, now: u64) -> Decision {
        let hits = self
            .limits
            .iter()
            .map(|(counter, limit)| Hit::new(subject.counter(*counter), limit).in_rule(0, self.flags));
        let mut hits: Vec<Hit<'_>> = hits.collect();
        self.memory.apply(&mut Plan::one(Ask::new(op, cost, Time::from_nanos(now)), &mut hits));
        Decision::from_hits(&hits)
    }
}
