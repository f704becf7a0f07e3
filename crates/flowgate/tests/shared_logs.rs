//! One sliding log that several limits charge: a limit whose numbers change, or a key that is asked with changing limits.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use flowgate::durable::{LoadAt, LoadOutcome, Records, VisitCursor};
use flowgate::{Ask, Limit, MemoryConfig, MemoryStore, Op, Seed, Span, Time};

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;

fn store(max_bytes: usize) -> MemoryStore {
    MemoryStore::new(MemoryConfig { max_bytes, seed: Seed([1, 2]), ..MemoryConfig::default() })
}

/// The records of all states.
fn all(memory: &MemoryStore) -> Vec<u8> {
    let (mut cursor, mut bytes) = (VisitCursor::default(), Vec::new());
    while memory.all(&mut cursor, &mut bytes) {}
    bytes
}

/// Reads the record of the only counter.
fn load(memory: &MemoryStore, bytes: &[u8], now: u64) {
    let at = LoadAt { now: Time::from_nanos(now), back: Span::ZERO };
    let outcomes: Vec<LoadOutcome> = Records::new(bytes).map(|record| memory.load(record, at)).collect();
    assert_eq!(outcomes, [LoadOutcome::Kept]);
}

/// Limits of different periods that charge one log in turn give every unit an instant of its own. The log stays bounded, is never
/// laxer, and is read back.
#[test]
fn a_log_that_many_limits_charge_is_bounded_and_read_back() {
    let memory = store(8 << 20);
    let key = memory.subject(b"k").counter(memory.counter(b"c"));
    let (now, empty) = (Time::from_nanos(START), memory.stats().bytes);
    let limit = |micros: u64| -> Limit { format!("sliding 1000000/{micros}us").parse().unwrap() };
    // Periods of one grid, then those of a grid that is larger by so much that all its instants come later.
    let period = |number: u64| 3_600_000_000 - 1_023 + number % 1_024 + number / 1_024 * 4_000 * 1_024;
    for number in 0..40_000 {
        let ask = Ask::new(Op::Take, 1 + number % 2 * (number % 5), now);
        assert!(memory.apply_one(ask, key, &limit(period(number))).allowed());
        assert!(memory.stats().bytes - empty < 34 << 10, "{number}: {:?}", memory.stats());
    }
    let bytes = all(&memory);
    assert!(bytes.len() < 48 << 10, "{} bytes", bytes.len());
    let back = store(1 << 20);
    load(&back, &bytes, START);
    // All units are still there when the first ones leave.
    let units: u64 = (0..40_000).map(|number| 1 + number % 2 * (number % 5)).sum();
    for memory in [&memory, &back] {
        let look = Ask::new(Op::Peek, 1, Time::from_nanos(START + period(0) * 1_000));
        assert_eq!(memory.apply_one(look, key, &limit(period(0))).remaining, Some(1_000_000 - units));
    }
}

/// A limit that is raised above the most units of exact times goes on with the log it finds.
#[test]
fn a_log_of_a_limit_that_was_raised_is_read_back() {
    let memory = store(8 << 20);
    let key = memory.subject(b"k").counter(memory.counter(b"c"));
    let take = |limit: &str, second: u64| {
        let ask = Ask::new(Op::Take, 1, Time::from_nanos(START + second * SECOND));
        assert!(memory.apply_one(ask, key, &limit.parse().unwrap()).allowed());
    };
    (0..1_000).for_each(|second| take("1000/d", second));
    (0..1_000).for_each(|number| take("5000/d", 1_000 + number * 80));
    let (back, now) = (store(1 << 20), START + 81_000 * SECOND);
    load(&back, &all(&memory), now);
    assert!(all(&back) == all(&memory));
    let look = Ask::new(Op::Peek, 1, Time::from_nanos(now));
    assert_eq!(back.apply_one(look, key, &"5000/d".parse().unwrap()).remaining, Some(3_000));
}
