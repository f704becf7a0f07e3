//! Any calls in a store of any size: it stays within its budget.

use super::calls::{MIXED, apply, call};
use super::*;

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn a_store_stays_within_its_budget(
        seed in any::<[u64; 2]>(),
        max_kib in 12..200usize,
        when_full in prop::sample::select(vec![WhenFull::Evict, WhenFull::Deny]),
        calls in prop::collection::vec(call(400), 1..1500),
    ) {
        let memory = MemoryStore::new(MemoryConfig { max_bytes: max_kib << 10, when_full, seed: Seed(seed) });
        let limits = MIXED.map(|limit| limit.parse().unwrap());
        let [within, length, forget] = [20, 5, 60].map(Span::from_secs);
        let ban = Ban::new(4, within, &[length], forget).unwrap();
        let (mut now, empty) = (START, memory.stats().bytes);
        for call in &calls {
            now += call.later;
            apply(&memory, &limits, &ban, call, now);
            memory.check_invariants();
        }
        memory.sweep(Time::from_nanos(now + 1_000 * SECOND));
        memory.check_invariants();
        prop_assert_eq!(memory.stats().counters, 0);
        prop_assert_eq!(memory.stats().bytes, empty, "all memory is given back");
    }
}
