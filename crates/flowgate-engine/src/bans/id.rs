//! The ids of bans: texts such as `h-3f0k2m9qav-7`, which are never used twice.
//!
//! Rule       An id has three parts: the kind of ban (`h` by hand, `r` by a rule), the start of the process that
//!            imposed it, and the number of the ban since that start.
//! Invariant  An id is unique over kinds, restarts and nodes. A start is 50 random bits: among ten thousand starts, two
//!            are equal with a probability below 10^-7.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flowgate::Seed;

/// The origin of a ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BanKind {
    /// A person, or a program.
    Hand,
    /// A rule.
    Rule,
}

/// Names one ban.
///
/// ```
/// use flowgate_engine::bans::{BanId, BanKind};
///
/// let id: BanId = "h-3f0k2m9qav-7".parse()?;
/// assert_eq!((id.kind(), id.to_string().as_str()), (BanKind::Hand, "h-3f0k2m9qav-7"));
/// assert!("h-3f0k2m9qav-07".parse::<BanId>().is_err());
/// # Ok::<(), flowgate_engine::bans::NotABanId>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BanId {
    kind: BanKind,
    start: u64,
    number: u64,
}

/// The text is not the id of a ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the id of a ban, such as h-3f0k2m9qav-7")]
pub struct NotABanId;

/// The digits of a start, of five bits each: `0` to `9`, `a` to `v`.
const START_DIGITS: usize = 10;

impl BanId {
    /// The origin of the ban.
    pub fn kind(self) -> BanKind {
        self.kind
    }
}

impl fmt::Display for BanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            BanKind::Hand => "h-",
            BanKind::Rule => "r-",
        })?;
        for digit in (0..START_DIGITS).rev() {
            let digit = (self.start >> (5 * digit)) % 32;
            write!(f, "{}", char::from_digit(digit as u32, 32).unwrap_or_default())?;
        }
        write!(f, "-{}", self.number)
    }
}

impl FromStr for BanId {
    type Err = NotABanId;

    fn from_str(text: &str) -> Result<BanId, NotABanId> {
        let mut parts = text.splitn(3, '-');
        let (Some(kind), Some(start), Some(number)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NotABanId);
        };
        let kind = match kind {
            "h" => BanKind::Hand,
            "r" => BanKind::Rule,
            _ => return Err(NotABanId),
        };
        if start.len() != START_DIGITS {
            return Err(NotABanId);
        }
        let start = u64::from_str_radix(start, 32).map_err(|_| NotABanId)?;
        let id = BanId { kind, start, number: number.parse().map_err(|_| NotABanId)? };
        // A sign, a capital or a leading zero would be a second spelling of the same id.
        if id.to_string() == text { Ok(id) } else { Err(NotABanId) }
    }
}

/// Makes the ids of a process.
#[derive(Debug)]
pub(crate) struct BanIds {
    start: u64,
    given: AtomicU64,
}

impl Default for BanIds {
    fn default() -> BanIds {
        let Seed([random, _]) = Seed::random();
        BanIds { start: random >> (u64::BITS as usize - 5 * START_DIGITS), given: AtomicU64::new(0) }
    }
}

impl BanIds {
    pub(crate) fn next(&self, kind: BanKind) -> BanId {
        BanId { kind, start: self.start, number: self.given.fetch_add(1, Relaxed) + 1 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_is_read_as_it_was_written(start in 0..1_u64 << 50, number: u64, by_hand: bool) {
            let kind = if by_hand { BanKind::Hand } else { BanKind::Rule };
            let id = BanId { kind, start, number };
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn a_start_and_a_kind_have_ids_of_their_own() {
        let (one, other) = (BanIds::default(), BanIds::default());
        let ids = [one.next(BanKind::Hand), one.next(BanKind::Rule), other.next(BanKind::Hand)];
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2], "{ids:?}");
    }

    #[test]
    fn an_id_has_one_spelling() {
        let wrong = ["", "1", "h-1-1", "h-3f0k2m9qav", "x-3f0k2m9qav-7", "h-3F0K2M9QAV-7", "h-3f0k2m9qav-+7"];
        for text in wrong.into_iter().chain(["h-3f0k2m9qaw-7", "h-+f0k2m9qav-7", "h-3f0k2m9qav--7", "h-3f0k2m9qav-7 "])
        {
            assert_eq!(text.parse::<BanId>(), Err(NotABanId), "{text}");
        }
    }
}
