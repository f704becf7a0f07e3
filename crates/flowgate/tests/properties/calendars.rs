//! Windows of a calendar end where the calendar says.

use flowgate::Unit;
use flowgate_testkit::properties::calendars::{end, timestamp};
use flowgate_testkit::properties::specs::{DAYS, SECONDS};
use jiff::tz::TimeZone;
use proptest::prelude::*;

use crate::Store;

const MINUTES: u64 = 60 * SECONDS;

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
            let store = Store::from_limit(&format!("fixed 5/{name} tz={zone}"));
            let taken = store.take(1, now);
            let ends_at = now + taken.reset_after.as_nanos();
            prop_assert_eq!(ends_at, end(unit, zone, now), "{} in {} at {:?}", name, zone, timestamp(now));
            prop_assert_eq!(store.peek(1, ends_at - 1).remaining, Some(4));
            prop_assert_eq!(store.peek(1, ends_at).remaining, Some(5));
        }
    }
}
