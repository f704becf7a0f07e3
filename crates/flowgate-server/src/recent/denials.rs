//! The last denials, one by one.
//!
//! State      A ring of [`MAX_DENIALS`] samples of denied requests, each with a number that counts up. A sample stands for
//!            one request on a quiet server, and for several on a busy one.
//! Rule       A thread never waits for the ring: if another thread holds it, the sample is dropped, and its number is
//!            used, so that a reader learns that it has missed one.
//! Rule       Headers and queries may hold secrets, so they are left out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flowgate::{Span, Time};

use super::subject::Subject;
use crate::lock::Lock;
use crate::metrics::Counter;

/// The most denials of the ring. New ones replace the oldest.
pub(crate) const MAX_DENIALS: usize = 1_024;

/// The most bytes of one denial's fields.
const MAX_FIELD_BYTES: usize = 512;

/// A denied request.
#[derive(Clone, Debug)]
pub(crate) struct DenialEvent {
    pub(crate) at: Time,
    /// The rule that denied; `None`: a limit on an ad hoc key, or a ban by hand.
    pub(crate) rule: Option<Box<str>>,
    /// `limit`, `rule`, `ban` or `ban by hand`.
    pub(crate) by: &'static str,
    pub(crate) action: Box<str>,
    pub(crate) subject: Option<Subject>,
    /// The fields that are not part of the subject.
    pub(crate) fields: Vec<(Box<str>, Box<str>)>,
    pub(crate) cost: u64,
    /// The wait; `None`: no wait helps.
    pub(crate) retry_after: Option<Span>,
    /// The number of requests that this sample stands for.
    pub(crate) stands_for: u32,
    pub(crate) degraded: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Denials {
    /// The number of the last denial.
    last: AtomicU64,
    ring: Lock<VecDeque<(u64, DenialEvent)>>,
    /// Samples that were dropped because another thread held the ring.
    pub(super) in_use: Counter,
    /// Samples that newer ones have replaced.
    pub(super) full: Counter,
}

/// Denials in their order.
#[derive(Debug)]
pub(crate) struct DenialPage {
    /// The number to ask after next.
    pub(crate) next: u64,
    /// Denials that the reader has missed.
    pub(crate) lost: u64,
    pub(crate) denials: Vec<(u64, DenialEvent)>,
}

impl Denials {
    pub(crate) fn note(&self, denial: DenialEvent) {
        let Some(mut ring) = self.ring.try_lock() else {
            self.last.fetch_add(1, Relaxed);
            return self.in_use.add(1);
        };
        if ring.len() == MAX_DENIALS {
            ring.pop_front();
            self.full.add(1);
        }
        let number = self.last.fetch_add(1, Relaxed) + 1;
        ring.push_back((number, denial));
    }

    /// The denials after a number, at most `most`, of one rule if that is given. Returns the newest denials without a
    /// number, and for a number that was never given, such as one from before a restart.
    pub(crate) fn read(&self, after: Option<u64>, rule: Option<&str>, most: usize) -> DenialPage {
        let ring = self.ring.lock();
        let last = self.last.load(Relaxed);
        let is_wanted = |denial: &DenialEvent| rule.is_none_or(|rule| denial.rule.as_deref() == Some(rule));
        let Some(after) = after.filter(|after| *after <= last) else {
            let newest = ring.iter().rev().filter(|(_, denial)| is_wanted(denial)).take(most);
            let mut denials: Vec<_> = newest.cloned().collect();
            denials.reverse();
            return DenialPage { next: last, lost: 0, denials };
        };
        let (mut next, mut expected, mut lost, mut denials) = (last, after + 1, 0, Vec::new());
        for (number, denial) in ring.iter().filter(|(number, _)| *number > after) {
            if denials.len() == most {
                next = expected - 1;
                break;
            }
            lost += number - expected;
            expected = number + 1;
            if is_wanted(denial) {
                denials.push((*number, denial.clone()));
            }
        }
        if next == last {
            lost += (last + 1).saturating_sub(expected);
        }
        DenialPage { next, lost, denials }
    }
}

/// The fields of a request that may be shown, at most [`MAX_FIELD_BYTES`]. A longer value is cut, with a `…` at the
/// cut.
pub(crate) fn told_fields<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(Box<str>, Box<str>)> {
    let mut room = MAX_FIELD_BYTES;
    let mut told = Vec::new();
    for (name, value) in fields.filter(|(name, _)| !name.starts_with("header.") && !name.starts_with("query.")) {
        let Some(left) = room.checked_sub(name.len()) else { break };
        let cut = value.floor_char_boundary(left);
        room = left - cut;
        let value = if cut < value.len() { format!("{}\u{2026}", &value[..cut]).into() } else { value.into() };
        told.push((name.into(), value));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(rule: &str) -> DenialEvent {
        DenialEvent {
            at: Time::EPOCH,
            rule: Some(rule.into()),
            by: "limit",
            action: "deny".into(),
            subject: None,
            fields: Vec::new(),
            cost: 1,
            retry_after: None,
            stands_for: 1,
            degraded: false,
        }
    }

    fn numbers(page: &DenialPage) -> Vec<u64> {
        page.denials.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn a_reader_gets_each_denial_once_and_learns_what_it_missed() {
        let denials = Denials::default();
        assert_eq!(denials.read(None, None, 10).next, 0);
        for number in 0..5 {
            denials.note(denial(if number % 2 == 0 { "a" } else { "b" }));
        }
        let first = denials.read(None, None, 3);
        assert_eq!((numbers(&first), first.next, first.lost), (vec![3, 4, 5], 5, 0));
        let from_start = denials.read(Some(0), None, 3);
        assert_eq!((numbers(&from_start), from_start.next), (vec![1, 2, 3], 3));
        let of_rule = denials.read(Some(0), Some("b"), 10);
        assert_eq!((numbers(&of_rule), of_rule.next, of_rule.lost), (vec![2, 4], 5, 0));
        let rest = denials.read(Some(5), None, 10);
        assert_eq!((numbers(&rest), rest.next, rest.lost), (vec![], 5, 0));
        let restarted = denials.read(Some(4_000), None, 2);
        assert_eq!((numbers(&restarted), restarted.next), (vec![4, 5], 5));
        (0..2_000).for_each(|_| denials.note(denial("a")));
        let page = denials.read(Some(5), None, 10);
        assert_eq!((page.lost, numbers(&page)[0], page.next), (2_005 - 1_024 - 5, 982, 991));
        assert_eq!(denials.ring.lock().len(), MAX_DENIALS);
        assert_eq!((denials.full.get(), denials.in_use.get()), (2_005 - 1_024, 0));
    }

    #[test]
    fn a_sample_that_finds_the_ring_in_use_is_counted_as_lost() {
        let denials = Denials::default();
        denials.note(denial("a"));
        {
            let _held = denials.ring.lock();
            denials.note(denial("a"));
        }
        let page = denials.read(Some(0), None, 10);
        assert_eq!((numbers(&page), page.next, page.lost), (vec![1], 2, 1));
        assert_eq!((denials.full.get(), denials.in_use.get()), (0, 1));
        denials.note(denial("a"));
        let page = denials.read(Some(0), None, 10);
        assert_eq!((numbers(&page), page.next, page.lost), (vec![1, 3], 3, 1));
    }

    #[test]
    fn fields_are_bounded_and_secrets_left_out() {
        let long = "\u{4e2d}".repeat(1_000);
        let fields = [("act", "reply"), ("header.cookie", "s"), ("query.token", "s"), ("text", &long), ("more", "x")];
        let told = told_fields(fields.into_iter());
        let names: Vec<&str> = told.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["act", "text"]);
        let bytes: usize = told.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(bytes <= MAX_FIELD_BYTES + '\u{2026}'.len_utf8() && told[1].1.ends_with('\u{2026}'), "{bytes}");
    }
}
