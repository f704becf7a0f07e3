//! Ban: a subject that is denied again and again stays out, longer each time.
//!
//! State      `until` of the last ban and `level`, its number, remembered until `forget_at`, and beside it the
//!            strikes: an exact log of the denials within the window.
//! Rule       While `now < until` every request is denied and changes nothing. Otherwise a denial is a strike; the N-th
//!            within the window clears the strikes and starts a ban of the next length, the last one repeating. A ban
//!            that starts later than `forget` after the end of the last one has the first length again.
//! Invariant  `until <= forget_at`, so a ban in force is never forgotten.

use crate::algorithm::{Charge, Log, MAX_DEBT_NANOS, Meter, Sliding};
use crate::memory::Key;
use crate::time::{Span, Time};

/// The most strikes that a ban may need: each keeps its exact time.
const MAX_STRIKES: u64 = 1000;

/// The most lengths of a ban: the level fits a byte.
const MAX_LENGTHS: usize = 100;

const MAX_WITHIN: Span = Span::from_secs(366 * 86_400);
const MAX_LENGTH: Span = Span::from_nanos(MAX_DEBT_NANOS);

/// When a subject is banned, and for how long: `after` denials in any span of `within` start a ban.
///
/// ```
/// use flowgate::{Ban, Span};
///
/// let minutes = |n: u64| Span::from_secs(60 * n);
/// let ban = Ban::new(3, minutes(10), &[minutes(1), minutes(10), minutes(60)], minutes(24 * 60))?;
/// assert!(Ban::new(0, minutes(10), &[minutes(1)], minutes(60)).is_err());
/// # Ok::<(), flowgate::BanError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ban {
    pub(crate) strikes: Sliding,
    /// The lengths of successive bans, in nanoseconds.
    pub(crate) lengths: Box<[u64]>,
    /// The time after which a ban is forgotten, in nanoseconds.
    pub(crate) forget: u64,
}

impl Ban {
    /// `after` denials `within` a span start a ban. The first ban has the first of `lengths`, the next ban the second,
    /// and so on; the last length repeats. `forget` after the end of a ban, the next one is a first one again.
    ///
    /// # Errors
    /// When a number is out of range; the error names the part.
    pub fn new(after: u64, within: Span, lengths: &[Span], forget: Span) -> Result<Ban, BanError> {
        let error = |part, found: String, expected| Err(BanError { part, found, expected });
        if after == 0 || after > MAX_STRIKES {
            return error("after", after.to_string(), "a number of denials from 1 to 1000");
        }
        if within.is_zero() || within > MAX_WITHIN {
            return error("within", within.to_string(), "a span from 1us to 366d");
        }
        if lengths.is_empty() || lengths.len() > MAX_LENGTHS {
            return error("for", format!("{} lengths", lengths.len()), "1 to 100 lengths");
        }
        if let Some(length) = lengths.iter().find(|length| length.is_zero() || **length > MAX_LENGTH) {
            return error("for", length.to_string(), "lengths from 1us to 36500d");
        }
        if forget > MAX_LENGTH {
            return error("forget", forget.to_string(), "a span up to 36500d");
        }
        let lengths = lengths.iter().map(|length| length.as_nanos()).collect();
        Ok(Ban { strikes: Sliding::new(after, within.as_nanos()), lengths, forget: forget.as_nanos() })
    }

    /// Counts a denial. Returns the ban that it starts, if any.
    fn strike(&self, record: &mut Record, now: u64) -> Option<LastBan> {
        if self.strikes.numbers(record.strikes.as_ref(), now).remaining > 1 {
            record.strikes = Some(self.strikes.charged(record.strikes.take(), now, 1, Charge::Counted));
            return None;
        }
        let level = record.last.filter(|last| now < last.forget_at).map_or(0, |last| last.level);
        let length = self.lengths[usize::from(level).min(self.lengths.len() - 1)];
        let until = now + length;
        let banned = LastBan { until, forget_at: until + self.forget, level: level.saturating_add(1) };
        *record = Record { last: Some(banned), strikes: None };
        record.last
    }
}

/// What is remembered about a subject that a rule may ban.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) last: Option<LastBan>,
    pub(crate) strikes: Option<Log>,
}

/// The last ban of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastBan {
    pub(crate) forget_at: u64,
    pub(crate) until: u64,
    pub(crate) level: u8,
}

/// The standing of a subject with a rule that bans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The subject is not banned.
    Clear,
    /// The subject was banned before this request.
    Banned {
        /// The end of the ban.
        until: Time,
    },
    /// This denial has started a ban of the subject.
    JustBanned {
        /// The end of the ban.
        until: Time,
    },
}

impl Standing {
    /// The end of the ban.
    pub fn until(self) -> Option<Time> {
        match self {
            Standing::Clear => None,
            Standing::Banned { until } | Standing::JustBanned { until } => Some(until),
        }
    }
}

/// A rule that bans, in a plan beside the rule's hits.
#[derive(Debug)]
pub struct BanHit<'a> {
    pub(crate) key: Key,
    pub(crate) ban: &'a Ban,
    /// The id of the rule whose denials count.
    pub(crate) rule_id: u32,
    /// The record of the subject: the store loads it, the decision changes it.
    pub(crate) record: Record,
    pub(crate) standing: Standing,
    /// True if the plan only looks for a ban in force: the rule has no hits in the plan, so its denials are not
    /// counted.
    pub(crate) watches: bool,
    /// True if the store is full and has no room for the record: strikes are lost.
    pub(crate) no_room: bool,
    /// True if a strike was lost.
    pub(crate) lost: bool,
}

impl<'a> BanHit<'a> {
    /// The denials of the rule with this id are strikes against `key`.
    pub fn new(key: Key, ban: &'a Ban, rule_id: u32) -> BanHit<'a> {
        let (record, standing) = (Record::default(), Standing::Clear);
        BanHit { key, ban, rule_id, record, standing, watches: false, no_room: false, lost: false }
    }

    /// A ban that the rule with this id has imposed on `key` denies, also where the rule has no hit in the plan.
    pub fn watching(key: Key, ban: &'a Ban, rule_id: u32) -> BanHit<'a> {
        BanHit { watches: true, ..BanHit::new(key, ban, rule_id) }
    }

    /// The id of the rule.
    pub fn rule_id(&self) -> u32 {
        self.rule_id
    }

    /// The key of the subject's record.
    pub fn key(&self) -> Key {
        self.key
    }

    /// True if the hit only looks for a ban in force.
    pub fn watches(&self) -> bool {
        self.watches
    }

    /// The standing of the subject after the plan was applied.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// A hit on the same record, with its loaded state.
    pub(crate) fn split_off(&mut self) -> BanHit<'a> {
        let (record, watches) = (std::mem::take(&mut self.record), self.watches);
        BanHit { record, watches, ..BanHit::new(self.key, self.ban, self.rule_id) }
    }

    /// Sets the standing by the loaded record: banned, or clear.
    pub(crate) fn look(&mut self, now: Time) {
        let in_force = self.record.last.filter(|last| now.as_nanos() < last.until);
        self.standing = match in_force {
            Some(LastBan { until, .. }) => Standing::Banned { until: Time::from_nanos(until) },
            None => Standing::Clear,
        };
    }

    /// Counts a denial by the rule as a strike.
    pub(crate) fn strike(&mut self, now: Time) {
        // A ban that the store cannot keep is not announced.
        if self.no_room {
            self.lost = true;
            return;
        }
        if let Some(LastBan { until, .. }) = self.ban.strike(&mut self.record, now.as_nanos()) {
            self.standing = Standing::JustBanned { until: Time::from_nanos(until) };
        }
    }
}

/// A ban that is not valid: which part is wrong, what was given, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part} `{found}`: expected {expected}")]
#[non_exhaustive]
pub struct BanError {
    /// The part that is wrong: `after`, `within`, `for` or `forget`.
    pub part: &'static str,
    /// What was given.
    pub found: String,
    /// What was expected.
    pub expected: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ban() -> Ban {
        let s = Span::from_secs;
        Ban::new(3, s(100), &[s(10), s(1000)], s(5000)).unwrap()
    }

    /// The ends of the bans that strikes at these seconds start, in seconds.
    fn bans(ban: &Ban, strikes: &[u64]) -> Vec<u64> {
        let second = 1_000_000_000;
        let mut record = Record::default();
        let started = strikes.iter().filter_map(|at| ban.strike(&mut record, at * second));
        started.map(|banned| banned.until / second).collect()
    }

    #[test]
    fn the_nth_strike_within_the_window_starts_a_ban() {
        assert!(bans(&ban(), &[0, 50]).is_empty());
        assert_eq!(bans(&ban(), &[0, 50, 99]), [109]);
        assert!(bans(&ban(), &[0, 50, 100]).is_empty(), "the first strike has left the window");
        assert_eq!(bans(&ban(), &[0, 50, 100, 149]), [159]);
    }

    #[test]
    fn strikes_begin_anew_after_a_ban_and_lengths_grow_to_the_last() {
        assert_eq!(bans(&ban(), &[0, 1, 2, 20, 21]), [12]);
        assert_eq!(bans(&ban(), &[0, 1, 2, 20, 21, 22]), [12, 1022]);
        assert_eq!(bans(&ban(), &[0, 1, 2, 20, 21, 22, 2000, 2001, 2002]), [12, 1022, 3002]);
    }

    #[test]
    fn a_ban_is_forgotten_so_long_after_its_end() {
        assert_eq!(bans(&ban(), &[0, 1, 2, 5009, 5010, 5011]), [12, 6011], "within the memory of the first");
        assert_eq!(bans(&ban(), &[0, 1, 2, 5010, 5011, 5012]), [12, 5022]);
    }

    #[test]
    fn numbers_are_in_range() {
        let (second, long) = (Span::from_secs(1), Span::MAX);
        let part = |ban: Result<Ban, BanError>| ban.unwrap_err().part.to_owned();
        assert_eq!(part(Ban::new(0, second, &[second], second)), "after");
        assert_eq!(part(Ban::new(1001, second, &[second], second)), "after");
        assert_eq!(part(Ban::new(1, Span::ZERO, &[second], second)), "within");
        assert_eq!(part(Ban::new(1, second, &[], second)), "for");
        assert_eq!(part(Ban::new(1, second, &[second, long], second)), "for");
        assert_eq!(part(Ban::new(1, second, &[second], long)), "forget");
        assert!(Ban::new(1, second, &[second; 100], Span::ZERO).is_ok());
    }
}
