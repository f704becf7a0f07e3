//! Expired counters are forgotten a few at a time, and no answer changes.

use super::*;
use crate::memory::expiry::GRACE_NANOS;

const KINDS: [&str; 7] = [
    "sliding 3/2s",
    "sliding 2000/3s",
    "bucket 2/s burst=3",
    "pace 2/s max_wait=10s",
    "fixed 3/2s",
    "approx 3/2s",
    "fixed 1/3s after=2/2s",
];

/// A call on one of a few counters, at a time that lies back behind the latest.
fn late_call() -> impl Strategy<Value = (Op, u32, u64, u64)> {
    let op = prop_oneof![6 => Just(Op::Take), 1 => Just(Op::Record), 1 => Just(Op::Refund), 2 => Just(Op::Peek)];
    let later = prop_oneof![3 => 0..SECOND / 4, 1 => 0..5 * SECOND];
    let back = prop_oneof![4 => Just(0), 4 => 0..=GRACE_NANOS, 2 => 0..60 * SECOND];
    (op, 0..40u32, later, back)
}

proptest! {
    #![proptest_config(cases(150))]

    /// Forgetting is not noticed: the answers are those of counters that are never forgotten. Only a time further
    /// back than the grace may be decided at a later instant, that up to which the shard has forgotten.
    #[test]
    fn a_forgotten_counter_changes_no_answer(calls in prop::collection::vec(late_call(), 1..600)) {
        let memory = MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, seed: Seed([3, 4]), ..MemoryConfig::default() });
        let limits = KINDS.map(|limit| limit.parse::<Limit>().unwrap());
        let mut counters: HashMap<u32, Counter> = HashMap::new();
        let mut latest = START;
        for (op, number, later, back) in calls {
            latest += later;
            let now = latest - back;
            let limit = &limits[number as usize % limits.len()];
            let key = memory.subject(&number.to_le_bytes()).counter(memory.counter(b""));
            let floor = || memory.lock(key.shard(memory.shards.len())).floor;
            let before = floor();
            let found = memory.apply_one(Ask::new(op, 1, Time::from_nanos(now)), key, limit);
            prop_assert!(floor() <= latest - GRACE_NANOS);
            // A call sweeps before it decides, and may sweep again after it. Each sweep can raise the floor, so the
            // decision is for the floor before the call or for the floor after it.
            let counter = counters.entry(number).or_default();
            let decided = [before, floor()].map(|floor| {
                let (at, mut counter) = (now.max(floor), counter.clone());
                let mut decision = limit.apply(Ask::new(op, 1, Time::from_nanos(at)), &mut counter);
                decision.count_from(Time::from_nanos(now), Time::from_nanos(at));
                (decision, counter)
            });
            let matching = decided.iter().find(|(decision, _)| *decision == found);
            prop_assert!(matching.is_some(), "{} {op:?}: {found:?} is neither of {decided:?}", limit);
            *counter = matching.unwrap().1.clone();
        }
        memory.check_invariants();
    }
}

/// A state is over at the instant that its reset names. Once it is forgotten, that instant is still decided for itself and not
/// for a later one.
#[test]
fn a_forgotten_counter_leaves_the_instant_of_its_reset_alone() {
    let fractions_of_a_nanosecond = ["bucket 7/s burst=3", "pace 7/s max_wait=10s"];
    for limit in KINDS.into_iter().chain(fractions_of_a_nanosecond) {
        let memory = smallest(WhenFull::Evict);
        let key = neighbours(&memory).next().unwrap();
        let limit: Limit = limit.parse().unwrap();
        let reset = memory.apply_one(Ask::new(Op::Take, 1, Time::from_nanos(START)), key, &limit).reset_after;
        let peek = |memory: &MemoryStore| {
            [1, 2, 4]
                .map(|cost| memory.apply_one(Ask::new(Op::Peek, cost, Time::from_nanos(START) + reset), key, &limit))
        };
        let floor = || memory.lock(key.shard(memory.shards.len())).floor;
        memory.sweep(Time::from_nanos(START + 100 * SECOND));
        assert_eq!((memory.stats().counters, floor()), (0, START + reset.as_nanos()), "{limit}");
        assert_eq!(peek(&memory), peek(&smallest(WhenFull::Evict)), "{limit}");
    }
}

/// A caller that is decided for at a later instant is held from its own time until its turn.
#[test]
fn a_delay_counts_from_the_time_of_the_call() {
    let memory = smallest(WhenFull::Evict);
    let keys: Vec<Key> = neighbours(&memory).take(2).collect();
    let limit = "pace 1/s max_wait=60s";
    take(&memory, keys[0], "fixed 5/1s", START);
    // What expired at START + 1 s is forgotten, so no time before that is decided for.
    memory.sweep(Time::from_nanos(START + 10 * SECOND));
    let forgotten = START + SECOND;
    let leaves = |now: u64| now + take(&memory, keys[1], limit, now).delay().as_nanos();
    assert_eq!(leaves(forgotten), forgotten);
    assert_eq!(leaves(START), forgotten + SECOND);
    assert_eq!(leaves(forgotten), forgotten + 2 * SECOND);
}

/// However many keys expire at once, a call looks at a few slots, but for the one that lays the table out anew or packs
/// the places of its logs.
#[test]
fn a_call_forgets_a_few_at_a_time() {
    for (text, keys, times) in [("bucket 1/s", 60_000, 1), ("2/1s", 30_000, 2)] {
        let memory =
            MemoryStore::new(MemoryConfig { max_bytes: 4 << 20, seed: Seed([1, 2]), ..MemoryConfig::default() });
        let limit: Limit = text.parse().unwrap();
        let apply = |op, number: u32, now| {
            let key = memory.subject(&number.to_le_bytes()).counter(memory.counter(b""));
            memory.apply_one(Ask::new(op, 1, Time::from_nanos(now)), key, &limit);
        };
        for step in 0..times {
            (0..keys).for_each(|number| apply(Op::Take, number, START + step));
        }
        let look = || {
            let shard = memory.lock(0);
            (shard.touched, (shard.slots.len(), shard.places))
        };
        let (mut most, mut laid_out) = (0, 0);
        for number in 0..200_000 {
            let (before, size) = look();
            apply(Op::Peek, number, START + 10 * SECOND);
            let (after, size_after) = look();
            let touched = after - before;
            if size_after == size {
                most = most.max(touched);
            } else {
                laid_out += 1;
                assert!(touched <= 2 * size.0, "a table of {size:?} is gone through once, and once more for its logs");
            }
        }
        // Those of its step of the sweep, and those behind it that move up to close the gaps.
        assert!(most < 500, "{text}: {most} slots");
        assert!((1..30).contains(&laid_out), "{text}: laid out anew {laid_out} times");
        assert_eq!(memory.stats().counters, 0);
    }
}
