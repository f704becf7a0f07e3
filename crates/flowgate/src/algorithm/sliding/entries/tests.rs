use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

#[test]
fn a_few_need_no_memory_of_their_own() {
    let mut entries = Entries::default();
    for number in 1..=10 {
        entries.push_back(Entry { leaves_at: number, units: 2 }, 100);
        assert_eq!((entries.iter().count() as u64, entries.total()), (number, 2 * number));
        assert_eq!(entries.heap_bytes() > 0, number > INLINE_WORDS as u64);
    }
    entries.drop_left(4);
    entries.drop_newest(3);
    entries.keep_newest(8);
    let kept: Vec<(u64, u64)> = entries.iter().map(|entry| (entry.leaves_at, entry.units)).collect();
    assert_eq!(kept, [(5, 1), (6, 2), (7, 2), (8, 2), (9, 1)]);
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Push { after: u64, units: u64 },
    ChargeUsual { left: u64, after: u64, units: u64 },
    DropLeft { after: u64 },
    DropNewest { units: u64 },
    KeepNewest { most: u64 },
    JoinOldest,
    Visit,
}

fn changes() -> impl Strategy<Value = Change> {
    let units = prop_oneof![4 => 1..=3_u64, 2 => 4..=9_u64, 1 => Just(1 << 50)];
    let after = prop_oneof![4 => 0..=3_u64, 1 => Just(1 << 58)];
    prop_oneof![
        8 => (after.clone(), units.clone()).prop_map(|(after, units)| Change::Push { after, units }),
        4 => (0..=4_u64, after, units.clone()).prop_map(|(left, after, units)| Change::ChargeUsual { left, after, units }),
        2 => (0..=4_u64).prop_map(|after| Change::DropLeft { after }),
        1 => units.prop_map(|units| Change::DropNewest { units }),
        1 => (1..=60_u64).prop_map(|most| Change::KeepNewest { most }),
        1 => Just(Change::JoinOldest),
        1 => Just(Change::Visit),
    ]
}

proptest! {
    /// The packed entries against a plain list of them. `seen` are those of the last visit: all that a reader of a journal
    /// has when it reads the entries from `changed_from` on.
    #[test]
    fn packed_entries_are_those_of_a_plain_list(changes in prop::collection::vec(changes(), 1..200)) {
        const MOST: u64 = 1 << 55;
        let (mut entries, mut plain) = (Entries::default(), VecDeque::<Entry>::new());
        let mut seen: Vec<Entry> = Vec::new();
        for change in changes {
            match change {
                Change::Push { after, units } => {
                    let leaves_at = plain.back().map_or(1, |last| last.leaves_at).saturating_add(after);
                    let new = Entry { leaves_at, units };
                    let (held, lacking) = (entries.heap_bytes(), entries.lacking_bytes(new, 0, MOST));
                    entries.push_back(new, MOST);
                    prop_assert_eq!(entries.heap_bytes(), held + lacking);
                    match plain.back_mut() {
                        Some(last) if leaves_at <= last.leaves_at => last.units += units,
                        _ => plain.push_back(new),
                    }
                }
                Change::ChargeUsual { left, after, units } => {
                    let now = plain.front().map_or(0, |first| (first.leaves_at - 1).saturating_add(left));
                    let leaves_at = plain.back().map_or(1, |last| last.leaves_at).saturating_add(after);
                    let (new, mut step_by_step) = (Entry { leaves_at, units }, entries.clone());
                    if let Some(charge) = entries.charge_usual(new, now, MOST, entries.last_leaves_at()) {
                        let charged = entries.clone();
                        entries.undo_usual(&charge);
                        prop_assert_eq!(&entries, &step_by_step);
                        prop_assert_eq!(entries.total(), step_by_step.total());
                        prop_assert_eq!(entries.changed_from(), step_by_step.changed_from());
                        entries = charged;
                        step_by_step.drop_left(now);
                        step_by_step.push_back(new, MOST);
                        prop_assert_eq!(entries.changed_from(), step_by_step.changed_from());
                        prop_assert_eq!(entries.heap_bytes(), step_by_step.heap_bytes());
                        plain.retain(|entry| entry.leaves_at > now);
                        plain.push_back(new);
                    }
                }
                Change::DropLeft { after } => {
                    let now = plain.front().map_or(0, |first| (first.leaves_at - 1).saturating_add(after));
                    let left = plain.iter().filter(|entry| entry.leaves_at <= now).map(|entry| entry.units);
                    prop_assert_eq!(entries.left(now), left.sum::<u64>());
                    entries.drop_left(now);
                    plain.retain(|entry| entry.leaves_at > now);
                }
                Change::DropNewest { mut units } => {
                    entries.drop_newest(units);
                    while let Some(last) = plain.back_mut().filter(|_| units > 0) {
                        let taken = last.units.min(units);
                        last.units -= taken;
                        units -= taken;
                        if last.units == 0 {
                            plain.pop_back();
                        }
                    }
                }
                Change::KeepNewest { most } => {
                    entries.keep_newest(most);
                    let mut surplus = plain.iter().map(|entry| entry.units).sum::<u64>().saturating_sub(most);
                    while let Some(first) = plain.front_mut().filter(|_| surplus > 0) {
                        let taken = first.units.min(surplus);
                        first.units -= taken;
                        surplus -= taken;
                        if first.units == 0 {
                            plain.pop_front();
                        }
                    }
                }
                Change::JoinOldest => {
                    entries.join_oldest();
                    if plain.len() > 1 {
                        plain[1].units += plain[0].units;
                        plain.pop_front();
                    }
                }
                Change::Visit => {
                    entries.clear_changed();
                    seen = plain.iter().copied().collect();
                }
            }
            prop_assert!(entries.iter().eq(plain.iter().copied()), "{:?} {:?}", entries, plain);
            prop_assert_eq!(entries.total(), plain.iter().map(|entry| entry.units).sum::<u64>());
            prop_assert_eq!(entries.front(), plain.front().copied());
            prop_assert_eq!(entries.last_leaves_at(), plain.back().map_or(0, |last| last.leaves_at));
            prop_assert_eq!(entries.only(), plain.front().copied().filter(|_| plain.len() == 1));
            // A reader takes the oldest entry from the record, and those before `from` from what it has.
            let from = entries.changed_from();
            let is_old = |entry: &&Entry| entry.leaves_at < from;
            let old = plain.iter().skip(1).filter(is_old);
            let oldest = plain.front().map_or(0, |first| first.leaves_at);
            prop_assert!(old.eq(seen.iter().filter(|entry| entry.leaves_at > oldest).filter(is_old)));
        }
    }
}
