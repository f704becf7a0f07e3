//! Windows that follow the calendar of a time zone.
//!
//! Rule       A window ends where the next unit of the zone's calendar begins: the next midnight, Monday, first of the
//!            month. Units up to the hour follow the local clock. A change of the clock ends the current hour, so no
//!            hour is longer than an hour.
//! Invariant  The end of the window that holds `now` lies after `now`, whatever
//!            the zone does.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jiff::civil::{Date, Weekday};
use jiff::tz;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::limit::Unit;
use crate::time::{NANOS_PER_SECOND, Time};

/// A time zone of the IANA database, by whose calendar windows end.
///
/// ```
/// use flowgate::{Span, Time, TimeZone, Unit};
///
/// let shanghai = TimeZone::named("Asia/Shanghai").unwrap();
/// let noon_utc = Time::from_secs(1_700_049_600); // 2023-11-15 12:00 UTC, 20:00 in Shanghai
/// let midnight = shanghai.window_end(Unit::Day, noon_utc);
/// assert_eq!(midnight.since(noon_utc), Span::from_secs(4 * 3600));
/// ```
#[derive(Clone)]
pub struct TimeZone {
    name: Arc<str>,
    zone: tz::TimeZone,
}

impl TimeZone {
    /// The zone of an IANA name; `None` if there is no such zone. Case does not matter, and [`TimeZone::name`] has the
    /// database's spelling.
    pub fn named(name: &str) -> Option<TimeZone> {
        let zone = tz::TimeZone::get(name).ok().filter(|zone| !zone.is_unknown())?;
        let name = zone.iana_name()?.into();
        Some(TimeZone { name, zone })
    }

    /// The IANA name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The end of the calendar's hour, day, week or other unit that holds `now`: when the window of a limit such as
    /// `fixed 100/day tz=..` ends.
    pub fn window_end(&self, unit: Unit, now: Time) -> Time {
        Time::from_nanos(Calendar { unit, zone: self.clone() }.end(now.as_nanos()))
    }
}

impl PartialEq for TimeZone {
    fn eq(&self, other: &TimeZone) -> bool {
        self.name == other.name
    }
}

impl Eq for TimeZone {}

impl Hash for TimeZone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The periods of one unit in a zone's calendar.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Calendar {
    pub(crate) unit: Unit,
    pub(crate) zone: TimeZone,
}

impl Calendar {
    /// The instant (in nanoseconds) at which the period that holds `now` ends.
    pub(crate) fn end(&self, now: u64) -> u64 {
        // The calendar ends with the year 9999, and `Time::MAX` lies in 2262.
        let Ok(instant) = Timestamp::from_nanosecond(i128::from(now)) else { return now + 1 };
        let end = match self.unit {
            Unit::Day | Unit::Week | Unit::Month => self.civil_end(instant, now),
            _ => self.clock_end(instant, now),
        };
        end.max(now + 1)
    }

    /// The end of a day or a longer unit: the first instant of the next date that begins a unit.
    fn civil_end(&self, instant: Timestamp, now: u64) -> u64 {
        let today = self.zone.zone.to_datetime(instant).date();
        let next = match self.unit {
            Unit::Month => today.first_of_month().checked_add(1.month()),
            Unit::Week => today.nth_weekday(1, Weekday::Monday),
            _ => today.tomorrow(),
        };
        next.ok().and_then(|next| self.start_of(next, now)).unwrap_or(now + 1)
    }

    fn start_of(&self, date: Date, now: u64) -> Option<u64> {
        let midnight = date.at(0, 0, 0, 0);
        let first = nanos(self.zone.zone.to_ambiguous_timestamp(midnight).compatible().ok()?)?;
        if first > now {
            return Some(first);
        }
        // The clocks went back across midnight, so this date begins a second time.
        nanos(self.zone.zone.to_ambiguous_timestamp(midnight).later().ok()?)
    }

    /// The end of an hour or a shorter unit: the next multiple of the unit on the local clock, or the next change of
    /// that clock.
    fn clock_end(&self, instant: Timestamp, now: u64) -> u64 {
        let unit = self.unit.nanos().unwrap_or(NANOS_PER_SECOND);
        let offset = self.zone.zone.to_offset(instant);
        let local = i128::from(now) + i128::from(offset.seconds()) * i128::from(NANOS_PER_SECOND);
        let into = u64::try_from(local.rem_euclid(i128::from(unit))).unwrap_or(0);
        let end = now + (unit - into);
        // Changes of the clocks fall on whole minutes, so they can only cut an hour.
        if self.unit != Unit::Hour {
            return end;
        }
        self.change_of_clocks(instant, end).unwrap_or(end)
    }

    fn change_of_clocks(&self, instant: Timestamp, before: u64) -> Option<u64> {
        let mut offset = self.zone.zone.to_offset(instant);
        // `following` excludes the instant itself, so the search starts a nanosecond earlier.
        let from = instant.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(instant);
        for change in self.zone.zone.following(from) {
            let at = nanos(change.timestamp())?;
            if at >= before {
                return None;
            }
            if at > nanos(instant)? && change.offset() != offset {
                return Some(at);
            }
            offset = change.offset();
        }
        None
    }
}

fn nanos(instant: Timestamp) -> Option<u64> {
    u64::try_from(instant.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(unit: Unit, zone: &str, now: &str, end: &str) {
        let calendar = Calendar { unit, zone: TimeZone::named(zone).unwrap() };
        let at = |text: &str| nanos(text.parse().unwrap()).unwrap();
        let found = calendar.end(at(now));
        assert_eq!(found, at(end), "{unit:?} in {zone} at {now} ends {:?}", Timestamp::from_nanosecond(found.into()));
    }

    #[test]
    fn days_end_at_the_zones_midnight() {
        check(Unit::Day, "UTC", "2025-11-02T00:00:00Z", "2025-11-03T00:00:00Z");
        check(Unit::Day, "Asia/Shanghai", "2025-11-02T15:59:59.999999999Z", "2025-11-02T16:00:00Z");
        check(Unit::Day, "Asia/Shanghai", "2025-11-02T16:00:00Z", "2025-11-03T16:00:00Z");
        // These days have 25 and 23 hours.
        check(Unit::Day, "America/New_York", "2025-11-02T04:00:00Z", "2025-11-03T05:00:00Z");
        check(Unit::Day, "America/New_York", "2025-03-09T05:00:00Z", "2025-03-10T04:00:00Z");
    }

    #[test]
    fn weeks_begin_on_monday_and_months_on_the_first() {
        check(Unit::Week, "UTC", "2025-11-03T00:00:00Z", "2025-11-10T00:00:00Z");
        check(Unit::Week, "UTC", "2025-11-02T23:59:59Z", "2025-11-03T00:00:00Z");
        check(Unit::Month, "UTC", "2024-02-29T12:00:00Z", "2024-03-01T00:00:00Z");
        check(Unit::Month, "Europe/Berlin", "2025-12-31T23:30:00Z", "2026-01-31T23:00:00Z");
    }

    #[test]
    fn a_change_of_the_clocks_ends_a_clock_hour() {
        // Lord Howe Island moves its clocks by half an hour: 02:00 becomes 01:30.
        check(Unit::Hour, "Australia/Lord_Howe", "2025-04-05T14:45:00Z", "2025-04-05T15:00:00Z");
        check(Unit::Hour, "Australia/Lord_Howe", "2025-04-05T15:00:00Z", "2025-04-05T15:30:00Z");
        check(Unit::Hour, "Asia/Kolkata", "2025-01-01T00:00:00Z", "2025-01-01T00:30:00Z");
        check(Unit::Minute, "Asia/Kolkata", "2025-01-01T00:00:00.5Z", "2025-01-01T00:01:00Z");
    }

    #[test]
    fn a_date_that_begins_twice_ends_its_eve_at_the_second_beginning() {
        // St. John's put its clocks back at 00:01, so 23:01 to midnight of the eve came twice.
        check(Unit::Day, "America/St_Johns", "2010-11-07T02:29:00Z", "2010-11-07T02:30:00Z");
        check(Unit::Day, "America/St_Johns", "2010-11-07T02:31:30Z", "2010-11-07T03:30:00Z");
    }

    #[test]
    fn the_end_is_always_ahead() {
        let ends = [0, 1, crate::Time::MAX.as_nanos()];
        for unit in [Unit::Microsecond, Unit::Second, Unit::Hour, Unit::Day, Unit::Week, Unit::Month] {
            for zone in ["UTC", "Africa/Cairo", "Pacific/Apia"] {
                let calendar = Calendar { unit, zone: TimeZone::named(zone).unwrap() };
                assert!(ends.iter().all(|&now| calendar.end(now) > now));
            }
        }
    }
}
