//! Values that no script of ours has written: each counts as absent, is overwritten, and is counted as unreadable.

use std::cell::RefCell;

use flowgate::{Op, Throttle, Time};
use flowgate_engine::redis::{PreparedLimit, PreparedThrottle, RedisQuestion, ScriptCall, ScriptTime};
use flowgate_engine::{AdHoc, Request, RuleDef};
use flowgate_testkit::redis::Redis;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::agree::{config, flush, said};
use crate::redis_engine::{PREFIX, Prepare, RedisEngine, eval, numbers, numbers_and_unreadable};
use crate::script::{Written, rule};

const NOW: Time = Time::from_micros(1_700_000_000_000_000);

/// What is put under a key.
#[derive(Clone, Debug)]
enum Planted {
    Text(Vec<u8>),
    /// A list, a hash, a set, a sorted set or a stream.
    Other(usize),
}

impl Planted {
    fn plant(&self, connection: &mut redis::Connection, key: &[u8]) {
        const OTHERS: [(&str, &[&str]); 5] = [
            ("RPUSH", &["a", "b"]),
            ("HSET", &["a", "b"]),
            ("SADD", &["a"]),
            ("ZADD", &["1", "a"]),
            ("XADD", &["*", "a", "b"]),
        ];
        let mut command = match self {
            Planted::Text(text) => redis::cmd("SET").arg(key).arg(&text[..]).clone(),
            Planted::Other(number) => redis::cmd(OTHERS[*number].0).arg(key).arg(OTHERS[*number].1).clone(),
        };
        command.take().query::<redis::Value>(connection).unwrap();
    }
}

/// Numbers that none of our scripts writes.
const UNSOUND: [f64; 8] =
    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.5, 1e300, 9_007_199_254_740_992.0, f64::MIN_POSITIVE];

fn letters() -> impl Strategy<Value = u8> {
    prop::sample::select(b"bpfsacxBPFSACXu?".to_vec())
}

/// Random bytes, with and without the letter and the length of a value, and doubles that cannot be.
fn unreadable() -> impl Strategy<Value = Planted> {
    let bytes = prop::collection::vec(any::<u8>(), 1..90);
    let sized = (letters(), 0..10_usize).prop_flat_map(|(letter, doubles)| {
        prop::collection::vec(any::<u8>(), 8 * doubles).prop_map(move |bytes| [&[letter][..], &bytes].concat())
    });
    let doubles = (letters(), prop::collection::vec(prop::sample::select(UNSOUND.to_vec()), 0..9));
    let doubles = doubles.prop_map(|(letter, doubles)| value(letter, &doubles));
    prop_oneof![
        2 => bytes.prop_map(Planted::Text),
        3 => sized.prop_map(Planted::Text),
        3 => doubles.prop_map(Planted::Text),
        1 => (0..5_usize).prop_map(Planted::Other),
    ]
}

fn value(letter: u8, doubles: &[f64]) -> Vec<u8> {
    std::iter::once(letter).chain(doubles.iter().flat_map(|double| double.to_le_bytes())).collect()
}

/// One limit of each algorithm by itself, which goes the straight way, and what goes the long way.
fn rules() -> Vec<Vec<RuleDef>> {
    let short =
        ["bucket 5/s", "bucket 7/s burst=4", "pace 5/s", "fixed 5/s", "sliding 5/s", "sliding 5000/s", "approx 5/s"];
    let after = ["bucket 5/s after=2/s", "fixed 5/s after=3/s", "sliding 5/s after=1/s", "approx 5/s after=9/s"];
    let alone = short.iter().chain(&after).map(|limit| vec![rule("r").by("user").limits(&[limit])]);
    let several = ["sliding 5/s", "bucket 5/2s", "fixed 5/day tz=UTC", "approx 9/s"];
    let several = [
        vec![rule("r").by("user").limits(&several)],
        vec![rule("r").by("user").limits(&["sliding 2/s"]).count_denied()],
        vec![rule("r").by("user").limits(&["sliding 1/s"]).ban(2, 10, &[5, 9], 30)],
    ];
    alone.chain(several).collect()
}

/// An engine for each of the rules.
fn engines(server: &Redis) -> RefCell<Vec<RedisEngine>> {
    RefCell::new(rules().iter().map(|rules| RedisEngine::new(rules, server.connect())).collect())
}

fn ops() -> impl Strategy<Value = Op> {
    prop::sample::select(vec![Op::Take, Op::Take, Op::Peek, Op::Record, Op::CheckAndRecord, Op::Refund])
}

#[test]
fn decisions_are_those_of_an_absent_key() {
    let server = Redis::start();
    let engines = engines(&server);
    let input = (unreadable(), 0..engines.borrow().len(), any::<prop::sample::Index>(), ops(), 0..7_u64);
    let result = TestRunner::new(config(500)).run(&input, |(planted, number, which, op, cost)| {
        let redis = &mut engines.borrow_mut()[number];
        let first = Request::new().field("user", "a").cost(cost);
        let next = Request::new().field("user", "a");
        let decide = |redis: &mut RedisEngine| {
            [(op, &first), (Op::Take, &next), (Op::Take, &next)]
                .map(|(op, request)| said(&redis.decide(op, request, NOW)))
        };
        flush(&mut redis.connection);
        let expected = decide(redis);
        flush(&mut redis.connection);
        let prepared = redis.engine.prepare(Op::Take, &next, NOW);
        let call = prepared.call(None, PREFIX, ScriptTime::Injected(NOW), NOW);
        let keys: Vec<&[u8]> = call.keys().collect();
        let key = keys[which.index(keys.len())];
        planted.plant(&mut redis.connection, key);
        let peek = redis.engine.prepare(Op::Peek, &next, NOW).call(None, PREFIX, ScriptTime::Injected(NOW), NOW);
        prop_assert_eq!(numbers_and_unreadable(&mut redis.connection, &peek).1, 1, "it is told");
        prop_assert_eq!(decide(redis), expected, "{} {:?} {}", String::from_utf8_lossy(key), op, cost);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// A value of ours in which one number is another, or which was cut off, is read or counts as absent, but it never
/// makes a script fail, nor a reply that cannot be understood; and at most one fresh allowance comes of it.
#[test]
fn values_with_one_wrong_number_are_no_error() {
    let server = Redis::start();
    let engines = engines(&server);
    let wrong = prop_oneof![
        prop::sample::select(UNSOUND.to_vec()),
        prop::sample::select(vec![0.0, 1.0, 3.0, 4_294_967_296.0, 1e12, 1.7e15, 1_700_000_000_000_000.0, 9e15]),
    ];
    let cut = prop::option::weighted(0.2, any::<prop::sample::Index>());
    let ops = prop::collection::vec((ops(), 0..7_u64, 0..300_000_u64), 1..12);
    let input =
        (0..engines.borrow().len(), any::<prop::sample::Index>(), any::<prop::sample::Index>(), wrong, cut, ops);
    let result = TestRunner::new(config(200)).run(&input, |(number, which, place, wrong, cut, ops)| {
        let redis = &mut engines.borrow_mut()[number];
        flush(&mut redis.connection);
        let request = Request::new().field("user", "a");
        let mut now = NOW;
        for _ in 0..4 {
            now = now + flowgate::Span::from_micros(100);
            redis.decide(Op::Take, &request, now);
        }
        let mut keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut redis.connection).unwrap();
        keys.sort_unstable();
        let key = &keys[which.index(keys.len())];
        let mut text: Vec<u8> = redis::cmd("GET").arg(key).query(&mut redis.connection).unwrap();
        // From the end of the first entry on: its end and its state.
        let place = 12 + 8 * place.index((text.len() - 12) / 8);
        text[place..place + 8].copy_from_slice(&wrong.to_le_bytes());
        if let Some(cut) = cut {
            text.truncate(cut.index(text.len()));
        }
        redis::cmd("SET").arg(key).arg(&text).query::<()>(&mut redis.connection).unwrap();
        for (op, cost, gap) in ops {
            now = now + flowgate::Span::from_micros(gap);
            redis.decide(op, &request.clone().cost(cost), now);
            // A rollback of what may or may not be there.
            let prepared = redis.engine.prepare(Op::Take, &request, now);
            let time = ScriptTime::Injected(now);
            let reply = numbers(&mut redis.connection, &prepared.call(None, PREFIX, time, now));
            for call in prepared.undo_calls(PREFIX, time, &[Some(&reply)]) {
                numbers(&mut redis.connection, &call);
            }
        }
        flush(&mut redis.connection);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn ad_hoc_keys_and_throttles() {
    let server = Redis::start();
    let limits =
        ["bucket 5/s", "pace 5/s", "fixed 5/s", "sliding 5/s", "approx 5/s", "sliding 5/s after=2/s", "unlimited"];
    let limits = limits.map(|limit| limit.parse().unwrap());
    let throttle = Throttle::new(3, 5, 60).unwrap();
    let engine = RefCell::new(RedisEngine::new(&[], server.connect()));
    let input = (unreadable(), 0..limits.len(), ops());
    let result = TestRunner::new(config(150)).run(&input, |(planted, number, op)| {
        let redis = &mut *engine.borrow_mut();
        let call = AdHoc { key: b"k".into(), limit: &limits[number], cost: 1 };
        let decide = |redis: &mut RedisEngine| {
            let first = redis.limit(op, call, NOW);
            let second = redis.limit(Op::Take, call, NOW);
            let throttled = [(); 2].map(|()| redis.throttle(b"t", throttle, NOW));
            (first, second, throttled)
        };
        flush(&mut redis.connection);
        let expected = decide(redis);
        flush(&mut redis.connection);
        for key in ["fg:{k:k}:2", "fg:{k:t}:2"] {
            planted.plant(&mut redis.connection, key.as_bytes());
        }
        let told = |redis: &mut RedisEngine, call: &ScriptCall| eval::<Vec<i64>>(&mut redis.connection, call).pop();
        let peek = PreparedLimit::new(Op::Peek, call).call(None, PREFIX, ScriptTime::Injected(NOW), NOW);
        prop_assert_eq!(told(redis, &peek), Some(-3));
        prop_assert_eq!(decide(redis), expected);
        planted.plant(&mut redis.connection, b"fg:{k:other}:2");
        let other = PreparedThrottle::new(b"other", throttle).call(None, PREFIX, ScriptTime::Injected(NOW), NOW);
        prop_assert_eq!(told(redis, &other), Some(-3));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// Under the key of a rule's counter, which names its algorithm, a value of another algorithm is not ours either.
#[test]
fn another_algorithm_under_the_key_of_a_rule() {
    let server = Redis::start();
    let mut redis = RedisEngine::new(&[rule("r").by("user").limits(&["sliding 2/s"])], server.connect());
    let request = Request::new().field("user", "a");
    let until = 1.7e15 + 1e12;
    redis.decide(Op::Take, &request, NOW);
    let mut text: Vec<u8> = redis::cmd("GET").arg("fg:{s:user=a}:2").query(&mut redis.connection).unwrap();
    // The version, a name of eight letters, the letter, the size, the end, the state.
    text.truncate(9);
    text.extend_from_slice(b"f\x10\0");
    text.extend([until, until, 2.0].iter().flat_map(|number: &f64| number.to_le_bytes()));
    Planted::Text(text).plant(&mut redis.connection, b"fg:{s:user=a}:2");
    let admitted = (0..5).filter(|_| redis.decide(Op::Take, &request, NOW).allowed()).count();
    assert_eq!(admitted, 2);
}
