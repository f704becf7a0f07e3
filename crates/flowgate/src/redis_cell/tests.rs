//! The recorded calls of `testdata/vectors/cl_throttle.jsonl`, redis-cell's own test, and where Flowgate differs.

use std::collections::HashMap;

use flowgate_testkit::vectors::throttle::calls;
use proptest::prelude::*;

use super::*;
use crate::memory::MemoryStore;
use crate::{Ask, Key, MemoryConfig, Op, Share, WhenFull};

/// Replays every recorded call; `start` gives the function that answers the calls of a case.
fn replay<A>(mut start: impl FnMut() -> A)
where
    A: FnMut(&str, &Throttle, Time) -> Result<ThrottleReply, ThrottleError>,
{
    for case in calls().chunk_by(|a, b| a.case == b.case) {
        let mut answer = start();
        for (number, call) in case.iter().enumerate() {
            let throttle = throttle([call.max_burst, call.count, call.period, call.quantity]).unwrap();
            let reply = answer(&call.key, &throttle, Time::from_nanos(call.now_ns)).unwrap();
            assert_eq!(reply.numbers(), call.reply, "case {} call {number}", call.case);
        }
    }
}

#[test]
fn the_pure_function_gives_the_recorded_answers() {
    replay(|| {
        let mut keys = HashMap::<String, Option<u64>>::new();
        move |key: &str, throttle: &Throttle, now| throttle.decide(keys.entry(key.to_owned()).or_default(), now)
    });
}

#[test]
fn the_memory_store_gives_the_recorded_answers() {
    replay(|| {
        let memory = MemoryStore::default();
        move |name: &str, throttle: &Throttle, now| memory.throttle(key(&memory, name), throttle, now)
    });
}

fn key(memory: &MemoryStore, name: &str) -> Key {
    memory.subject(name.as_bytes()).counter(memory.counter(b"cell"))
}

fn throttle([max_burst, count, period, quantity]: [i64; 4]) -> Result<Throttle, ThrottleError> {
    Throttle::new(max_burst, count, period)?.quantity(quantity)
}

const START: u64 = 1_700_000_000_000;

/// Calls of one key: milliseconds since the start and arguments, with the answer, on the pure function and the store.
#[track_caller]
fn check(calls: &[(u64, [i64; 4], [i64; 5])]) {
    let (mut state, memory) = (None, MemoryStore::default());
    for (number, &(millis, args, reply)) in calls.iter().enumerate() {
        let (throttle, now) = (throttle(args).unwrap(), Time::from_millis(START + millis));
        assert_eq!(throttle.decide(&mut state, now).unwrap().numbers(), reply, "call {number}: {args:?} at {millis}");
        let stored = memory.throttle(key(&memory, "k"), &throttle, now).unwrap();
        assert_eq!(stored.numbers(), reply, "call {number} on the store");
        let lifetime = state.map(|tat| Time::from_nanos(tat).since(now));
        assert_eq!(memory.lifetime(key(&memory, "k"), now), lifetime, "call {number}");
    }
}

#[test]
fn redis_cells_own_test() {
    let of = |quantity| [4, 1, 1, quantity];
    check(&[
        (0, of(6), [1, 5, 5, -1, 0]),
        (0, of(1), [0, 5, 4, -1, 1]),
        (0, of(1), [0, 5, 3, -1, 2]),
        (0, of(1), [0, 5, 2, -1, 3]),
        (0, of(1), [0, 5, 1, -1, 4]),
        (0, of(1), [0, 5, 0, -1, 5]),
        (0, of(1), [1, 5, 0, 1, 5]),
        (3000, of(1), [0, 5, 2, -1, 3]),
        (3100, of(1), [0, 5, 1, -1, 4]),
        (4000, of(1), [0, 5, 1, -1, 4]),
        (8000, of(1), [0, 5, 4, -1, 1]),
        (9500, of(1), [0, 5, 4, -1, 1]),
        (9500, of(0), [0, 5, 4, -1, 1]),
        (9500, of(2), [0, 5, 2, -1, 3]),
        (9500, of(5), [1, 5, 2, 3, 3]),
    ]);
}

#[test]
fn a_negative_quantity_gives_back_up_to_full() {
    let of = |quantity| [4, 1, 1, quantity];
    check(&[
        (0, of(-1), [0, 5, 5, -1, 0]),
        (0, of(5), [0, 5, 0, -1, 5]),
        (0, of(1), [1, 5, 0, 1, 5]),
        (0, of(-2), [0, 5, 2, -1, 3]),
        (0, of(-100), [0, 5, 5, -1, 0]),
        (0, of(5), [0, 5, 0, -1, 5]),
    ]);
    // A client that owes more than a smaller burst allows may still give back.
    check(&[(0, [9, 1, 1, 10], [0, 10, 0, -1, 10]), (0, [1, 1, 1, -1], [0, 2, 0, -1, 9])]);
}

#[test]
fn what_is_left_never_exceeds_the_limit() {
    check(&[
        (0, [0, 600_000_000, 1, 0], [0, 1, 1, -1, 0]),
        (0, [i64::MAX >> 1, 1_000_000_000, 1, 0], [0, 1 << 62, 1 << 62, -1, 0]),
    ]);
}

#[test]
fn numbers_out_of_range_and_zero_rates() {
    use ThrottleError::{OutOfRange, ZeroRate};
    const MAX: i64 = i64::MAX;
    for (args, error) in [
        ([-1, 1, 1, 1], OutOfRange),
        ([1, -1, 1, 1], OutOfRange),
        ([1, 1, -1, 1], OutOfRange),
        ([1, -1, 0, 1], OutOfRange),
        ([1, 0, -1, 1], OutOfRange),
        ([i64::MIN, 0, 0, 1], OutOfRange),
        ([1, 0, 1, 1], ZeroRate),
        ([1, 1, 0, 1], ZeroRate),
        ([1, 2_000_000_000, 1, 1], ZeroRate),
        ([1, MAX, 1, 1], ZeroRate),
        ([MAX, 1_000_000_000, 1, 1], OutOfRange),
        ([MAX - 1, 1, 1, 1], OutOfRange),
        ([1, 1, MAX / 1_000_000_000 + 1, 1], OutOfRange),
        ([1, 1, MAX, 1], OutOfRange),
        ([1, 1, 1, MAX], OutOfRange),
        ([1, 1, 1, i64::MIN], OutOfRange),
    ] {
        assert_eq!(throttle(args), Err(error), "{args:?}");
    }
}

#[test]
fn an_instant_out_of_range_is_an_error_that_changes_nothing() {
    let memory = MemoryStore::default();
    let now = Time::from_secs(1_700_000_000);
    let call = |args| memory.throttle(key(&memory, "k"), &throttle(args).unwrap(), now);
    assert_eq!(call([0, 1, 9_000_000_000, 1]), Err(ThrottleError::OutOfRange));
    assert_eq!(memory.lifetime(key(&memory, "k"), now), None);
    assert_eq!(call([0, 1, 7_000_000_000, 1]).unwrap().numbers(), [0, 1, 0, -1, 7_000_000_000]);
    assert_eq!(call([0, 1, 7_000_000_000, 1]), Err(ThrottleError::OutOfRange));
    assert_eq!(call([0, 1, 7_000_000_000, -1]).unwrap().numbers(), [0, 1, 1, -1, 0]);
}

#[test]
fn a_key_belongs_to_a_limit_or_to_a_throttle_while_it_lives() {
    let memory = MemoryStore::default();
    let key = key(&memory, "k");
    let limit = |limit: &str, second| {
        let limit = limit.parse().unwrap();
        memory
            .apply_same(Ask::new(Op::Take, 1, Time::from_secs(second)), key, &limit)
            .map(|decision| decision.remaining)
    };
    let call = |second| {
        let reply = memory.throttle(key, &Throttle::new(4, 1, 1).unwrap(), Time::from_secs(second));
        reply.map(|reply| reply.remaining)
    };
    assert_eq!(call(100), Ok(4));
    assert_eq!(limit("bucket 5/60s", 100), Err(OtherAlgorithm));
    assert_eq!(limit("bucket 5/60s", 101), Ok(Some(4)));
    assert_eq!(call(101), Err(OtherAlgorithm.into()));
    assert_eq!(call(113), Ok(4));
    assert_eq!(limit("5/60s after=10/day tz=UTC", 200), Ok(Some(9)), "only the counter beside it is in use");
    assert_eq!(call(200), Err(OtherAlgorithm.into()));
    assert_eq!(call(86_400), Ok(4));
    assert!(memory.reset(key));
    assert_eq!(memory.stats().counters, 0);
}

#[test]
fn a_store_that_is_full_and_denies_limits_new_keys() {
    let config = MemoryConfig { max_bytes: 0, when_full: WhenFull::Deny, ..MemoryConfig::default() };
    let (memory, now, throttle) =
        (MemoryStore::new(config), Time::from_secs(1_700_000_000), Throttle::new(4, 1, 60).unwrap());
    let replies = (0..1000).map(|n| memory.throttle(key(&memory, &n.to_string()), &throttle, now).unwrap().numbers());
    let (refused, kept): (Vec<_>, Vec<_>) = replies.partition(|reply| reply[0] == 1);
    assert!(!kept.is_empty() && kept.iter().all(|reply| *reply == [0, 5, 4, -1, 60]));
    assert!(!refused.is_empty() && refused.iter().all(|reply| *reply == [1, 5, 5, 1, 0]));
    assert_eq!(memory.stats().refused, refused.len() as u64);
}

/// The same in wide integers, as the contract words it.
#[expect(clippy::float_arithmetic, reason = "the contract's one division")]
fn reference(
    tat: &mut i128,
    now: i128,
    [max_burst, count, period, quantity]: [i64; 4],
) -> Result<[i128; 5], ThrottleError> {
    let fits = |number: i128| i64::try_from(number).map(i128::from).map_err(|_| ThrottleError::OutOfRange);
    let period = fits(i128::from(period) * 1_000_000_000)?;
    let interval = i128::from((period as f64 / count as f64) as i64);
    if interval == 0 {
        return Err(ThrottleError::ZeroRate);
    }
    let limit = fits(i128::from(max_burst) + 1)?;
    let tolerance = fits(interval * limit)?;
    let increment = fits(interval * i128::from(quantity))?;
    let old = if *tat <= now { now } else { *tat };
    let mut new = fits(old + increment)?;
    let limited = quantity >= 0 && now < new - tolerance;
    let mut retry_after = -1_000_000_000;
    if limited {
        if increment <= tolerance {
            retry_after = new - tolerance - now;
        }
        new = old;
    }
    new = new.max(now);
    *tat = new;
    let ttl = new - now;
    let free = tolerance - ttl;
    let left = if interval < 1000 { free / interval } else { (free / 1000) / (interval / 1000) };
    let seconds = |nanos: i128| nanos / 1_000_000_000 + i128::from(nanos % 1_000_000_000 >= 1_000_000);
    Ok([i128::from(limited), limit, left.clamp(0, limit), seconds(retry_after), seconds(ttl)])
}

/// Small numbers, where the interesting answers are, and any.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 1..20_i64, 2 => 1..100_000_i64, 1 => 1..=i64::MAX]
}

fn quantity() -> impl Strategy<Value = i64> {
    prop_oneof![8 => -3..12_i64, 1 => any::<i64>()]
}

proptest! {
    #[test]
    fn no_number_wraps_around(calls in prop::collection::vec(
        (prop_oneof![Just(0), 0..2_000_000_000_u64, 0..=u64::MAX >> 1], number(), number(), number(), quantity()),
        1..20,
    )) {
        let (mut state, mut tat, mut now) = (None, 0, Time::from_secs(1_700_000_000));
        for (later, max_burst, count, period, quantity) in calls {
            now = now + Span::from_nanos(later);
            let args = [max_burst - 1, count, period, quantity];
            let found = throttle(args).and_then(|throttle| throttle.decide(&mut state, now));
            let expected = reference(&mut tat, i128::from(now.as_nanos()), args);
            prop_assert_eq!(found.map(|reply| reply.numbers().map(i128::from)), expected, "{:?}", args);
        }
    }
}

#[test]
fn a_share_is_slower_and_smaller() {
    let whole = Throttle::new(15, 30, 60).unwrap().quantity(2).unwrap();
    assert_eq!(whole.share(Share::new(1, 1).unwrap()), Ok(whole));
    assert_eq!(whole.share(Share::new(1, 4).unwrap()), Throttle::new(3, 30, 240).unwrap().quantity(2));
    assert_eq!(
        Throttle::new(0, 1, 1).unwrap().share(Share::new(1, 3).unwrap()),
        Throttle::new(0, 1, 3),
        "at least one"
    );
    assert_eq!(
        Throttle::new(0, 1, 9_000_000_000).unwrap().share(Share::new(1, 3).unwrap()),
        Err(ThrottleError::OutOfRange)
    );
}
