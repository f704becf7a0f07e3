//! A limit that is read is written as one that is read as the same, and deciding by it never panics.

#![no_main]

use flowgate::{Ask, Limit, MemoryStore, MemoryConfig, Op, Seed, Span, Time, WhenFull};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, [u64; 4])| {
    let (text, numbers) = input;
    let Ok(limit) = text.parse::<Limit>() else { return };
    let written = limit.to_string();
    let again: Limit = written.parse().unwrap_or_else(|error| panic!("{text:?} -> {written:?}: {error}"));
    assert_eq!(limit, again, "{text:?} -> {written:?}");

    let config = MemoryConfig { max_bytes: 64 << 10, when_full: WhenFull::Evict, seed: Seed([1, 2]) };
    let memory = MemoryStore::new(config);
    let key = memory.subject(b"subject").counter(memory.counter(b"counter"));
    let [start, step, cost, more] = numbers;
    let mut now = Time::from_nanos(start);
    for (op, cost) in [(Op::Take, cost), (Op::Record, more), (Op::Take, 1), (Op::Refund, cost), (Op::Peek, 0)] {
        let decision = memory.apply_one(Ask::new(op, cost, now), key, &limit);
        // The range of `Time` may end before the wait does.
        if let Some(wait) = decision.retry_after()
            && (now + wait).since(now) == wait
        {
            let then = memory.apply_one(Ask::new(Op::Peek, cost, now + wait), key, &limit);
            assert!(op != Op::Take || then.allowed(), "{written:?}: denied after waiting {wait:?}");
        }
        now = now + Span::from_nanos(step);
    }
});
