//! A rollback gives back its own charge, as long as the counter holds it, and no other charge.

use flowgate::{Op, Span, Time};
use flowgate_engine::Request;
use flowgate_engine::redis::{RedisQuestion, ScriptTime};
use flowgate_testkit::redis::Redis;

use crate::redis_engine::{PREFIX, Prepare, RedisEngine, numbers};
use crate::script::{Written, at, rule};

/// A request takes `cost` from `limit` in one place and is denied in another; `meanwhile` later, others having taken
/// `others` at that time, it is rolled back. What is left then, and what is left right before.
#[track_caller]
fn check(limit: &str, (cost, meanwhile, others): (u64, Span, u64), expected: (u64, u64)) {
    let server = Redis::start();
    let rules = [rule("free").by("user").limits(&[limit]), rule("full").by("ip").limits(&["fixed 0001/1d"])];
    let mut redis = RedisEngine::new(&rules, server.connect());
    let full = Request::new().field("ip", "::1");
    redis.decide(Op::Record, &full, at(0));
    let request = Request::new().field("user", "1").field("ip", "::1").cost(cost);
    let prepared = redis.engine.prepare(Op::Take, &request, at(0));
    let call = |redis: &mut RedisEngine, group: usize| {
        numbers(&mut redis.connection, &prepared.call(Some(group), PREFIX, ScriptTime::Injected(at(0)), at(0)))
    };
    let replies = [call(&mut redis, 0), call(&mut redis, 1)];
    let some: Vec<Option<&[i64]>> = replies.iter().map(|reply| Some(reply.as_slice())).collect();
    let later = at(0) + meanwhile;
    let user = |cost: u64| Request::new().field("user", "1").cost(cost);
    assert!(redis.decide(Op::Take, &user(others), later).allowed(), "{limit}");
    let left = |redis: &mut RedisEngine| redis.decide(Op::Peek, &user(0), later).remaining().unwrap();
    let before = left(&mut redis);
    let rollbacks = prepared.undo_calls(PREFIX, ScriptTime::Injected(later), &some);
    assert_eq!(rollbacks.len(), 1, "only what has passed is rolled back");
    let keys: Vec<_> = rollbacks[0].keys().map(String::from_utf8_lossy).collect();
    assert_eq!(keys, [format!("{PREFIX}{{s:user=1}}:2")]);
    numbers(&mut redis.connection, &rollbacks[0]);
    assert_eq!((before, left(&mut redis)), expected, "{limit}");
    let decision = prepared.conclude(&[&replies[0], &replies[1]]).unwrap().decision;
    assert!(!decision.allowed());
    assert_eq!(decision.rule().unwrap().name(), "full");
}

const S: fn(u64) -> Span = Span::from_secs;

#[test]
fn a_fixed_window_is_rolled_back_while_it_is_open() {
    check("fixed 10/60s", (3, S(5), 2), (5, 8));
    check("fixed 10/60s", (3, S(60), 2), (8, 8));
    check("fixed 10/hour tz=UTC", (3, S(7200), 2), (8, 8));
}

#[test]
fn sliding_units_are_rolled_back_while_they_are_in_the_window() {
    check("sliding 10/60s", (3, S(5), 2), (5, 8));
    check("sliding 10/60s", (3, S(0), 2), (5, 8));
    check("sliding 10/60s", (3, S(60), 2), (8, 8));
    check("sliding 2000/60s", (3, S(5), 2), (1995, 1998));
    check("sliding 2000/60s", (3, S(61), 2), (1998, 1998));
}

#[test]
fn a_bucket_is_rolled_back_by_what_has_not_leaked_out() {
    check("bucket 1/s burst=10", (5, S(0), 2), (3, 8));
    // Two of the five units have leaked out, so three are given back.
    check("bucket 1/s burst=10", (5, S(2), 2), (5, 8));
    check("bucket 1/s burst=10", (5, S(5), 2), (8, 8));
    check("bucket 7/s burst=10", (5, S(0), 2), (3, 8));
    check("pace 1/s burst=10 max_wait=9s", (5, S(1), 2), (4, 8));
}

#[test]
fn approx_is_rolled_back_in_the_window_of_the_charge() {
    // The script's start lies 20 seconds into a minute.
    check("approx 10/60s", (3, S(5), 2), (5, 8));
    check("approx 10/60s", (3, S(40), 2), (5, 8));
    check("approx 10/60s", (3, S(100), 2), (8, 8));
}

#[test]
fn both_counts_of_after_are_rolled_back() {
    check("fixed 10/60s after=20/60s", (3, S(5), 2), (15, 18));
    check("fixed 10/60s after=3/60s", (3, S(5), 2), (5, 1));
    check("fixed 10/10s after=3/60s", (3, S(20), 2), (8, 1));
    check("sliding 10/60s after=5/20s", (5, S(30), 3), (2, 2));
}

#[test]
fn a_group_that_did_not_answer_takes_the_others_back() {
    let server = Redis::start();
    let rules = [rule("user").by("user").limits(&["fixed 5/60s"]), rule("ip").by("ip").limits(&["fixed 5/60s"])];
    let mut redis = RedisEngine::new(&rules, server.connect());
    let request = Request::new().field("user", "1").field("ip", "::1");
    let time = ScriptTime::Injected(at(0));
    let prepared = redis.engine.prepare(Op::Take, &request, at(0));
    let reply = numbers(&mut redis.connection, &prepared.call(Some(0), PREFIX, time, at(0)));
    let rollbacks = prepared.undo_calls(PREFIX, time, &[Some(&reply), None]);
    assert_eq!(rollbacks.len(), 1);
    numbers(&mut redis.connection, &rollbacks[0]);
    assert_eq!(redis::cmd("DBSIZE").query::<usize>(&mut redis.connection).unwrap(), 0);
    assert!(prepared.undo_calls(PREFIX, time, &[Some(&reply), Some(&reply)]).is_empty(), "both have passed");
}

#[test]
fn shadow_rules_keep_their_charge() {
    let server = Redis::start();
    let rules = [
        rule("seen").by("user").limits(&["fixed 5/60s"]).shadow(),
        rule("counted").by("user").limits(&["fixed 5/60s"]),
        rule("full").by("ip").limits(&["fixed 1/60s"]),
    ];
    let mut redis = RedisEngine::new(&rules, server.connect());
    let take = |redis: &mut RedisEngine, now: Time| {
        let request = Request::new().field("user", "1").field("ip", "::1");
        redis.decide_in_groups(Op::Take, &request, now).allowed()
    };
    assert!(take(&mut redis, at(0)));
    assert!(!take(&mut redis, at(1)));
    let request = Request::new().field("user", "1").cost(0);
    let prepared = redis.engine.prepare(Op::Peek, &request, at(2));
    let reply = numbers(&mut redis.connection, &prepared.call(None, PREFIX, ScriptTime::Injected(at(2)), at(2)));
    let explained = prepared.explain(&request, &[&reply]).unwrap();
    let left: Vec<u64> = explained.rules[..2].iter().map(|rule| rule.limits[0].outcome.remaining.unwrap()).collect();
    assert_eq!(left, [3, 4]);
}

/// As where a key is in use by another algorithm, or a reply is not the script's.
#[test]
fn a_reply_that_cannot_be_read_takes_the_others_back() {
    let server = Redis::start();
    let rules = [rule("user").by("user").limits(&["fixed 5/60s"]), rule("ip").by("ip").limits(&["fixed 5/60s"])];
    let mut redis = RedisEngine::new(&rules, server.connect());
    let request = Request::new().field("user", "1").field("ip", "::1");
    let time = ScriptTime::Injected(at(0));
    let prepared = redis.engine.prepare(Op::Take, &request, at(0));
    for unreadable in [&[-2][..], &[], &[1, 2, 3, 4]] {
        let reply = numbers(&mut redis.connection, &prepared.call(Some(0), PREFIX, time, at(0)));
        let rollbacks = prepared.undo_calls(PREFIX, time, &[Some(&reply), Some(unreadable)]);
        assert_eq!(rollbacks.len(), 1, "{unreadable:?}");
        numbers(&mut redis.connection, &rollbacks[0]);
        assert_eq!(redis::cmd("DBSIZE").query::<usize>(&mut redis.connection).unwrap(), 0, "{unreadable:?}");
    }
}

#[test]
fn what_a_late_reply_names() {
    let server = Redis::start();
    let rules = [
        rule("user").by("user").limits(&["sliding 5/60s", "bucket 5/60s"]),
        rule("all").limits(&["approx 5/60s", "fixed 5/60s after=1/60s"]),
    ];
    let mut redis = RedisEngine::new(&rules, server.connect());
    let time = ScriptTime::Injected(at(0));
    let size = |redis: &mut RedisEngine| redis::cmd("DBSIZE").query::<usize>(&mut redis.connection).unwrap();
    let request = Request::new().field("user", "1").cost(2);
    let prepared = redis.engine.prepare(Op::Take, &request, at(0));
    let reply = numbers(&mut redis.connection, &prepared.call(None, PREFIX, time, at(0)));
    assert_eq!(size(&mut redis), 2, "a key for each subject");
    numbers(&mut redis.connection, &prepared.undo_calls(PREFIX, time, &[Some(&reply)])[0]);
    assert_eq!(size(&mut redis), 0, "all of the request, on one server");
    // What was denied has charged nothing, and what only looks takes nothing.
    redis.decide(Op::Record, &request.clone().cost(5), at(0));
    let denied = numbers(&mut redis.connection, &prepared.call(None, PREFIX, time, at(0)));
    assert!(prepared.undo_calls(PREFIX, time, &[Some(&denied)]).is_empty());
    let peek = redis.engine.prepare(Op::Peek, &request, at(0));
    let reply = numbers(&mut redis.connection, &peek.call(None, PREFIX, time, at(0)));
    assert!(peek.undo_calls(PREFIX, time, &[Some(&reply)]).is_empty());
}
