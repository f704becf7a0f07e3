//! Whom it hits hardest, in bounded memory.
//!
//! State      Up to `2 * KEPT` subjects with their counts.
//! Rule       When there is no room for another, the half with the smaller counts is forgotten. A subject that comes
//!            in later may be one of those, so it is credited with the largest count that was forgotten.
//! Bound      A count is never too low; it is too high by at most the credit, which stands beside it. With no more
//!            than `2 * KEPT` subjects every count is exact.

use std::cmp::Reverse;
use std::hash::{BuildHasher, RandomState};

use flowgate::Time;
use flowgate_engine::Request;
use hashbrown::HashMap;

/// Far more than anybody reads, so that those at the top are right.
const KEPT: usize = 16_384;
/// Longer subjects are shown shortened.
const SHOWN_CHARS: usize = 120;

/// Subjects and how often something happened to them.
#[derive(Debug, Default)]
pub(crate) struct Top {
    hasher: RandomState,
    entries: HashMap<u64, Entry>,
    /// The largest count that was forgotten.
    forgotten: u64,
}

/// A subject and what happened to it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The position of the rule that counts it.
    pub rule: usize,
    /// Its values of the rule's `by`.
    pub subject: String,
    /// How often; too high by at most `credit`.
    pub count: u64,
    /// See `count`; zero is exact.
    pub credit: u64,
    /// When first, since it was last forgotten.
    pub first: Time,
    /// When last.
    pub last: Time,
}

impl Top {
    /// Counts the subject that a request has under a rule.
    pub(crate) fn add(&mut self, rule: usize, by: &[String], request: &Request<'_>, now: Time) {
        let values = by.iter().map(|field| request.get(field));
        let hash = self.hasher.hash_one((rule, Values(values)));
        if let Some(entry) = self.entries.get_mut(&hash) {
            entry.count += 1;
            entry.last = now;
            return;
        }
        if self.entries.len() >= 2 * KEPT {
            self.forget();
        }
        let (subject, credit) = (subject(by, request), self.forgotten);
        self.entries.insert(hash, Entry { rule, subject, count: credit + 1, credit, first: now, last: now });
    }

    /// Those with the largest counts, largest first.
    pub(crate) fn largest(&self, number: usize) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.entries.values().collect();
        entries.sort_by(|a, b| (Reverse(a.count), a.rule, &a.subject).cmp(&(Reverse(b.count), b.rule, &b.subject)));
        entries.truncate(number);
        entries
    }

    /// How many subjects there are; at least so many when some were forgotten.
    pub(crate) fn subjects(&self) -> (usize, bool) {
        (self.entries.len(), self.forgotten > 0)
    }

    fn forget(&mut self) {
        let mut counts: Vec<u64> = self.entries.values().map(|entry| entry.count).collect();
        let (_, median, _) = counts.select_nth_unstable(KEPT);
        let median = *median;
        // Where many share the median some of them stay, as many as there is room for.
        let mut room = KEPT.saturating_sub(counts.iter().filter(|count| **count > median).count());
        self.entries.retain(|_, entry| {
            let stays = entry.count > median || entry.count == median && room > 0;
            room -= usize::from(stays && entry.count == median);
            stays
        });
        self.forgotten = self.forgotten.max(median);
    }
}

/// The values of a request's fields, to be hashed one after the other without being collected.
struct Values<I>(I);

impl<'a, I: Iterator<Item = Option<&'a str>> + Clone> std::hash::Hash for Values<I> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.clone().for_each(|value| value.hash(state));
    }
}

/// A subject for people: the value where there is one field, else names and values.
pub(crate) fn subject(by: &[String], request: &Request<'_>) -> String {
    let value = |field: &String| request.get(field).unwrap_or_default();
    let text = match by {
        [] => "everyone".to_owned(),
        [field] => value(field).to_owned(),
        fields => fields.iter().map(|field| format!("{field}={}", value(field))).collect::<Vec<_>>().join(" "),
    };
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(top: &mut Top, user: &str) {
        top.add(0, &["user".to_owned()], &Request::new().field("user", user), Time::from_secs(1));
    }

    #[test]
    fn a_few_subjects_are_counted_exactly() {
        let mut top = Top::default();
        for number in 0..1000 {
            for _ in 0..number % 7 {
                add(&mut top, &number.to_string());
            }
        }
        let largest = top.largest(3);
        assert_eq!(largest.len(), 3);
        assert!(largest.iter().all(|entry| entry.count == 6 && entry.credit == 0));
        assert_eq!(top.subjects(), (1000 - 143, false));
    }

    #[test]
    fn of_many_the_hardest_hit_stay_and_counts_are_bounded() {
        let mut top = Top::default();
        for round in 0..10_u64 {
            for number in 0..10_000 {
                add(&mut top, &format!("{round}/{number}"));
                if number % 100 == 0 {
                    add(&mut top, "often");
                }
            }
        }
        assert!(top.entries.len() <= 2 * KEPT);
        let largest = top.largest(2);
        let Entry { subject, count, credit, .. } = largest[0];
        assert_eq!(subject, "often");
        assert!((1000..=1000 + credit).contains(count), "{count} {credit}");
        assert!(*credit <= 100_000 / KEPT as u64);
    }

    #[test]
    fn subjects_for_people() {
        let request = Request::new().field("ip", "::1").field("user", "7");
        let by = |fields: &[&str]| fields.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(subject(&by(&[]), &request), "everyone");
        assert_eq!(subject(&by(&["ip"]), &request), "::1");
        assert_eq!(subject(&by(&["ip", "user"]), &request), "ip=::1 user=7");
        let long = "é".repeat(500);
        assert_eq!(subject(&by(&["x"]), &Request::new().field("x", &long)).chars().count(), SHOWN_CHARS + 1);
    }
}
