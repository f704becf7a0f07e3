//! Where the windows of a calendar end, found by walking: minute by minute, day by day.

use flowgate::Unit;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil::DateTime};
use proptest::prelude::*;

use crate::Store;
use crate::specs::{DAYS, MICROS, MILLIS, SECONDS};

const MINUTES: u64 = 60 * SECONDS;
const QUARTERS: u64 = 15 * MINUTES;

/// The first instant after `now` at which the calendar of `zone` begins a new unit.
pub(crate) fn end(unit: Unit, zone: &str, now: u64) -> u64 {
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

/// Zones change their clocks at whole minutes, so that is where hours begin.
fn hour_end(zone: &TimeZone, now: u64) -> u64 {
    let offset = |at| zone.to_offset(timestamp(at));
    let begins = |&at: &u64| local(zone, at).minute() == 0 || offset(at) != offset(at - 1);
    minutes(now, MINUTES).find(begins).unwrap()
}

/// Dates begin at a quarter of an hour (they have since 1973).
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

fn timestamp(at: u64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(at)).unwrap()
}

/// Instants around a change of the clocks, where windows are not as long as usual.
fn near_a_change() -> impl Strategy<Value = (&'static str, u64)> {
    let zones = vec![
        "UTC",
        "Asia/Shanghai",
        "America/New_York",
        "Europe/London",
        "Asia/Kolkata",
        "Asia/Kathmandu",
        "Asia/Tehran",
        "Asia/Beirut",
        "Australia/Lord_Howe",
        "America/Santiago",
        "America/Havana",
        "Africa/Cairo",
        "Africa/Casablanca",
        "Atlantic/Azores",
        "Pacific/Apia",
        "Pacific/Chatham",
        "Antarctica/Troll",
    ];
    let since_1990 = 7_305 * DAYS..36_500 * DAYS;
    let around = prop_oneof![Just(0), 0..3 * MINUTES, 0..26 * 60 * MINUTES, 0..40 * DAYS];
    (prop::sample::select(zones), since_1990, around, any::<bool>()).prop_map(|(name, from, around, before)| {
        let zone = TimeZone::get(name).unwrap();
        let change = zone.following(timestamp(from)).next();
        let at = change.map_or(from, |change| change.timestamp().as_nanosecond() as u64);
        (name, if before { at - around } else { at + around })
    })
}

proptest! {
    #![proptest_config(crate::cases(400))]

    #[test]
    fn windows_end_where_the_calendar_says((zone, now) in near_a_change()) {
        for (name, unit) in [
            ("minute", Unit::Minute),
            ("hour", Unit::Hour),
            ("day", Unit::Day),
            ("week", Unit::Week),
            ("month", Unit::Month),
        ] {
            let store = Store::of(&format!("fixed 5/{name} tz={zone}"));
            let taken = store.take(1, now);
            let ends_at = now + taken.reset_after.as_nanos();
            prop_assert_eq!(ends_at, end(unit, zone, now), "{} in {} at {:?}", name, zone, timestamp(now));
            prop_assert_eq!(store.peek(1, ends_at - 1).remaining, Some(4));
            prop_assert_eq!(store.peek(1, ends_at).remaining, Some(5));
        }
    }
}
