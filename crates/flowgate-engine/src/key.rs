//! Keys: what identifies a counter, written so that two different things never have the same bytes.
//!
//! A counter is named in two parts, as the store keeps them. The *subject* is the `by` fields with their values: all
//! rules that count by the same fields share it, so that a request mostly touches one shard. The *counter* is the rule
//! and what stays the same when its limits are edited: algorithm, period, and a number that tells limits of the same
//! algorithm and period apart.
//!
//! Invariant Every text is preceded by its length, and every key by a byte for its kind. Two sets of fields therefore
//! never have the same bytes, whatever characters a value has, and an ad hoc key is never taken for a rule's subject.

use flowgate::{Algorithm, Limit, MemoryStore, SubjectHasher, Unit};

/// What a key names: its first byte.
#[derive(Clone, Copy)]
#[repr(u8)]
enum KeyKind {
    Subject = 1,
    AdHoc = 2,
    LimitCounter = 3,
    BanCounter = 4,
    AdHocCounter = 5,
    All = 6,
}

/// The subject of no field yet: the `by` fields are pushed in the order of their names.
pub(crate) fn subject(memory: &MemoryStore) -> SubjectHasher {
    start_subject(memory, KeyKind::Subject)
}

/// The subject of a rule without `by`, to which the name of the rule is pushed.
pub(crate) fn all(memory: &MemoryStore) -> SubjectHasher {
    start_subject(memory, KeyKind::All)
}

fn start_subject(memory: &MemoryStore, kind: KeyKind) -> SubjectHasher {
    let mut subject = memory.subject_hasher();
    subject.push(&[kind as u8]);
    subject
}

/// The value of a field in a subject, and the name before it.
// Inlined, so that the state of the hash stays in registers.
#[inline(always)]
pub(crate) fn push_text(subject: &mut SubjectHasher, text: &str) {
    subject.push_number(text.len() as u64);
    subject.push(text.as_bytes());
}

/// The name space of ad hoc keys. Their bytes are hashed as they are, because most questions are about them.
pub(crate) const AD_HOC_SPACE: u8 = KeyKind::AdHoc as u8;

/// The one counter of an ad hoc key, whatever limit the caller names.
pub(crate) const AD_HOC_COUNTER: &[u8] = &[KeyKind::AdHocCounter as u8];

/// The counter of a rule's limit. `nth` tells limits of one algorithm and period apart.
pub(crate) fn limit_counter(rule: &str, limit: &Limit, nth: usize) -> Vec<u8> {
    let (algorithm, period) = identity(limit);
    let mut key = text_in(KeyKind::LimitCounter, rule);
    key.extend(length(algorithm.name()));
    key.extend(algorithm.name().as_bytes());
    key.extend(period.to_le_bytes());
    key.extend((nth as u64).to_le_bytes());
    key
}

/// The name of the counter that records a rule's bans and strikes.
pub(crate) fn ban_counter(rule: &str) -> Vec<u8> {
    text_in(KeyKind::BanCounter, rule)
}

fn text_in(kind: KeyKind, text: &str) -> Vec<u8> {
    [&[kind as u8], &length(text)[..], text.as_bytes()].concat()
}

fn length(text: &str) -> [u8; 8] {
    (text.len() as u64).to_le_bytes()
}

/// An edit keeps a limit's counter if this stays the same: the algorithm and the length of the period in nanoseconds (0
/// for a month).
pub(crate) fn identity(limit: &Limit) -> (Algorithm, u64) {
    let period = limit.rate().map(|rate| rate.period()).filter(|period| period.unit() != Unit::Month);
    (limit.algorithm(), period.and_then(|period| period.length()).map_or(0, |length| length.as_nanos()))
}

#[cfg(test)]
mod tests {
    use flowgate::Subject;
    use proptest::prelude::*;

    use super::*;

    type Fields = Vec<(String, String)>;

    fn key(memory: &MemoryStore, fields: &Fields) -> Subject {
        let mut key = subject(memory);
        fields.iter().flat_map(|(name, value)| [name, value]).for_each(|text| push_text(&mut key, text));
        key.subject()
    }

    proptest! {
        #[test]
        fn different_subjects_have_different_keys(
            a in proptest::collection::vec(("[ab:\0]{0,3}", "[ab:\0]{0,3}"), 0..3),
            b in proptest::collection::vec(("[ab:\0]{0,3}", "[ab:\0]{0,3}"), 0..3),
        ) {
            let memory = MemoryStore::default();
            prop_assert_eq!(key(&memory, &a) == key(&memory, &b), a == b);
        }
    }

    /// A journal holds hashes of these bytes, so the bytes must never change.
    #[test]
    fn the_bytes_of_a_key_never_change() {
        let memory = MemoryStore::default();
        let fields = [("act", "reply"), ("user", "42")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let bytes = b"\x01\x03\0\0\0\0\0\0\0act\x05\0\0\0\0\0\0\0reply\x04\0\0\0\0\0\0\0user\x02\0\0\0\0\0\0\x0042";
        assert_eq!(key(&memory, &fields.into()), memory.subject(bytes));
        let mut of_rule = all(&memory);
        of_rule.push(b"reply");
        assert_eq!(of_rule.subject(), memory.subject(b"\x06reply"));
        assert_eq!(AD_HOC_COUNTER, [5]);
        assert_eq!(ban_counter("r"), b"\x04\x01\0\0\0\0\0\0\0r");
        let counter = b"\x03\x01\0\0\0\0\0\0\0r\x05\0\0\0\0\0\0\0fixed\0\xca\x9a\x3b\0\0\0\0\x01\0\0\0\0\0\0\0";
        assert_eq!(limit_counter("r", &"fixed 5/s".parse().unwrap(), 1), counter);
    }

    #[test]
    fn a_counter_is_the_same_when_algorithm_and_period_are() {
        let key = |limit: &str| limit_counter("r", &limit.parse().unwrap(), 0);
        assert_eq!(key("5/60s"), key("sliding 7/1m"));
        assert_eq!(key("bucket 5/60s"), key("bucket 0.5/m burst=9"));
        assert_eq!(key("fixed 5/month tz=UTC"), key("fixed 9/month tz=Asia/Shanghai"));
        assert_ne!(key("5/60s"), key("5/61s"));
        assert_ne!(key("5/60s"), key("fixed 5/60s"));
        assert_ne!(key("5/60s"), limit_counter("r", &"5/60s".parse().unwrap(), 1));
        assert_ne!(key("5/60s"), limit_counter("q", &"5/60s".parse().unwrap(), 0));
    }
}
