//! Redis's own clock, many connections, and how long keys live.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use flowgate::{MemoryStore, Op, Span, Throttle, Time};
use flowgate_engine::redis::{RedisQuestion, ReplyError, ScriptTime};
use flowgate_engine::{AdHoc, Engine, Request};
use flowgate_testkit::redis::Redis;

use crate::redis_engine::{PREFIX, Prepare, RedisEngine, numbers};
use crate::script::{Written, policy, rule};

/// The time that Redis tells.
fn redis_time(connection: &mut redis::Connection) -> Time {
    let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(connection).unwrap();
    Time::from_micros(seconds * 1_000_000 + micros)
}

#[test]
fn many_connections_on_one_key_are_given_exactly_what_there_is() {
    let server = Redis::start();
    for limits in [
        &["bucket 300/366d"][..],
        &["pace 300/366d burst=300 max_wait=0s"],
        &["fixed 300/366d"],
        &["fixed 300/366d", "sliding 400/366d"],
        &["sliding 300/366d"],
        &["sliding 1500/366d"],
        &["approx 300/366d"],
        &["bucket 1/366d after=300/366d"],
    ] {
        let rules = [rule("shared").by("user").limits(limits)];
        let user = limits.join(", ");
        let request = Request::new().field("user", &user);
        let memory = Engine::new(&policy(&rules), MemoryStore::default()).unwrap();
        let now = redis_time(&mut server.connect());
        let expected = (0..3200).filter(|_| memory.decide(Op::Take, &request, now).allowed()).count();
        assert!(expected >= 300, "{limits:?}");
        let passed = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut redis = RedisEngine::new(&rules, server.connect());
                    redis.own_time = true;
                    for _ in 0..expected / 4 {
                        let allowed = redis.decide(Op::Take, &request, now).allowed();
                        passed.fetch_add(usize::from(allowed), Relaxed);
                    }
                });
            }
        });
        assert_eq!(passed.load(Relaxed), expected, "{limits:?}");
    }
}

#[test]
fn every_key_lives_as_long_as_its_state_and_no_longer() {
    let server = Redis::start();
    let limits = [
        "bucket 7/60s burst=20",
        "pace 7/60s",
        "fixed 5/90s",
        "fixed 5/day tz=UTC",
        "sliding 5/70s",
        "sliding 5000/70s",
        "approx 50/80s",
        "fixed 5/10s after=3/300s",
        "bucket 1/400s after=1/10s",
    ];
    // A subject for each limit, and one for all of them, which lives as long as the longest.
    let fields: Vec<String> = (0..limits.len()).map(|nth| format!("u{nth}")).collect();
    let rules: Vec<_> = limits
        .iter()
        .zip(&fields)
        .map(|(limit, field)| rule(&format!("r{field}")).by(field).limits(&[limit]))
        .collect();
    let mut redis = RedisEngine::new(&rules, server.connect());
    redis.own_time = true;
    let now = redis_time(&mut redis.connection);
    for (limit, field) in limits.iter().zip(&fields) {
        let request = Request::new().field(field, "1");
        for _ in 0..3 {
            redis.decide(Op::Take, &request, now);
        }
        let prepared = redis.engine.prepare(Op::Peek, &request.clone().cost(0), now);
        let reply = numbers(&mut redis.connection, &prepared.call(None, PREFIX, ScriptTime::Redis, now));
        let explained = prepared.explain(&request, &[&reply]).unwrap();
        let report = explained.rules.iter().find(|report| report.rule.name() == format!("r{field}")).unwrap();
        let key = format!("fg:{{s:{field}=1}}:2");
        let left: u64 = redis::cmd("PTTL").arg(key).query(&mut redis.connection).unwrap();
        let lifetime = report.limits[0].outcome.reset_after;
        // A moment has passed since.
        assert!(left + 500 >= lifetime.as_millis_ceil(), "{limit}: {left} ms of {lifetime}");
        if limit.starts_with("approx") {
            continue; // Its windows are kept until both are over, even if only the older one counts.
        }
        assert!(left <= lifetime.as_millis_ceil() + 1, "{limit}: {left} ms of {lifetime}");
    }
    let mut redis = RedisEngine::new(&[rule("all").by("user").limits(&limits)], server.connect());
    redis.own_time = true;
    assert!(redis.decide(Op::Take, &Request::new().field("user", "1"), now).allowed());
    let left: u64 = redis::cmd("PTTL").arg("fg:{s:user=1}:2").query(&mut redis.connection).unwrap();
    assert!(left > 400_000, "until the end of the day, or of the slowest bucket: {left}");
}

#[test]
fn what_is_as_if_never_used_is_gone() {
    let server = Redis::start();
    let mut redis =
        RedisEngine::new(&[rule("r").by("user").limits(&["bucket 1000/s"]).ban(1, 1, &[1], 0)], server.connect());
    redis.own_time = true;
    let now = redis_time(&mut redis.connection);
    let request = Request::new().field("user", "1");
    assert!(redis.decide(Op::Take, &request, now).allowed());
    assert!(redis.decide(Op::Refund, &request, now).allowed());
    let count = |redis: &mut RedisEngine| redis::cmd("DBSIZE").query::<usize>(&mut redis.connection).unwrap();
    assert_eq!(count(&mut redis), 0, "a refund to nothing leaves nothing");
    let limit = "bucket 1000/s".parse().unwrap();
    redis.limit(Op::Take, AdHoc { key: b"k".into(), limit: &limit, cost: 3 }, now).unwrap();
    assert!(redis.throttle(b"other", Throttle::new(1, 1000, 1).unwrap(), now).is_ok());
    let started = std::time::Instant::now();
    while count(&mut redis) > 0 {
        assert!(started.elapsed().as_secs() < 10, "the keys are still there");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A node whose clock is a week off brings the wrong midnights along; it is told so, and nothing has changed.
#[test]
fn calendar_ends_that_do_not_fit_are_refused() {
    let server = Redis::start();
    for limits in ["fixed 5/day tz=UTC", "5/60s after=3/minute tz=Asia/Kolkata", "fixed 5/hour tz=Australia/Lord_Howe"]
    {
        let mut redis = RedisEngine::new(&[rule("r").by("user").limits(&[limits, "bucket 9/h"])], server.connect());
        let now = Time::from_secs(1_700_000_000);
        let request = Request::new().field("user", limits);
        let prepared = redis.engine.prepare(Op::Take, &request, now);
        for off in [now + Span::from_secs(7 * 86_400), Time::from_secs(1_690_000_000)] {
            let reply = numbers(&mut redis.connection, &prepared.call(None, PREFIX, ScriptTime::Injected(now), off));
            assert_eq!(prepared.conclude(&[&reply]).unwrap_err(), ReplyError::Around(now), "{limits}");
        }
        assert_eq!(redis::cmd("DBSIZE").query::<usize>(&mut redis.connection).unwrap(), 0);
        let reply = numbers(&mut redis.connection, &prepared.call(None, PREFIX, ScriptTime::Injected(now), now));
        assert!(prepared.conclude(&[&reply]).unwrap().decision.allowed());
        redis::cmd("FLUSHALL").query::<()>(&mut redis.connection).unwrap();
    }
}

#[test]
fn rules_of_one_subject_are_one_group_also_behind_a_rule_without_counters() {
    let rules = [
        rule("open").by("user").limits(&["unlimited"]),
        rule("reply").by("user").limits(&["5/60s"]),
        rule("post").by("user").limits(&["9/1h"]),
    ];
    let engine = Engine::new(&policy(&rules), MemoryStore::default()).unwrap();
    let plan = engine.prepare(Op::Take, &Request::new().field("user", "42"), Time::from_secs(1_700_000_000));
    assert_eq!(plan.groups(), 1);
}
