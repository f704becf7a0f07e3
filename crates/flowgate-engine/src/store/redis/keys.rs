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
//!            letters, 48 bits of the SHA-256 of `reply:sliding:60s:0`, or of `reply:ban`. Invariant Different subjects
//!            and counters have different names: every byte that has a meaning in a name, or cannot be printed, is
//!            escaped as `%XX`. A tag longer than [`MAX_TAG`] becomes `h:` and 128 bits of its SHA-256.

use std::io::Write;

use flowgate::{Database, Limit};
use sha2::{Digest, Sha256};

use crate::decider::AdHocKey;
use crate::key::identity;

/// The longest hash tag that is written out.
pub(super) const MAX_TAG: usize = 160;

/// The initial capacity of a tag in bytes, enough for most tags.
const USUAL_TAG_BYTES: usize = 64;

/// The name of a counter among those of its subject.
pub(crate) type CounterName = [u8; 8];

/// The name of the one counter of an ad hoc key. No hash has a dash.
pub(super) const AD_HOC: CounterName = *b"--------";

/// What follows the tag of every subject: the version of the layout. Nodes of another version count in other keys.
const LAYOUT: &str = ":2";

/// The tag of a subject: the names and values of its `by` fields, in the order of the names.
pub(super) fn subject<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut tag = Vec::with_capacity(USUAL_TAG_BYTES);
    tag.push(b's');
    for (index, (name, value)) in fields.enumerate() {
        tag.push(if index == 0 { b':' } else { b',' });
        escape(&mut tag, name.as_bytes());
        tag.push(b'=');
        escape(&mut tag, value.as_bytes());
    }
    bounded(tag)
}

/// The tag of a rule without `by`.
pub(super) fn all(rule: &str) -> Vec<u8> {
    let mut tag = b"a:".to_vec();
    escape(&mut tag, rule.as_bytes());
    bounded(tag)
}

/// The tag of an ad hoc key.
pub(super) fn ad_hoc(key: AdHocKey<'_>) -> Vec<u8> {
    let mut tag = Vec::with_capacity(USUAL_TAG_BYTES);
    tag.push(b'k');
    if key.database != Database::default() {
        // Writing to a vector does not fail.
        _ = write!(tag, "{}", key.database.number());
    }
    tag.push(b':');
    // Nothing follows, so a colon has no meaning here and is not escaped. Most keys have colons.
    for part in key.bytes.split_inclusive(|byte| *byte == b':') {
        let (text, colon) = part.strip_suffix(b":").map_or((part, false), |text| (text, true));
        escape(&mut tag, text);
        if colon {
            tag.push(b':');
        }
    }
    bounded(tag)
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

/// The key of a subject.
pub(super) fn write_subject(key: &mut Vec<u8>, prefix: &str, tag: &[u8]) {
    write(key, prefix, tag, LAYOUT);
}

/// A whole key.
pub(super) fn write(key: &mut Vec<u8>, prefix: &str, tag: &[u8], behind: &str) {
    key.reserve(prefix.len() + tag.len() + behind.len() + 2);
    key.extend_from_slice(prefix.as_bytes());
    key.push(b'{');
    key.extend_from_slice(tag);
    key.push(b'}');
    key.extend_from_slice(behind.as_bytes());
}

fn escape(tag: &mut Vec<u8>, text: &[u8]) {
    let has_meaning = |byte: u8| matches!(byte, b'{' | b'}' | b'%' | b':' | b'=' | b',' | 0..=b' ' | 0x7f);
    if !text.iter().any(|byte| has_meaning(*byte)) {
        return tag.extend_from_slice(text);
    }
    for &byte in text {
        if has_meaning(byte) {
            tag.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        } else {
            tag.push(byte);
        }
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

fn bounded(tag: Vec<u8>) -> Vec<u8> {
    if tag.len() <= MAX_TAG {
        return tag;
    }
    let mut short = b"h:".to_vec();
    for byte in &Sha256::digest(&tag)[..16] {
        // Writing to a vector does not fail.
        _ = write!(short, "{byte:02x}");
    }
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Fields = Vec<(String, String)>;

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
