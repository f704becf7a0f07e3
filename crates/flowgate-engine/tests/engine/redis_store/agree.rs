//! Random rules and traces: decision by decision, Redis says what memory says.

use flowgate::{MemoryStore, Op, Span, Time};
use flowgate_engine::{
    AdHoc, Decision, Engine, Limits, Policy, Request, RuleDef,
    rules::{BanDef, BanScope, Condition, Matcher},
};
use flowgate_testkit::properties::specs::{SECONDS, Spec, Step, any_spec, any_step};
use flowgate_testkit::redis::Redis;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

use crate::redis_engine::RedisEngine;

/// The last microsecond of the year 2127: what comes later may be owed beyond what a double holds.
pub(super) const LAST: u64 = 4_985_971_199_999_999;

const USERS: [&str; 2] = ["a", "b"];

#[derive(Clone, Debug)]
pub(super) struct RuleSpec {
    pub(super) limits: Vec<Spec>,
    /// By user, by address, or for all.
    by: usize,
    count_denied: bool,
    shadow: bool,
    pub(super) ban: Option<BanDef>,
    /// Matches half of the requests.
    half: bool,
}

#[derive(Clone, Debug)]
struct Trace {
    rules: Vec<RuleSpec>,
    /// Ends with a rule that denies at once.
    closed: bool,
    start: u64,
    /// Each with the user, and the rule whose numbers it aims at.
    steps: Vec<(Step, usize, prop::sample::Index)>,
}

/// Numbers as large as can be written, and with the finest fractions.
fn huge() -> impl Strategy<Value = Spec> {
    prop::sample::select(vec![
        "bucket 1000000000000/1us",
        "bucket 1000000000000/366d burst=1000000000000",
        "bucket 999999999999.5/7us burst=1000000000000",
        "bucket 123456789.123457/59s burst=999999999999",
        "bucket 99999999.999999/366d burst=999999",
        "bucket 0.000001/31s burst=100",
        "pace 0.000001/31s burst=3 max_wait=none",
        "pace 3/366d burst=99 max_wait=300d",
        "pace 1000000000000/1s burst=7 max_wait=1us",
        "sliding 1000000000000/366d",
        "sliding 999999999999/1us",
        "fixed 1000000000000/1us",
        "fixed 1000000000000/month tz=America/New_York",
        "approx 4000000000/366d",
        "approx 3999999999/1us",
        "approx 3999999999/31622399s after=1000000000000/month tz=Asia/Shanghai",
    ])
    .prop_map(|text| Spec::parse(text).unwrap())
}

pub(super) fn rule_spec() -> impl Strategy<Value = RuleSpec> {
    let ban =
        (1..4u64, 1..100_000_000u64, prop::collection::vec(1..5_000_000u64, 1..3), 0..9_000_000u64, any::<bool>());
    let micros = Span::from_micros;
    let ban = ban.prop_map(move |(after, within, lengths, forget, everywhere)| BanDef {
        after,
        within: micros(within),
        lengths: lengths.into_iter().map(micros).collect(),
        forget: micros(forget),
        scope: if everywhere { BanScope::Subject } else { BanScope::Rule },
    });
    let limits = prop::collection::vec(prop_oneof![5 => any_spec(), 1 => huge()], 1..3);
    let half = prop::bool::weighted(0.3);
    (limits, 0..3usize, any::<bool>(), prop::bool::weighted(0.2), prop::option::weighted(0.3, ban), half).prop_map(
        |(limits, by, count_denied, shadow, ban, half)| RuleSpec {
            limits,
            by,
            count_denied,
            shadow,
            ban: ban.filter(|_| by < 2),
            half,
        },
    )
}

fn trace() -> impl Strategy<Value = Trace> {
    let rules = prop_oneof![prop::collection::vec(rule_spec(), 1), prop::collection::vec(rule_spec(), 1..4)];
    let start = prop_oneof![1 => Just(0), 4 => 1_700_000_000..1_734_000_000u64, 1 => 0..2_000_000_000u64];
    let steps = prop::collection::vec((any_step(), 0..USERS.len(), any::<prop::sample::Index>()), 1..40);
    (rules, prop::bool::weighted(0.1), start, steps).prop_map(|(rules, closed, start, steps)| Trace {
        rules,
        closed,
        start: start * SECONDS,
        steps,
    })
}

#[derive(Clone, Copy)]
enum Times {
    /// None before the one before.
    Forward,
    /// Also times that run back, each within this number of nanoseconds of the start.
    Within(u64),
}

/// The rules as a policy has them.
pub(super) fn written(rules: &[RuleSpec]) -> Vec<RuleDef> {
    let rule = |(number, spec): (usize, &RuleSpec)| RuleDef {
        when: spec.half.then(|| Condition::new("act", Matcher::equal("x"))).into_iter().collect(),
        by: [&["user"][..], &["ip"], &[]][spec.by].iter().map(|field| (*field).to_owned()).collect(),
        limits: Limits::Fixed(spec.limits.iter().map(|spec| spec.limit.clone()).collect()),
        count_denied: spec.count_denied,
        shadow: spec.shadow,
        ban: spec.ban.clone(),
        ..RuleDef::named(format!("r{number}"))
    };
    rules.iter().enumerate().map(rule).collect()
}

impl Trace {
    fn rules(&self) -> Vec<RuleDef> {
        let mut rules = written(&self.rules);
        rules.extend(self.closed.then(|| RuleDef::named("closed")));
        rules
    }

    /// Asks the engine in memory and `other` the same, in whole microseconds; which times are seen to.
    fn run(
        &self,
        times: Times,
        mut other: impl FnMut(Op, &Request<'_>, Time) -> Decision,
    ) -> Result<(), TestCaseError> {
        let policy = Policy { rules: self.rules(), ..Policy::default() };
        let memory = Engine::new(&policy, MemoryStore::default()).unwrap();
        let mut now = self.start;
        let mut last: Option<flowgate::Decision> = None;
        for (number, (step, user, aim)) in self.steps.iter().enumerate() {
            let limits: Vec<&Spec> = self.rules.iter().flat_map(|rule| &rule.limits).collect();
            let spec = limits[aim.index(limits.len())];
            let then = step.time(spec, now, last.as_ref());
            // A wait with a fraction of a microsecond is rounded up and down in turn.
            let then = if number % 2 == 0 { then.div_ceil(1000) } else { then / 1000 } * 1000;
            now = match times {
                Times::Forward => then.max(now),
                Times::Within(span) => then.min(self.start + span),
            };
            if now / 1000 > LAST {
                return Ok(());
            }
            let cost = step.cost(spec, last.as_ref());
            let act = ["x", "y"][aim.index(2)];
            let request = Request::new().field("user", USERS[*user]).field("ip", "::1").field("act", act).cost(cost);
            let time = Time::from_nanos(now);
            let expected = memory.decide(step.op, &request, time);
            let found = other(step.op, &request, time);
            prop_assert_eq!(
                said(&found),
                said(&expected),
                "step {}: {:?} {} by {} at {:?}",
                number,
                step.op,
                cost,
                USERS[*user],
                time
            );
            last = Some(expected.numbers);
        }
        Ok(())
    }
}

/// Everything that a decision says.
pub(crate) fn said(decision: &Decision) -> String {
    let (numbers, matched, banned_until) = (&decision.numbers, decision.matched(), decision.banned_until());
    let decided_by = std::mem::discriminant(&decision.decided_by);
    let rule = decision.rule().map(|rule| rule.name());
    let exceeded: Vec<String> =
        decision.exceeded().iter().map(|e| format!("{} {} {:?}", e.rule.name(), e.limit, e.retry)).collect();
    let shadow: Vec<&str> = decision.shadow.iter().map(|rule| rule.name()).collect();
    format!("{numbers:?} {decided_by:?} {rule:?} {matched} {exceeded:?} {shadow:?} {banned_until:?}")
}

/// The same traces in every run, so that a failure comes from a change. `PROPTEST_RNG_SEED` chooses others, and
/// `PROPTEST_CASES`, which is 256 otherwise, makes more of all of them.
pub(crate) fn config(cases: u32) -> Config {
    let cases = cases * Config::default().cases / 256;
    let rng_seed = match Config::default().rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        chosen => chosen,
    };
    Config { cases, rng_seed, max_shrink_iters: 3000, failure_persistence: None, ..Config::default() }
}

pub(crate) fn flush(connection: &mut redis::Connection) {
    redis::cmd("FLUSHALL").query::<()>(connection).unwrap();
}

#[test]
fn stores_agree_on_random_rules_and_traces() {
    let server = Redis::start();
    let result = TestRunner::new(config(600)).run(&trace(), |trace| {
        let mut redis = RedisEngine::new(&trace.rules(), server.connect());
        flush(&mut redis.connection);
        trace.run(Times::Forward, |op, request, now| redis.decide(op, request, now))
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// In a cluster each subject is decided by itself and what was taken is rolled back. At one and the same time that
/// comes to the same, but where a ban stops what another place has counted.
#[test]
fn stores_agree_on_groups_that_are_rolled_back() {
    let server = Redis::start();
    let result = TestRunner::new(config(400)).run(&trace(), |mut trace| {
        trace.rules.iter_mut().for_each(|rule| rule.ban = None);
        let mut redis = RedisEngine::new(&trace.rules(), server.connect());
        flush(&mut redis.connection);
        trace.run(Times::Forward, |op, request, now| redis.decide_in_groups(op, request, now))
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// A clock that runs back a few milliseconds, over periods so long that memory has nothing to forget meanwhile.
#[test]
fn stores_agree_when_the_clock_runs_back() {
    let server = Redis::start();
    let specs = prop::sample::select(vec![
        "bucket 7/1d burst=5",
        "bucket 123456.789/1d",
        "pace 7/1d burst=2 max_wait=10h",
        "fixed 5/1d",
        "fixed 5/366d after=3/366d",
        "sliding 5/1d",
        "sliding 2000/1d",
        "approx 5/1d",
        "sliding 3/1d after=2/1d",
    ]);
    let rule = (specs, any::<bool>()).prop_map(|(text, count_denied)| RuleSpec {
        limits: vec![Spec::parse(text).unwrap()],
        by: 0,
        count_denied,
        shadow: false,
        ban: None,
        half: false,
    });
    let step = (any_step(), Just(0), any::<prop::sample::Index>());
    let traces = (prop::collection::vec(rule, 1..3), prop::collection::vec(step, 1..20));
    let result = TestRunner::new(config(200)).run(&traces, |(rules, steps)| {
        let trace = Trace { rules, closed: false, start: 1_700_000_000 * SECONDS, steps };
        let mut redis = RedisEngine::new(&trace.rules(), server.connect());
        flush(&mut redis.connection);
        trace.run(Times::Within(10_000 * SECONDS), |op, request, now| redis.decide(op, request, now))
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// One key, and limits that change from call to call: other counts, other algorithms, with and without `after=`.
#[test]
fn stores_agree_on_ad_hoc_keys_whose_limits_change() {
    let server = Redis::start();
    // Their intervals are whole microseconds: a remainder has no meaning to a limit of another count.
    let texts = [
        "unlimited",
        "bucket 5/s",
        "bucket 10/s burst=3",
        "bucket 10/s after=2/10s",
        "pace 10/s",
        "pace 5/s max_wait=3s",
        "fixed 3/s",
        "fixed 5/s",
        "fixed 2/s after=3/10s",
        "sliding 3/s",
        "sliding 5/s",
        "sliding 2/s after=2/5s",
        "approx 5/s",
        "approx 3/2s",
        "approx 7/s after=1/3s",
    ];
    let within = (0..2_000_000_u64).prop_map(|micros| Op::TakeWithin(Span::from_micros(micros)));
    let op = prop_oneof![
        3 => Just(Op::Take),
        1 => within,
        3 => prop::sample::select(vec![Op::Peek, Op::Record, Op::Refund]),
    ];
    // Mostly the same limit as before, so that there is something to find.
    let limit = prop_oneof![3 => Just(None), 2 => prop::sample::select(texts.to_vec()).prop_map(Some)];
    let step = (op, limit, 0..4u64, prop_oneof![Just(0), 1..2_000_000u64, Just(100_000u64), Just(12_000_000u64)]);
    let steps = prop::collection::vec(step, 1..40);
    let result = TestRunner::new(config(300)).run(&steps, |steps| {
        let memory = Engine::new(&Policy::default(), MemoryStore::default()).unwrap();
        let mut redis = RedisEngine::new(&[], server.connect());
        flush(&mut redis.connection);
        let (mut now, mut text) = (1_700_000_000_000_000, texts[1]);
        for (op, change, cost, gap) in steps {
            now += gap;
            text = change.unwrap_or(text);
            let limit = text.parse().unwrap();
            let call = AdHoc { key: b"key: \xff{}".into(), limit: &limit, cost };
            let time = Time::from_micros(now);
            let expected = memory.limit(op, call, time);
            prop_assert_eq!(redis.limit(op, call, time), expected, "{:?} {} {} at {}", op, text, cost, now);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// What is owed for a part of the microsecond that has begun is still owed, also where a call touches only what
/// `after=` counts.
#[test]
fn stores_agree_on_debts_within_a_microsecond() {
    let server = Redis::start();
    let (start, owed_until) = (1_700_000_000_000_000, 1_700_000_000_000_234);
    for text in ["bucket 91/10655us burst=12 after=1/1us", "pace 91/10655us burst=12 max_wait=none after=1/1us"] {
        let rules = [RuleDef {
            by: vec!["user".into()],
            limits: Limits::Fixed(vec![text.parse().unwrap()]),
            ..RuleDef::named("r")
        }];
        let memory =
            Engine::new(&Policy { rules: rules.to_vec(), ..Policy::default() }, MemoryStore::default()).unwrap();
        let mut redis = RedisEngine::new(&rules, server.connect());
        flush(&mut redis.connection);
        let request = Request::new().field("user", "a");
        // Two units are owed for 234.2 microseconds; the free one that is given back at 234 was never taken.
        for (op, at) in [(Op::Take, start), (Op::Take, start), (Op::Refund, owed_until), (Op::Take, owed_until)] {
            let time = Time::from_micros(at);
            let expected = said(&memory.decide(op, &request, time));
            assert_eq!(said(&redis.decide(op, &request, time)), expected, "{text}: {op:?} at {at}");
        }
    }
}

#[test]
fn stores_agree_on_the_algorithm_of_a_key_within_a_microsecond() {
    let server = Redis::start();
    let memory = Engine::new(&Policy::default(), MemoryStore::default()).unwrap();
    let mut redis = RedisEngine::new(&[], server.connect());
    flush(&mut redis.connection);
    // A unit is owed for 333.3 microseconds.
    for (text, at, is_free) in [("bucket 3/ms", 0, true), ("fixed 3/s", 333, false), ("fixed 3/s", 334, true)] {
        let limit = text.parse().unwrap();
        let call = AdHoc { key: b"key".into(), limit: &limit, cost: 1 };
        let time = Time::from_micros(1_700_000_000_000_000 + at);
        let expected = memory.limit(Op::Take, call, time);
        assert_eq!(expected.is_ok(), is_free, "{text} at {at}");
        assert_eq!(redis.limit(Op::Take, call, time), expected, "{text} at {at}");
    }
}
