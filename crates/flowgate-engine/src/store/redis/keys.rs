//! The names of keys in Redis: readable, unambiguous, of bounded length.
//!
//! ```text
//! fg:{s:user=42}:2             the subject user=42: all its counters, strikes and bans; 2 is the version of the layout
//! fg:{s:user=42}:2:Xw3kq0Tz    the older part of a long sliding log of it, by the name of its counter
//! fg:{a:upload}:2              a rule without `by`: one subject for all
//! fg:{k:hist:42}:2             an ad hoc key
//! fg:{k3:hist:42}:2            an ad hoc key in the database 3
//! fg:{bans}                    the bans by hand
//! ```
//!
//! Rule       The text in braces is the hash tag: all counters of a subject are in one slot of a cluster. A counter is
//!            named by what stays the same when its limit is edited, as in memory (see [`key`](crate::key)): eight
//!            letters, 48 bits of the SHA-256 of `reply:sliding:60s:0`, or of `reply:ban`.
//! Invariant  Different subjects
//!            and counters have different names: every byte that has a meaning in a name, or cannot be printed, is
//!            escaped as `%XX`. A tag longer than [`MAX_TAG`] becomes `h:` and 128 bits of its SHA-256.

use std::io::Write;

use flowgate::{Database, Limit};
use sha2::{Digest, Sha256};

use crate::decider::AdHocKey;
use crate::key::identity;

/// The longest hash tag that is written out.
pub(super) const MAX_TAG: usize = 160;

/// The name of a counter among those of its subject.
pub(crate) type CounterName = [u8; 8];

/// The name of the one counter of an ad hoc key. No hash has a dash.
pub(super) const AD_HOC: CounterName = *b"--------";

/// What follows the tag of every subject: the version of the layout. Nodes of another version count in other keys.
const LAYOUT: &str = ":2";

/// Appends the tag of a subject: the names and values of its `by` fields, in the order of the names.
pub(super) fn subject<'a>(tag: &mut Vec<u8>, fields: impl Iterator<Item = (&'a str, &'a str)>) {
    let start = tag.len();
    tag.push(b's');
    for (index, (name, value)) in fields.enumerate() {
        tag.push(if index == 0 { b':' } else { b',' });
        escape(tag, name.as_bytes());
        tag.push(b'=');
        escape(tag, value.as_bytes());
    }
    bound(tag, start);
}

/// Appends the tag of a rule without `by`.
pub(super) fn all(tag: &mut Vec<u8>, rule: &str) {
    let start = tag.len();
    tag.extend_from_slice(b"a:");
    escape(tag, rule.as_bytes());
    bound(tag, start);
}

/// Appends the tag of an ad hoc key.
pub(super) fn ad_hoc(tag: &mut Vec<u8>, key: AdHocKey<'_>) {
    let start = tag.len();
    tag.push(b'k');
    if key.database != Database::default() {
        // A vector takes whatever is written.
        _ = write!(tag, "{}", key.database.number());
    }
    tag.push(b':');
    // Nothing follows, so a colon has no meaning here; most keys have some.
    escape_where(tag, key.bytes, |byte| byte != b':' && HAS_MEANING[usize::from(byte)]);
    bound(tag, start);
}

/// The name of a limit's counter. `nth` tells limits of one algorithm and period apart.
pub(crate) fn limit_name(rule: &str, limit: &Limit, nth: usize) -> CounterName {
    name_of(&limit_counter(rule, limit, nth))
}

/// The name of the record of a rule's bans.
pub(crate) fn ban_name(rule: &str) -> CounterName {
    name_of(&format!("{rule}:ban"))
}

fn limit_counter(rule: &str, limit: &Limit, nth: usize) -> String {
    let (algorithm, period) = identity(limit);
    let period = if period == 0 { "month".to_owned() } else { flowgate::Span::from_nanos(period).to_string() };
    format!("{rule}:{}:{period}:{nth}", algorithm.name())
}

fn name_of(counter: &str) -> CounterName {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
    let hash = Sha256::digest(counter);
    std::array::from_fn(|at| LETTERS[usize::from(hash[at] & 63)])
}

/// Appends the key of a subject.
pub(super) fn write_subject(key: &mut Vec<u8>, prefix: &str, tag: &[u8]) {
    write(key, prefix, tag, LAYOUT);
}

/// Appends the key of an ad hoc key.
pub(super) fn write_ad_hoc(key: &mut Vec<u8>, prefix: &str, ad_hoc_key: AdHocKey<'_>) {
    write_with(key, prefix, |key| ad_hoc(key, ad_hoc_key), LAYOUT);
}

/// Appends a whole key.
pub(super) fn write(key: &mut Vec<u8>, prefix: &str, tag: &[u8], behind: &str) {
    write_with(key, prefix, |key| key.extend_from_slice(tag), behind);
}

fn write_with(key: &mut Vec<u8>, prefix: &str, write_tag: impl FnOnce(&mut Vec<u8>), behind: &str) {
    key.extend_from_slice(prefix.as_bytes());
    key.push(b'{');
    write_tag(key);
    key.push(b'}');
    key.extend_from_slice(behind.as_bytes());
}

fn escape(tag: &mut Vec<u8>, text: &[u8]) {
    escape_where(tag, text, |byte| HAS_MEANING[usize::from(byte)]);
}

fn escape_where(tag: &mut Vec<u8>, text: &[u8], is_escaped: impl Fn(u8) -> bool) {
    let mut rest = text;
    while let Some(plain) = rest.iter().position(|byte| is_escaped(*byte)) {
        let byte = rest[plain];
        tag.extend_from_slice(&rest[..plain]);
        tag.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        rest = &rest[plain + 1..];
    }
    tag.extend_from_slice(rest);
}

/// The bytes that have a meaning in a name, or do not print.
const HAS_MEANING: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < table.len() {
        table[byte] = matches!(byte as u8, b'{' | b'}' | b'%' | b':' | b'=' | b',' | 0..=b' ' | 0x7f);
        byte += 1;
    }
    table
};

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Replaces the tag that begins at `start` by its hash if it is too long.
fn bound(tag: &mut Vec<u8>, start: usize) {
    if tag.len() - start <= MAX_TAG {
        return;
    }
    let hash = Sha256::digest(&tag[start..]);
    tag.truncate(start);
    tag.extend_from_slice(b"h:");
    for byte in &hash[..16] {
        // A vector takes whatever is written.
        _ = write!(tag, "{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Fields = Vec<(String, String)>;

    fn subject<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
        let mut tag = Vec::new();
        super::subject(&mut tag, fields);
        tag
    }

    fn ad_hoc(key: AdHocKey<'_>) -> Vec<u8> {
        let mut tag = Vec::new();
        super::ad_hoc(&mut tag, key);
        tag
    }

    fn tag(fields: &Fields) -> Vec<u8> {
        subject(fields.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    fn in_database(bytes: &[u8], number: u8) -> AdHocKey<'_> {
        AdHocKey { bytes, database: Database::new(number).unwrap() }
    }

    fn shown(tag: Vec<u8>) -> String {
        String::from_utf8(tag).unwrap()
    }

    proptest! {
        #[test]
        fn different_subjects_have_different_tags(
            a in proptest::collection::vec(("[ab:=,%{} ]{0,3}", "[ab:=,%{} ]{0,3}"), 0..3),
            b in proptest::collection::vec(("[ab:=,%{} ]{0,3}", "[ab:=,%{} ]{0,3}"), 0..3),
        ) {
            prop_assert_eq!(tag(&a) == tag(&b), a == b);
            let braces = tag(&a).into_iter().filter(|byte| matches!(byte, b'{' | b'}')).count();
            prop_assert_eq!(braces, 0);
        }

        #[test]
        fn different_ad_hoc_keys_have_different_tags(
            a in proptest::collection::vec(proptest::sample::select(b"ab:%{}5\0\xff".to_vec()), 0..4),
            b in proptest::collection::vec(proptest::sample::select(b"ab:%{}5\0\xff".to_vec()), 0..4),
        ) {
            prop_assert_eq!(ad_hoc(in_database(&a, 0)) == ad_hoc(in_database(&b, 0)), a == b);
            prop_assert_ne!(ad_hoc(in_database(&a, 0)), ad_hoc(in_database(&b, 5)));
            prop_assert_ne!(ad_hoc(in_database(&a, 1)), ad_hoc(in_database(&b, 15)));
        }
    }

    #[test]
    fn names_can_be_read() {
        assert_eq!(shown(subject([("ip", "::1"), ("user", "4 2")].into_iter())), "s:ip=%3A%3A1,user=4%202");
        assert_eq!(shown(ad_hoc(in_database(b"hist:42:{x}", 0))), "k:hist:42:%7Bx%7D");
        assert_eq!(shown(ad_hoc(in_database(b"hist:42", 15))), "k15:hist:42");
        let counter = |limit: &str| limit_counter("reply", &limit.parse().unwrap(), 1);
        assert_eq!(counter("5/1m"), "reply:sliding:60s:1");
        assert_eq!(counter("fixed 5/month tz=UTC"), "reply:fixed:month:1");
        assert_eq!(counter("bucket 5/10us"), "reply:bucket:0.00001s:1");
        assert_ne!(ban_name("reply"), ban_name("post"));
        assert!(ban_name("reply").iter().all(|letter| letter.is_ascii_graphic() && *letter != b'-'));
    }

    #[test]
    fn a_long_subject_is_hashed() {
        let long = "x".repeat(1000);
        let tag = shown(subject([("user", long.as_str())].into_iter()));
        assert_eq!(tag.len(), 34);
        assert!(tag.starts_with("h:"), "{tag}");
        let other = shown(subject([("user", format!("{long}y").as_str())].into_iter()));
        assert_ne!(tag, other);
        assert_eq!(subject([("user", "x".repeat(MAX_TAG - 7).as_str())].into_iter()).len(), MAX_TAG);
    }
}
