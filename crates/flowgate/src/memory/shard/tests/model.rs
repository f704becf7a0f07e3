//! The table against a model: a map of what each key was charged.

use super::*;

/// A store and a model of it: what each key was charged, and when that is forgotten.
struct Modelled {
    memory: MemoryStore,
    limit: Limit,
    model: HashMap<u32, (u64, u64)>,
    now: u64,
}

#[derive(Clone, Debug)]
enum Change {
    Charge(u32),
    Refund(u32),
    Reset(u32),
    Age(u64),
    Sweep,
}

const KEYS: u32 = 3_000;

fn change() -> impl Strategy<Value = Vec<Change>> {
    let key = 0..KEYS;
    let change = prop_oneof![
        12 => key.clone().prop_map(Change::Charge),
        2 => key.clone().prop_map(Change::Refund),
        2 => key.prop_map(Change::Reset),
        1 => (0..3 * SECOND).prop_map(Change::Age),
    ];
    // Whole phases of one kind fill and empty the table.
    let phase = prop_oneof![
        prop::collection::vec(change, 1..200),
        (0..KEYS, 1..KEYS).prop_map(|(from, len)| (from..(from + len).min(KEYS)).map(Change::Charge).collect()),
        (0..KEYS, 1..KEYS).prop_map(|(from, len)| (from..(from + len).min(KEYS)).map(Change::Reset).collect()),
        (0..90 * SECOND).prop_map(|nanos| vec![Change::Age(nanos)]),
        Just(vec![Change::Sweep]),
    ];
    prop::collection::vec(phase, 1..12).prop_map(|phases| phases.concat())
}

impl Modelled {
    fn new(seed: [u64; 2]) -> Modelled {
        let memory = MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, seed: Seed(seed), ..MemoryConfig::default() });
        memory.count_databases();
        Modelled { memory, limit: "fixed 1000/60s".parse().unwrap(), model: HashMap::new(), now: START }
    }

    /// Four keys have the same bytes, each in a database of its own.
    fn name(&self, key: u32) -> Key {
        let database = Database::new((key % 4) as u8).unwrap();
        self.memory.subject(&(key / 4).to_le_bytes()).counter(self.memory.counter(b"")).in_database(database)
    }

    fn apply(&self, op: Op, key: u32) -> Decision {
        let key = self.name(key);
        let mut hits = [Hit::new(key, &self.limit)];
        self.memory.apply(&mut Plan::one(Ask::new(op, 1, Time::from_nanos(self.now)), &mut hits));
        *hits[0].outcome()
    }

    fn change(&mut self, change: &Change) {
        let now = self.now;
        match *change {
            Change::Charge(key) => {
                self.apply(Op::Take, key);
                let (count, ends_at) = self.model.entry(key).or_default();
                if now >= *ends_at {
                    (*count, *ends_at) = (0, now + 60 * SECOND);
                }
                *count += 1;
            }
            Change::Refund(key) => {
                self.apply(Op::Refund, key);
                if let Some((count, ends_at)) = self.model.get_mut(&key) {
                    *count -= 1;
                    if *count == 0 || now >= *ends_at {
                        self.model.remove(&key);
                    }
                }
            }
            Change::Reset(key) => {
                let had = self.memory.reset(self.name(key));
                let has = self.model.remove(&key).is_some_and(|(_, ends_at)| now < ends_at);
                assert!(had || !has, "what was counted was there");
            }
            Change::Age(nanos) => self.now += nanos,
            Change::Sweep => self.memory.sweep(Time::from_nanos(now)),
        }
    }

    fn check(&self) {
        self.memory.check_invariants();
        for key in 0..KEYS {
            let charged =
                self.model.get(&key).filter(|(_, ends_at)| self.now < *ends_at).map_or(0, |(count, _)| *count);
            assert_eq!(self.apply(Op::Peek, key).remaining, Some(1000 - charged), "of key {key}");
        }
        self.memory.check_invariants();
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn the_table_is_a_map_through_growth_and_shrinking(seed in any::<[u64; 2]>(), changes in change()) {
        let mut modelled = Modelled::new(seed);
        for (number, change) in changes.iter().enumerate() {
            modelled.change(change);
            if number % 50 == 0 {
                modelled.memory.check_invariants();
            }
        }
        modelled.check();
    }
}
