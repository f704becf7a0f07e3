//! Sliding logs that outgrow the value of their subject: the older part has a key of its own.

use std::cell::RefCell;

use flowgate::{MemoryStore, Op, Span, Time};
use flowgate_engine::redis::{OwnedPlan, RedisQuestion, ScriptTime};
use flowgate_engine::{Engine, Policy, Request, RuleDef};
use flowgate_testkit::redis::Redis;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::agree::{config, flush, said};
use crate::redis_engine::{PREFIX, Prepare, RedisEngine, numbers, numbers_and_unreadable};
use crate::script::{Written, at, rule};

/// One limit and two, with and without a grid, beside other algorithms, with denials that count, as a shadow, and of
/// two rules, one of which sees half of the requests.
fn rules() -> Vec<Vec<RuleDef>> {
    let one = |limits: &[&str]| vec![rule("r").by("user").limits(limits)];
    vec![
        one(&["60/10s"]),
        one(&["sliding 90/10s", "sliding 40/2s"]),
        one(&["sliding 3000/1s"]),
        one(&["70/10s", "bucket 50/2s", "fixed 80/5s", "approx 200/3s"]),
        vec![rule("r").by("user").limits(&["50/5s"]).count_denied()],
        vec![rule("r").by("user").limits(&["50/5s", "40/2s"]).ban(3, 2, &[1], 3)],
        vec![
            rule("seen").by("user").limits(&["40/5s"]).shadow(),
            rule("half").by("user").when("act", "x").limits(&["60/10s"]),
            rule("all").by("user").limits(&["90/10s"]),
        ],
        vec![rule("user").by("user").limits(&["60/10s"]), rule("all").limits(&["90/10s"])],
        one(&["60/10s after=30/20s"]),
    ]
}

fn gaps() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0_u64), 6 => 1..1000_u64, 6 => 1000..90_000_u64, 1 => 900_000..4_000_000_u64]
}

fn ops() -> impl Strategy<Value = Op> {
    let rare = prop::sample::select(vec![Op::Record, Op::Refund, Op::Peek, Op::CheckAndRecord]);
    prop_oneof![12 => Just(Op::Take), 1 => rare]
}

#[test]
fn decisions_are_those_of_memory() {
    let server = Redis::start();
    let all = rules();
    let engines: Vec<RedisEngine> = all.iter().map(|rules| RedisEngine::new(rules, server.connect())).collect();
    let engines = RefCell::new(engines);
    let steps = prop::collection::vec((ops(), 1..4_u64, gaps(), any::<bool>()), 1..400);
    let moved_out = RefCell::new(0);
    let result = TestRunner::new(config(60)).run(&(0..all.len(), steps), |(number, steps)| {
        let redis = &mut engines.borrow_mut()[number];
        flush(&mut redis.connection);
        let policy = Policy { rules: all[number].clone(), ..Policy::default() };
        let memory = Engine::new(&policy, MemoryStore::default()).unwrap();
        let mut now = at(0);
        for (op, cost, gap, is_x) in steps {
            now = now + Span::from_micros(gap);
            let act = if is_x { "x" } else { "y" };
            let request = Request::new().field("user", "a").field("act", act).cost(cost);
            let expected = memory.decide(op, &request, now);
            prop_assert_eq!(said(&redis.decide(op, &request, now)), said(&expected), "{:?} {} at {:?}", op, cost, now);
        }
        let keys: Vec<String> = redis::cmd("KEYS").arg("*:2:*").query(&mut redis.connection).unwrap();
        *moved_out.borrow_mut() += keys.len();
        for key in keys {
            let ttl: i64 = redis::cmd("PTTL").arg(&key).query(&mut redis.connection).unwrap();
            prop_assert!(ttl > 0, "{} lives for ever", key);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(*moved_out.borrow() > 20, "logs have become long: {}", moved_out.borrow());
}

#[derive(Clone, Debug)]
enum Step {
    Charge(u64),
    Refund(u64),
    /// Rolls back one of the charges, in the log or not.
    RollBack(prop::sample::Index),
}

/// A charge that was admitted.
struct Charge {
    plan: OwnedPlan,
    reply: Vec<i64>,
    at: Time,
    units: u64,
}

/// A log, told naively: what is left of each charge, oldest first.
fn in_log(charges: &[Charge], now: Time, period: Span) -> u64 {
    charges.iter().filter(|charge| now < charge.at + period).map(|charge| charge.units).sum()
}

/// Rolls back by name, whatever others have appended since, and refunds, on a log in a value and in a key of its own.
#[test]
fn rollbacks_and_refunds_take_out_what_they_name() {
    let server = Redis::start();
    let period = Span::from_secs(3);
    let limits = ["sliding 12/3s", "sliding 200/3s", "sliding 900/3s"];
    let engine =
        |limit: &&str| RedisEngine::new(&[rule("r").by("user").limits(&[*limit, "fixed 9999/1h"])], server.connect());
    let engines: RefCell<Vec<RedisEngine>> = RefCell::new(limits.iter().map(engine).collect());
    let step = prop_oneof![
        10 => (1..4_u64).prop_map(Step::Charge),
        1 => (1..9_u64).prop_map(Step::Refund),
        3 => any::<prop::sample::Index>().prop_map(Step::RollBack),
    ];
    // No two charges share an instant, or their units were interchangeable.
    let gap = prop_oneof![8 => 1..20_000_u64, 1 => 300_000..900_000_u64];
    let steps = prop::collection::vec((gap, step), 1..300);
    let result = TestRunner::new(config(40)).run(&(0..limits.len(), steps), |(number, steps)| {
        let redis = &mut engines.borrow_mut()[number];
        flush(&mut redis.connection);
        let most = [12, 200, 900][number];
        let (mut charges, mut now): (Vec<Charge>, Time) = (Vec::new(), at(0));
        for (gap, step) in steps {
            now = now + Span::from_micros(gap);
            let time = ScriptTime::Injected(now);
            let mut request = Request::new().field("user", "a");
            match step {
                Step::Charge(units) => {
                    request = request.cost(units);
                    let plan = redis.engine.prepare(Op::Take, &request, now);
                    let reply = numbers(&mut redis.connection, &plan.call(None, PREFIX, time, now));
                    if plan.conclude(&[&reply]).unwrap().decision.allowed() {
                        charges.push(Charge { plan, reply, at: now, units });
                    }
                }
                Step::Refund(mut units) => {
                    redis.decide(Op::Refund, &request.cost(units), now);
                    for charge in charges.iter_mut().rev().filter(|charge| now < charge.at + period) {
                        let taken = units.min(charge.units);
                        (charge.units, units) = (charge.units - taken, units - taken);
                    }
                }
                Step::RollBack(which) if !charges.is_empty() => {
                    let nth = which.index(charges.len());
                    let charge = &mut charges[nth];
                    if charge.units > 0 {
                        let call = &charge.plan.undo_calls(PREFIX, time, &[Some(&charge.reply)])[0];
                        prop_assert_eq!(numbers_and_unreadable(&mut redis.connection, call).1, 0);
                        charge.units = 0;
                    }
                }
                Step::RollBack(_) => {}
            }
            let left = left(redis, now)?;
            prop_assert_eq!(left, most - in_log(&charges, now, period));
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// What is left under the first limit.
fn left(redis: &mut RedisEngine, now: Time) -> Result<u64, TestCaseError> {
    let request = Request::new().field("user", "a").cost(0);
    let prepared = redis.engine.prepare(Op::Peek, &request, now);
    let reply = numbers(&mut redis.connection, &prepared.call(None, PREFIX, ScriptTime::Injected(now), now));
    let explained = prepared.explain(&request, &[&reply]).unwrap();
    explained.rules[0].limits[0].outcome.remaining.ok_or_else(|| TestCaseError::fail("no number"))
}

/// A log whose key was lost, or holds something else: its units count until the newest leaves, so nobody gets more.
#[test]
fn a_log_that_was_lost_counts_until_its_newest_unit_leaves() {
    let server = Redis::start();
    for spoil in ["DEL", "SET", "RPUSH", "APPEND"] {
        let mut redis = RedisEngine::new(&[rule("r").by("user").limits(&["100/60s"])], server.connect());
        flush(&mut redis.connection);
        let request = Request::new().field("user", "a");
        for second in 0..40 {
            assert!(redis.decide(Op::Take, &request, at(second)).allowed());
        }
        let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*:2:*").query(&mut redis.connection).unwrap();
        assert_eq!(keys.len(), 1, "{spoil}");
        if spoil != "APPEND" {
            redis::cmd("DEL").arg(&keys[0]).query::<()>(&mut redis.connection).unwrap();
        }
        if spoil != "DEL" {
            redis::cmd(spoil).arg(&keys[0]).arg("x").query::<()>(&mut redis.connection).unwrap();
        }
        let admitted = (0..99).filter(|_| redis.decide(Op::Take, &request, at(50)).allowed()).count();
        assert_eq!(admitted, 60, "{spoil}");
        // Half of the units would have left, had the log not been lost.
        let expected = if spoil == "APPEND" { 30 } else { 0 };
        let later = (0..99).filter(|_| redis.decide(Op::Take, &request, at(89)).allowed()).count();
        assert_eq!(later, expected, "{spoil}");
        assert!(redis.decide(Op::Take, &request, at(99)).allowed(), "{spoil}");
    }
}

/// The key that a call makes of a log that was lost lives no longer than the call, also where the call is denied.
#[test]
fn a_denied_call_leaves_no_key_of_a_log_that_was_lost() {
    let server = Redis::start();
    let mut redis = RedisEngine::new(&[rule("r").by("user").limits(&["100/10s"])], server.connect());
    let mut take = |tenths: u64, cost| {
        let request = Request::new().field("user", "a").cost(cost);
        redis.decide(Op::Take, &request, at(0) + Span::from_millis(100 * tenths)).allowed()
    };
    // The log outgrows the value; then all that is left are 50 units of the key and the newest 50 in the value.
    assert!((0..20).all(|tenths| take(tenths, 1)));
    assert!(take(95, 50) && take(194, 50));
    let mut connection = server.connect();
    let mut keys = || redis::cmd("KEYS").arg("*:2:*").query::<Vec<Vec<u8>>>(&mut connection).unwrap();
    let logs = keys();
    assert_eq!(logs.len(), 1);
    redis::cmd("DEL").arg(&logs[0]).query::<()>(&mut server.connect()).unwrap();
    // The older units have left, but of a log that was lost all leave with the newest.
    assert!(!take(196, 1));
    assert_eq!(keys(), Vec::<Vec<u8>>::new());
    assert!(take(294, 1));
}

/// A subject that many rules meet one after the other keeps what matters.
#[test]
fn a_value_does_not_grow_for_ever() {
    let server = Redis::start();
    let rules: Vec<RuleDef> = (0..50)
        .map(|nth| rule(&format!("r{nth}")).by("user").when("act", &format!("a{nth}")).limits(&["5/60s"]))
        .collect();
    let mut redis = RedisEngine::new(&rules, server.connect());
    let mut sizes = Vec::new();
    for nth in 0..500_u64 {
        let act = format!("a{}", nth % 50);
        let request = Request::new().field("user", "a").field("act", &act);
        assert!(redis.decide(Op::Take, &request, at(nth * 30)).allowed());
        sizes.push(redis::cmd("STRLEN").arg("fg:{s:user=a}:2").query::<usize>(&mut redis.connection).unwrap());
    }
    assert!(sizes.iter().all(|size| *size <= 1 + 3 * 43), "{sizes:?}");
}
