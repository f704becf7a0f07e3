use super::*;

const NOW: Time = Time::from_secs(1000);

fn order<'a>(field: &'a str, value: &'a str, secs: u64) -> BanOrder<'a> {
    BanOrder { field, value, length: Span::from_secs(secs), reason: "spam", author: None }
}

fn impose(bans: &ManualBans, order: BanOrder<'_>, now: Time) -> Result<Arc<ManualBan>, BanOrderError> {
    bans.impose(order, BanIds::default().next(BanKind::Hand), now)
}

fn until(bans: &ManualBans, field: &str, value: &str, now: Time) -> Option<u64> {
    let ban = bans.find(&Request::new().field(field, value), now)?;
    Some(ban.until.as_nanos() / 1_000_000_000)
}

#[test]
fn a_value_or_a_network_is_banned_until_the_end() {
    let bans = ManualBans::default();
    assert_eq!(until(&bans, "user", "42", NOW), None);
    impose(&bans, order("user", "42", 60), NOW).unwrap();
    impose(&bans, order("ip", "1.2.0.0/16", 60), NOW).unwrap();
    impose(&bans, order("ip", "1.2.3.4", 10), NOW).unwrap();
    impose(&bans, order("ip", "2001:db8::/64", 60), NOW).unwrap();
    assert_eq!(until(&bans, "user", "42", NOW), Some(1060));
    assert_eq!(until(&bans, "user", "42", Time::from_secs(1060)), None);
    assert_eq!(until(&bans, "name", "42", NOW), None);
    assert_eq!(until(&bans, "ip", "1.2.9.9", NOW), Some(1060));
    assert_eq!(until(&bans, "ip", "::ffff:1.2.3.4", NOW), Some(1060), "the one that ends last");
    assert_eq!(until(&bans, "ip", "2001:db8::9", NOW), Some(1060));
    assert_eq!(until(&bans, "ip", "1.3.0.0", NOW), None);
    assert_eq!(until(&bans, "ip", "::1.2.3.4", NOW), None, "an IPv6 address of the same number");
}

#[test]
fn a_second_ban_replaces_the_first_and_lifting_ends_it() {
    let bans = ManualBans::default();
    let first = impose(&bans, order("ip", "10.0.0.0/8", 600), NOW).unwrap();
    let second = impose(&bans, order("ip", "10.9.9.9/8", 60), NOW).unwrap();
    assert_eq!(until(&bans, "ip", "10.0.0.1", NOW), Some(1060), "the same network");
    assert_eq!(bans.list(NOW), [Arc::clone(&second)]);
    assert!(!bans.lift(first.id, NOW), "it was replaced");
    assert!(bans.lift(second.id, NOW) && !bans.lift(second.id, NOW));
    assert_eq!(until(&bans, "ip", "10.0.0.1", NOW), None);
    impose(&bans, order("ip", "10.0.0.0/8", 60), NOW).unwrap();
    assert!(bans.lift_value("ip", "10.3.3.3/8", None, NOW), "however it is written");
    assert!(!bans.lift_value("ip", "10.0.0.0/8", None, NOW) && !bans.lift_value("ip", "no address", None, NOW));
    assert!(bans.index.load().is_empty() && bans.fields().is_empty());
}

/// Networks of many lengths, within and beside each other, are found as by trying all of them.
#[test]
fn every_network_around_an_address_is_found_and_lifted() {
    let bans = ManualBans::default();
    let networks: Vec<(String, u64)> = (8..=32).map(|bits| (format!("10.1.2.3/{bits}"), 100 + bits)).collect();
    for (network, secs) in &networks {
        impose(&bans, order("ip", network, *secs), NOW).unwrap();
        impose(&bans, order("ip", &network.replace("10.1", "11.1"), 5000), NOW).unwrap();
    }
    for (network, secs) in networks.iter().rev() {
        assert_eq!(until(&bans, "ip", "10.1.2.3", NOW), Some(1000 + secs), "{network}");
        assert!(bans.lift_value("ip", network, None, NOW));
    }
    assert_eq!(until(&bans, "ip", "10.1.2.3", NOW), None);
    assert_eq!(until(&bans, "ip", "11.1.2.3", NOW), Some(6000));
}

fn bounded(bans: usize, bytes: usize) -> ManualBans {
    ManualBans { bounds: BanBounds { bans, bytes }, ..ManualBans::default() }
}

#[test]
fn bans_that_have_ended_make_room() {
    let bans = bounded(100, usize::MAX);
    for user in 0..100 {
        impose(&bans, order("user", &user.to_string(), 60), NOW).unwrap();
    }
    assert_eq!(impose(&bans, order("user", "new", 60), NOW), Err(BanOrderError::Full));
    assert!(impose(&bans, order("user", "42", 90), NOW).is_ok(), "one in place of another");
    assert_eq!(bans.number(Time::from_secs(1070)), 1);
    assert!(impose(&bans, order("user", "new", 60), Time::from_secs(1070)).is_ok());
    assert_eq!(bans.list(Time::from_secs(1070)).len(), 2);
    for round in 0..100 {
        impose(&bans, order("user", &round.to_string(), 1), Time::from_secs(2000 + round)).unwrap();
    }
    assert!(bans.ledger().iter().count() <= 2, "ended bans are dropped");
}

#[test]
fn texts_are_bounded_each_and_together() {
    let bans = bounded(100, 1000);
    let reason = "x".repeat(300);
    let long = |user| BanOrder { reason: &reason, ..order("user", user, 60) };
    let too_long = [
        (BanOrder { field: &"f".repeat(257), ..long("1") }, "field: 257 bytes, expected at most 256"),
        (BanOrder { value: &"v".repeat(1025), ..long("1") }, "value: 1025 bytes, expected at most 1024"),
        (BanOrder { reason: &"r".repeat(1025), ..long("1") }, "reason: 1025 bytes, expected at most 1024"),
    ];
    for (order, expected) in too_long {
        assert_eq!(impose(&bans, order, NOW).unwrap_err().to_string(), expected);
    }
    for user in ["1", "2", "3"] {
        impose(&bans, long(user), NOW).unwrap();
    }
    assert_eq!(impose(&bans, long("4"), NOW), Err(BanOrderError::TooMuchText));
    assert!(impose(&bans, long("3"), NOW).is_ok(), "in place of another of the same length");
    assert!(bans.lift_value("user", "2", None, NOW));
    assert!(impose(&bans, long("4"), NOW).is_ok());
    assert_eq!(impose(&bans, long("5"), NOW), Err(BanOrderError::TooMuchText));
    assert!(impose(&bans, long("5"), Time::from_secs(1060)).is_ok(), "the others have ended");
}

/// The most branches and leaves of the index that one change copies, with `number` bans in it.
fn most_copied(number: u32, target: impl Fn(u32) -> (String, String)) -> usize {
    let bans = bounded(usize::MAX, usize::MAX);
    let ids = BanIds::default();
    bans.edit(NOW, |edit| {
        for ban in 0..number {
            let (field, value) = target(ban);
            let (name, until) = (target_name(&field, &value).unwrap(), NOW + Span::from_secs(60 + u64::from(ban)));
            edit.put(name.into(), Arc::new(order(&field, &value, 0).ban(ids.next(BanKind::Hand), until)));
        }
    });
    let mut most = 0;
    for ban in number..number + 50 {
        let (field, value) = target(ban);
        let before = bans.index.load_full();
        impose(&bans, order(&field, &value, 60), NOW).unwrap();
        let between = bans.index.load_full();
        assert!(bans.lift_value(&field, &value, None, NOW));
        let after = bans.index.load_full();
        most = most.max(between.copied_since(&before, &[&field])).max(after.copied_since(&between, &[&field]));
    }
    // A hundred bans end at once: the next change drops some of them only.
    let (before, later) = (bans.index.load_full(), NOW + Span::from_secs(160));
    impose(&bans, order("user", "late", 60), later).unwrap();
    let dropped = bans.index.load_full().copied_since(&before, &["user", "ip"]);
    assert!(dropped <= (1 + MAX_DROPPED_AT_ONCE) * 20, "{dropped} for {number} bans");
    most
}

#[test]
fn a_change_copies_no_more_of_many_bans_than_of_few() {
    let kinds: [fn(u32) -> (String, String); 3] = [
        |ban| ("user".into(), ban.to_string()),
        |ban| {
            (
                "ip".into(),
                format!("10.{}.{}.0/24", ban >> 8 & 255, ban & 255).replace("10.", &format!("{}.", 10 + (ban >> 16))),
            )
        },
        |ban| (format!("field{ban}"), "1".into()),
    ];
    for target in kinds {
        let (few, many) = (most_copied(1_000, target), most_copied(20_000, target));
        // A larger index has one or two more levels, and sometimes a change splits a branch.
        assert!(many <= 20 && many <= few + 8, "{few} for 1,000 bans, {many} for 20,000");
    }
}
