//! The ends of calendar windows, found by walking through time minute by minute and day by day.

use flowgate::Unit;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil::DateTime};

use super::specs::{MICROS, MILLIS, SECONDS};

/// Nanoseconds of a minute.
const MINUTES: u64 = 60 * SECONDS;
/// Nanoseconds of a quarter of an hour.
const QUARTERS: u64 = 15 * MINUTES;

/// The first instant after `now` at which the calendar of `zone` begins a new unit.
pub fn end(unit: Unit, zone: &str, now: u64) -> u64 {
    let zone = TimeZone::get(zone).unwrap();
    match unit {
        Unit::Microsecond => next(now, MICROS),
        Unit::Millisecond => next(now, MILLIS),
        Unit::Second => next(now, SECONDS),
        Unit::Minute => next(now, MINUTES),
        Unit::Hour => hour_end(&zone, now),
        Unit::Day => day_end(&zone, now),
        Unit::Week => walk(&zone, now, |local| local.weekday() == Weekday::Monday),
        Unit::Month => walk(&zone, now, |local| local.day() == 1),
    }
}

/// The next multiple of `unit`.
fn next(now: u64, unit: u64) -> u64 {
    (now / unit + 1) * unit
}

/// Zones change their clocks at whole minutes, so an hour begins at a whole minute.
fn hour_end(zone: &TimeZone, now: u64) -> u64 {
    let offset = |at| zone.to_offset(timestamp(at));
    let begins = |&at: &u64| local(zone, at).minute() == 0 || offset(at) != offset(at - 1);
    minutes(now, MINUTES).find(begins).unwrap()
}

/// Since 1973, every date begins at a quarter of an hour.
fn day_end(zone: &TimeZone, now: u64) -> u64 {
    let today = local(zone, now).date();
    minutes(now, QUARTERS).find(|&at| local(zone, at).date() != today).unwrap()
}

fn walk(zone: &TimeZone, now: u64, begins: impl Fn(DateTime) -> bool) -> u64 {
    let mut day = day_end(zone, now);
    while !begins(local(zone, day)) {
        day = day_end(zone, day);
    }
    day
}

fn minutes(now: u64, step: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(next(now, step)), move |at| Some(at + step))
}

fn local(zone: &TimeZone, at: u64) -> DateTime {
    zone.to_datetime(timestamp(at))
}

/// The instant of these nanoseconds since the epoch.
pub fn timestamp(at: u64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(at)).unwrap()
}
