//! The reply of `decide.lua`: the time and the states that it found, as numbers in a row or as doubles in one string.

use flowgate::{BanHit, Hit, Time};
use smallvec::SmallVec;

/// Why there is no decision in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// Redis's clock is so far from this node's that it needs other ends of calendar periods. Nothing has changed: the
    /// call may be made again, around this time.
    #[error("Redis's clock differs from this node's: it says {0:?}")]
    Around(Time),
    /// The key holds the state of another algorithm. Nothing has changed.
    #[error("this counter belongs to a limit of another algorithm")]
    OtherAlgorithm,
    /// The reply is not the script's.
    #[error("the reply is not that of the script")]
    Malformed,
}

/// A script adds this number to the end of its reply for each value that it cannot read and takes as absent.
const UNREADABLE: i64 = -3;

/// Removes the notes about unreadable values from the end of a reply, and returns their number. Such values count as
/// absent, so the rest of the reply is a normal decision.
pub fn take_unreadable(reply: &mut Vec<i64>) -> usize {
    let rest = reply.iter().rposition(|number| *number != UNREADABLE).map_or(0, |last| last + 1);
    let unreadable = reply.len() - rest;
    reply.truncate(rest);
    unreadable
}

/// The numbers of a reply: the time and the states that the script found. Those of a plain take fit without an allocation.
pub type Numbers = SmallVec<[i64; 8]>;

/// The numbers of a reply that is one string of doubles; `None`: it is not one of the script's.
pub fn unpacked(reply: &[u8]) -> Option<Numbers> {
    let (doubles, []) = reply.as_chunks::<8>() else { return None };
    let mut numbers = Numbers::with_capacity(doubles.len());
    for double in doubles {
        let double = f64::from_le_bytes(*double);
        // The script counts in whole numbers below 2^53.
        let number = double as i64;
        if number as f64 != double {
            return None;
        }
        numbers.push(number);
    }
    Some(numbers)
}

/// A reply that is being read.
pub(super) struct Reply<'a> {
    numbers: std::slice::Iter<'a, i64>,
}

impl<'a> Reply<'a> {
    /// Reads the time.
    pub(super) fn open(numbers: &'a [i64]) -> Result<(Reply<'a>, Time), ReplyError> {
        let mut reply = Reply { numbers: numbers.iter() };
        match reply.numbers.next() {
            Some(-1) => {
                Err(ReplyError::Around(Time::from_micros(reply.unsigned().next().ok_or(ReplyError::Malformed)?)))
            }
            Some(-2) => Err(ReplyError::OtherAlgorithm),
            Some(&now) => Ok((reply, Time::from_micros(u64::try_from(now).map_err(|_| ReplyError::Malformed)?))),
            None => Err(ReplyError::Malformed),
        }
    }

    /// Checks that the reply was read to its end.
    pub(super) fn close(mut self) -> Result<(), ReplyError> {
        self.numbers.next().map_or(Ok(()), |_| Err(ReplyError::Malformed))
    }

    /// Reads the state of a hit's counter from the reply, and that of its `after=`, if it has one.
    pub(super) fn restore(&mut self, hit: &mut Hit<'_>) -> Result<(), ReplyError> {
        hit.restore(&mut self.unsigned()).ok_or(ReplyError::Malformed)
    }

    /// Restores the record of a ban.
    pub(super) fn restore_ban(&mut self, ban: &mut BanHit<'_>, now: Time) -> Result<(), ReplyError> {
        ban.restore(&mut self.unsigned(), now).ok_or(ReplyError::Malformed)
    }

    /// The numbers up to one that is negative.
    fn unsigned(&mut self) -> impl Iterator<Item = u64> {
        self.numbers.by_ref().map_while(|number| u64::try_from(*number).ok())
    }
}
