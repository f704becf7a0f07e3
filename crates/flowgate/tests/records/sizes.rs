//! The memory of a table that was read back from records.

use super::*;

#[test]
fn a_large_table_is_read_back_into_little_more_memory() {
    let memory = store(64 << 20);
    let limit: Limit = "fixed 3/10s".parse().unwrap();
    let ask = Ask::new(Op::Take, 1, Time::from_nanos(START));
    let take = |keys: std::ops::Range<u32>| {
        for key in keys {
            let key = memory.subject(&key.to_le_bytes()).counter(memory.counter(b"c"));
            assert!(memory.apply_one(ask, key, &limit).allowed());
        }
    };
    // A base, in the order of the table, and changes that lie between its counters.
    take(0..100_000);
    let base = all(&memory);
    take(90_000..120_000);
    let (mut cursor, mut changes) = (VisitCursor::default(), Vec::new());
    while memory.changed(&mut cursor, &mut changes) {}
    for max_bytes in [8 << 20, 64 << 20, 1 << 30] {
        let back = store(max_bytes);
        let empty = back.stats().bytes;
        load(&back, &base, START, 0);
        load(&back, &changes, START, 0);
        let bytes = back.stats().bytes - empty;
        assert!(bytes <= 120_000 * 32 * 8 / 5, "{bytes} bytes of tables");
        back.finish_load(Time::from_nanos(START));
        assert_eq!(states(&back, START), states(&memory, START), "{max_bytes}");
        assert_eq!(back.stats().evicted, 0);
    }
}

/// Whether the caller expects what comes, too little or far too much.
#[test]
fn a_table_that_was_read_takes_no_more_memory_than_it_needs() {
    const COUNTERS: usize = 100_000;
    let memory = store(64 << 20);
    let (limit, counter): (Limit, _) = ("fixed 3/10s".parse().unwrap(), memory.counter(b"c"));
    let ask = Ask::new(Op::Take, 1, Time::from_nanos(START));
    for key in 0..COUNTERS as u32 {
        assert!(memory.apply_one(ask, memory.subject(&key.to_le_bytes()).counter(counter), &limit).allowed());
    }
    let in_order = all(&memory);
    let mut records = split(&in_order);
    // By a part of the name, which tells nothing of the place.
    records.sort_by_key(|record| record[8..12].to_vec());
    for (expected, records) in [0, 1_000, COUNTERS, 5 * COUNTERS, usize::MAX]
        .into_iter()
        .flat_map(|expected| [(expected, in_order.clone()), (expected, records.concat())])
    {
        let back = store(64 << 20);
        let empty = back.stats().bytes;
        back.expect(expected);
        load(&back, &records, START, 0);
        let loaded = back.stats().bytes - empty;
        back.finish_load(Time::from_nanos(START));
        let bytes = back.stats().bytes - empty;
        assert!(
            bytes <= loaded && bytes <= COUNTERS * 32 * 4 / 3 + COUNTERS,
            "{expected} expected: {loaded}, then {bytes} bytes"
        );
        assert_eq!(states(&back, START), states(&memory, START));
        assert_eq!(back.stats().evicted, 0);
    }
}

/// A journal of many changes makes its reader expect more counters than there are: the first tables leave the others their room.
#[test]
fn a_table_that_fits_is_read_whole_whatever_is_expected() {
    const MAX_BYTES: usize = 8 << 20;
    let (limit, ask): (Limit, _) = ("fixed 3/10s".parse().unwrap(), Ask::new(Op::Take, 1, Time::from_nanos(START)));
    for counters in [50_000, 100_000, 120_000, 140_000, 160_000] {
        let memory = store(MAX_BYTES);
        let counter = memory.counter(b"c");
        for key in 0..counters as u32 {
            assert!(memory.apply_one(ask, memory.subject(&key.to_le_bytes()).counter(counter), &limit).allowed());
        }
        let records = all(&memory);
        for expected in [0, counters, 3 * counters, usize::MAX] {
            let back = store(MAX_BYTES);
            back.expect(expected);
            load(&back, &records, START, 0);
            back.finish_load(Time::from_nanos(START));
            let found = (back.stats().counters, back.stats().evicted);
            assert_eq!(found, (counters, 0), "{expected} expected");
        }
    }
}
