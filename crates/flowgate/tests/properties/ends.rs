//! The ends of the ranges: no panic (tests check for overflow), and the bounds hold there too.

use flowgate::Op;

use crate::Store;
use crate::specs::{DAYS, SECONDS};

const LATELY: u64 = 1_700_000_000 * SECONDS;

/// Debts saturate at 36,500 days, and a `take` that would pass that is denied for good.
#[test]
fn pace_gives_no_turn_beyond_the_longest_debt() {
    // A turn every 20,000 days.
    let store = Store::of("pace 0.01/200d max_wait=none");
    assert!(store.take(1, LATELY).allowed());
    assert_eq!(store.peek(1, LATELY).retry_after(), None);
    assert!(store.peek(1, LATELY).never());
    assert!(store.peek(2, LATELY).never());
    let later = LATELY + 20_000 * DAYS;
    assert_eq!(store.peek(1, later).delay().as_nanos(), 0);
    assert!(store.peek(2, later).never());
    // A wait that would end beyond the longest debt helps nobody, however short `max_wait` is.
    let store = Store::of("pace 0.01/364d max_wait=366d");
    assert!(store.take(1, LATELY).allowed());
    assert!(store.peek(1, LATELY).never());
    // Where it ends within, it helps.
    let store = Store::of("pace 0.01/200d max_wait=366d");
    store.apply(Op::Record, 3, LATELY);
    let wait = store.peek(1, LATELY).retry_after().unwrap().as_nanos();
    assert_eq!(wait, (36_500 - 366) * DAYS);
    assert!(!store.peek(1, LATELY + wait - 1).allowed());
    assert!(store.peek(1, LATELY + wait).allowed());
}
