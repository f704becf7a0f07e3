//! Keys: what identifies a counter, written such that two different things never give the same bytes.
//!
//! A counter is named in two parts, as the store keeps them. The *subject* is the `by` fields with their values: all
//! rules that count by the same fields share it, so that a request mostly touches one shard. The *counter* is the
//! rule and what stays the same when its limits are edited: algorithm, period, and which of several such it is.
//!
//! Invariant  Every text is preceded by its length and every key by what it is, so `{a: "b:c"}` and `{a: "b", ..}`
//!            cannot meet, nor can a caller's ad hoc key be taken for a rule's subject.

use flowgate::{Algorithm, Limit, Unit};

/// The bytes of a key. The usual one fits without an allocation, and pieces of it are put in place without a call.
#[derive(Clone, Debug)]
pub(crate) struct KeyBytes {
    inline: [u8; 128],
    length: usize,
    /// The whole key, once it is longer than `inline`.
    long: Vec<u8>,
}

impl KeyBytes {
    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        match self.inline.get_mut(self.length..end) {
            Some(place) if self.long.is_empty() => place.copy_from_slice(bytes),
            _ => self.push_long(bytes),
        }
        self.length = end;
    }

    /// Adds a field of a subject.
    #[inline]
    pub(crate) fn push_field(&mut self, name: &NameInKey, value: &str) {
        self.push(&name.0);
        push_text(self, value.as_bytes());
    }

    #[cold]
    fn push_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.inline[..self.length]);
        }
        self.long.extend_from_slice(bytes);
    }
}

impl std::ops::Deref for KeyBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        if self.long.is_empty() { &self.inline[..self.length] } else { &self.long }
    }
}

impl PartialEq for KeyBytes {
    fn eq(&self, other: &KeyBytes) -> bool {
        **self == **other
    }
}

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
#[inline]
pub(crate) fn subject() -> KeyBytes {
    start(KeyKind::Subject)
}

/// The name of a field as it stands in the key of a subject.
#[derive(Clone, Debug)]
pub(crate) struct NameInKey(Box<[u8]>);

impl NameInKey {
    pub(crate) fn new(name: &str) -> NameInKey {
        NameInKey([&length(name.as_bytes()), name.as_bytes()].concat().into())
    }
}

/// The subject of a rule without `by`.
pub(crate) fn all(rule: &str) -> KeyBytes {
    let mut key = start(KeyKind::All);
    key.push(rule.as_bytes());
    key
}

/// The name space of the callers' ad hoc keys, which are hashed as they are: they are asked for most.
pub(crate) const AD_HOC_SPACE: u8 = KeyKind::AdHoc as u8;

/// The one counter of an ad hoc key, whatever limit the caller names.
pub(crate) fn ad_hoc_counter() -> KeyBytes {
    start(KeyKind::AdHocCounter)
}

/// The counter of a rule's limit. `nth` tells limits of one algorithm and period apart.
pub(crate) fn limit_counter(rule: &str, limit: &Limit, nth: usize) -> KeyBytes {
    let mut key = start(KeyKind::LimitCounter);
    push_text(&mut key, rule.as_bytes());
    let (algorithm, period) = identity(limit);
    push_text(&mut key, algorithm.name().as_bytes());
    key.push(&period.to_le_bytes());
    key.push(&(nth as u64).to_le_bytes());
    key
}

/// Where a rule keeps its bans and strikes.
pub(crate) fn ban_counter(rule: &str) -> KeyBytes {
    let mut key = start(KeyKind::BanCounter);
    push_text(&mut key, rule.as_bytes());
    key
}

/// What must stay for a limit's counter to survive an edit: the algorithm and the period's length in nanoseconds (0
/// for a month).
pub(crate) fn identity(limit: &Limit) -> (Algorithm, u64) {
    let period = limit.rate().map(|rate| rate.period()).filter(|period| period.unit() != Unit::Month);
    (limit.algorithm(), period.and_then(|period| period.length()).map_or(0, |length| length.as_nanos()))
}

#[inline]
fn start(kind: KeyKind) -> KeyBytes {
    let mut inline = [0; 128];
    inline[0] = kind as u8;
    KeyBytes { inline, length: 1, long: Vec::new() }
}

#[inline]
fn push_text(key: &mut KeyBytes, text: &[u8]) {
    key.push(&length(text));
    key.push(text);
}

fn length(text: &[u8]) -> [u8; 8] {
    (text.len() as u64).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Fields = Vec<(String, String)>;

    fn bytes(fields: &Fields) -> KeyBytes {
        let mut key = subject();
        fields.iter().for_each(|(name, value)| key.push_field(&NameInKey::new(name), value));
        key
    }

    proptest! {
        #[test]
        fn different_subjects_have_different_keys(
            a in proptest::collection::vec(("[ab:\0]{0,3}", "[ab:\0]{0,3}"), 0..3),
            b in proptest::collection::vec(("[ab:\0]{0,3}", "[ab:\0]{0,3}"), 0..3),
        ) {
            prop_assert_eq!(bytes(&a) == bytes(&b), a == b);
        }
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
