//! Dates of the civil calendar as days since the epoch and back: proleptic Gregorian, whole numbers, no tables of
//! zones, which a log that names its offsets does not need.

use std::fmt;

use flowgate::Time;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
const SECONDS_PER_DAY: u64 = 86_400;
/// The calendar repeats after so many days.
const DAYS_PER_ERA: i64 = 146_097;
/// From 0000-03-01, where eras begin (a leap day is then the last of its year), to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;

/// A date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// With four digits or fewer.
    pub year: u16,
    /// From 1.
    pub month: u8,
    /// From 1.
    pub day: u8,
}

impl Date {
    /// The date, if the calendar has it.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Date> {
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            _ => return None,
        };
        (1..=days).contains(&day).then_some(Date { year, month, day })
    }

    /// Days from 1970-01-01 to this date.
    pub fn days(self) -> i64 {
        let Date { year, month, day } = self;
        // Years begin in March here.
        let (month, year) = if month > 2 { (month - 3, i64::from(year)) } else { (month + 9, i64::from(year) - 1) };
        let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
        let day_of_year = (153 * i64::from(month) + 2) / 5 + i64::from(day) - 1;
        era * DAYS_PER_ERA + year * 365 + year / 4 - year / 100 + day_of_year - DAYS_TO_EPOCH
    }

    /// The date of an instant in UTC.
    pub fn of(time: Time) -> Date {
        let days = (time.as_nanos() / NANOS_PER_SECOND / SECONDS_PER_DAY) as i64 + DAYS_TO_EPOCH;
        let (era, day) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        Date { year: (era * 400 + year + next) as u16, month: month as u8, day: day as u8 }
    }
}

/// An instant as people read it, in UTC, to the second or coarser.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    time: Time,
    to: To,
}

/// How finely an instant is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// `2015-05-17`
    Day,
    /// `2015-05-17 10:05`
    Minute,
    /// `2015-05-17 10:05:03`
    Second,
}

impl Shown {
    /// `time` in UTC.
    pub fn utc(time: Time, to: To) -> Shown {
        Shown { time, to }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Date { year, month, day } = Date::of(self.time);
        write!(f, "{year:04}-{month:02}-{day:02}")?;
        let second = self.time.as_nanos() / NANOS_PER_SECOND % SECONDS_PER_DAY;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        match self.to {
            To::Day => Ok(()),
            To::Minute => write!(f, " {hour:02}:{minute:02}"),
            To::Second => write!(f, " {hour:02}:{minute:02}:{second:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_days() {
        for (year, month, day, days) in [
            (1970, 1, 1, Some(0)),
            (1969, 12, 31, Some(-1)),
            (2000, 2, 29, Some(11_016)),
            (1900, 2, 29, None),
            (2015, 5, 17, Some(16_572)),
            (2024, 2, 29, Some(19_782)),
            (2023, 2, 29, None),
            (2023, 4, 31, None),
            (2023, 13, 1, None),
            (2023, 0, 1, None),
            (2023, 1, 0, None),
            (0, 3, 1, Some(-719_468)),
        ] {
            assert_eq!(Date::new(year, month, day).map(Date::days), days, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn every_day_is_its_own_date() {
        let mut last = Date { year: 1969, month: 12, day: 31 };
        for days in 0..106_000_u64 {
            let date = Date::of(Time::from_secs(days * SECONDS_PER_DAY + 86_399));
            assert_eq!(date.days(), days as i64);
            assert_eq!(Date::new(date.year, date.month, date.day), Some(date));
            assert!(date.day == last.day + 1 || date.day == 1 && last.day >= 28, "{date:?} after {last:?}");
            last = date;
        }
    }

    #[test]
    fn shown() {
        let time = Time::from_secs(1_431_857_103);
        assert_eq!(Shown::utc(time, To::Second).to_string(), "2015-05-17 10:05:03");
        assert_eq!(Shown::utc(time, To::Minute).to_string(), "2015-05-17 10:05");
        assert_eq!(Shown::utc(Time::MAX, To::Day).to_string(), "2262-04-11");
    }
}
