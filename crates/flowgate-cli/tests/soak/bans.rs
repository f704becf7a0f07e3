//! Bans by rules, checked by what clients can be sure of.
//!
//! Rule       A client that was told of a ban and its end knows that no request is allowed which was sent after that
//!            reply and answered before that end.

use std::time::Duration;

use crate::exceptions::{Exception, Whose};
use crate::trace::{Outcome, Record};

/// The end of a ban is given in milliseconds of the wall clock, which may be slewed meanwhile.
const TOLERANCE: Duration = Duration::from_millis(10);

/// The requests that were allowed although their subject was banned.
pub(crate) fn broken<'a>(records: &'a [Record], exceptions: &[Exception]) -> Vec<&'a Record> {
    let bans: Vec<(&Record, Duration)> =
        records.iter().filter_map(|record| Some((record, record.banned_until?))).collect();
    // A replica that takes over may lack a ban that began just before.
    let is_forgotten = |from: Duration, to: Duration| {
        let mut replaced = exceptions.iter().filter(|exception| exception.whose == Whose::Everybody);
        replaced.any(|exception| exception.from <= to && exception.to >= from)
    };
    let is_banned = |allowed: &&Record| {
        bans.iter().any(|(told, until)| {
            let same = (told.asked.kind, told.asked.subject) == (allowed.asked.kind, allowed.asked.subject);
            let within = allowed.is_within(told.interval.received, until.saturating_sub(TOLERANCE));
            same && within && !is_forgotten(told.interval.sent, *until)
        })
    };
    records.iter().filter(|record| record.outcome == Outcome::Allowed).filter(is_banned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Interval;
    use crate::trace::NodeLife;
    use crate::workload::Asked;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn record(subject: u32, from: u32, to: u32, outcome: Outcome, banned_until: Option<u32>) -> Record {
        Record {
            asked: Asked { kind: 0, subject, fresh: None },
            node: NodeLife { node: 0, life: 0 },
            interval: Interval { sent: MILLISECOND * from, received: MILLISECOND * to },
            outcome,
            banned_until: banned_until.map(|until| MILLISECOND * until),
        }
    }

    fn told(until: u32) -> Record {
        record(1, 100, 110, Outcome::Denied, Some(until))
    }

    fn allowed(subject: u32, from: u32, to: u32) -> Record {
        record(subject, from, to, Outcome::Allowed, None)
    }

    #[test]
    fn a_request_that_is_allowed_during_a_ban_is_found() {
        assert_eq!(broken(&[told(1100), allowed(1, 120, 130)], &[]).len(), 1);
        assert_eq!(broken(&[told(1100), allowed(1, 1000, 1080)], &[]).len(), 1);
    }

    #[test]
    fn a_request_that_may_lie_outside_is_legal() {
        let before = allowed(1, 105, 130);
        let (at_the_end, after) = (allowed(1, 1000, 1095), allowed(1, 1101, 1102));
        let another = allowed(2, 120, 130);
        assert!(broken(&[told(1100), before, at_the_end, after, another], &[]).is_empty());
    }

    #[test]
    fn a_replica_may_forget_a_ban() {
        let replaced = Exception { whose: Whose::Everybody, from: MILLISECOND * 200, to: MILLISECOND * 300 };
        assert!(broken(&[told(1100), allowed(1, 400, 410)], &[replaced]).is_empty());
        let earlier = Exception { to: MILLISECOND * 20, from: MILLISECOND * 10, ..replaced };
        assert_eq!(broken(&[told(1100), allowed(1, 400, 410)], &[earlier]).len(), 1);
    }
}
