//! The reply of `decide.lua`: the time and the states that it found, as numbers in a row.

use flowgate::portable::{AlgorithmState, BanState, Exact, WindowState};
use flowgate::{Algorithm, Limit, Time};
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
    /// Not the script's.
    #[error("the reply is not that of the script")]
    Malformed,
}

/// What a script says at the end of its reply for each value that it cannot read and takes as absent.
const UNREADABLE: i64 = -3;

/// Takes from the end of a reply what it says of values that cannot be read: how many there were. They count as absent,
/// so the rest of the reply is a decision like any other.
pub fn take_unreadable(reply: &mut Vec<i64>) -> usize {
    let rest = reply.iter().rposition(|number| *number != UNREADABLE).map_or(0, |last| last + 1);
    let unreadable = reply.len() - rest;
    reply.truncate(rest);
    unreadable
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
            Some(-1) => Err(ReplyError::Around(Time::from_micros(reply.number()?))),
            Some(-2) => Err(ReplyError::OtherAlgorithm),
            Some(&now) => Ok((reply, Time::from_micros(u64::try_from(now).map_err(|_| ReplyError::Malformed)?))),
            None => Err(ReplyError::Malformed),
        }
    }

    /// A reply must have been read to its end.
    pub(super) fn close(mut self) -> Result<(), ReplyError> {
        self.numbers.next().map_or(Ok(()), |_| Err(ReplyError::Malformed))
    }

    pub(super) fn number(&mut self) -> Result<u64, ReplyError> {
        self.numbers.next().and_then(|number| u64::try_from(*number).ok()).ok_or(ReplyError::Malformed)
    }

    /// The state of one limit's counter, and that of its `after=`.
    pub(super) fn counter(
        &mut self,
        limit: &Limit,
    ) -> Result<(Option<AlgorithmState>, Option<WindowState>), ReplyError> {
        let own = match limit.algorithm() {
            Algorithm::Unlimited => None,
            Algorithm::Bucket | Algorithm::Pace => {
                let full_at = Exact { micros: self.number()?, ticks: self.number()? };
                Some(AlgorithmState::Bucket(full_at)).filter(|_| full_at != Exact::default())
            }
            Algorithm::Fixed => self.window()?.map(AlgorithmState::Fixed),
            Algorithm::Sliding => Some(AlgorithmState::Sliding(self.entries()?)),
            Algorithm::Approx => {
                let (forget_at, previous, current) = (self.number()?, self.number()?, self.number()?);
                Some(AlgorithmState::Approx { forget_at, previous, current }).filter(|_| forget_at > 0)
            }
        };
        let seen = if limit.after().is_some() { self.window()? } else { None };
        Ok((own, seen))
    }

    fn window(&mut self) -> Result<Option<WindowState>, ReplyError> {
        let window = WindowState { ends_at: self.number()?, count: self.number()? };
        Ok(Some(window).filter(|window| window.ends_at > 0))
    }

    /// Pairs of an instant and of how many units have left by then.
    fn entries(&mut self) -> Result<SmallVec<[(u64, u64); 3]>, ReplyError> {
        let mut entries = SmallVec::new();
        let mut before = 0;
        for _ in 0..self.number()? {
            let (at, left) = (self.number()?, self.number()?);
            entries.push((at, left.checked_sub(before).ok_or(ReplyError::Malformed)?));
            before = left;
        }
        Ok(entries)
    }

    pub(super) fn ban(&mut self) -> Result<BanState, ReplyError> {
        let (until, forget_at, level, strikes) = (self.number()?, self.number()?, self.number()?, self.number()?);
        Ok(BanState { until, forget_at, level: u8::try_from(level).unwrap_or(u8::MAX), strikes })
    }
}
