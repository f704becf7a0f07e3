//! Bans: by a rule, longer each time, and by hand.

use flowgate::{MemoryConfig, MemoryStore, Op, Span, WhenFull};
use flowgate_engine::{DecidedBy, Engine, Request, RuleDef, bans::BanOrder};

use crate::script::{Written, at, check, engine, policy, rule, run};

/// One a second; three denials in 100 s ban for 10 s, then for 1000 s, which is forgotten 5000 s later.
fn banning() -> RuleDef {
    rule("reply").by("user").limits(&["1/1s"]).ban(3, 100, &[10, 1000], 5000)
}

#[test]
fn the_nth_denial_within_the_window_starts_a_ban() {
    check(
        &[banning()],
        "
        at 0s    take user=1  -> allow by reply
        at 0s    take user=1  -> deny by reply, retry in 1s, not banned
        at 0s    take user=1  -> deny by reply, retry in 1s, not banned
        at 0s    take user=2  -> allow by reply
        at 0s    take user=1  -> deny by reply, retry in 10s, banned until 10s, exceeded [reply: sliding 1/1s]
        at 1s    take user=1  -> deny by reply, retry in 9s, banned until 10s, exceeded [], 0 left, of 1
        at 9s    peek user=1  -> deny by reply, retry in 1s, banned until 10s
        at 10s   take user=1  -> allow by reply
        # the first strike leaves the window before the third comes
        at 200s  take user=3 x2  -> deny by reply, never
        at 250s  take user=3 x2  -> deny by reply, never
        at 300s  take user=3 x2  -> deny by reply, not banned
        at 349s  take user=3 x2  -> deny by reply, never, banned until 359s
        ",
    );
}

#[test]
fn bans_grow_to_the_last_length_and_are_forgotten_after_the_end() {
    let strikes = |at: u64, until: u64| {
        format!(
            "
            at {at}s  take user=1 x2  -> deny by reply, not banned
            at {at}s  take user=1 x2  -> deny by reply, not banned
            at {at}s  take user=1 x2  -> deny by reply, banned until {until}s
            "
        )
    };
    // 5009 s after the end of the last ban is too late, 4999 s is not.
    let script = [
        strikes(0, 10),
        strikes(10, 1010),
        strikes(1010, 2010),
        strikes(2010 + 4999, 8009),
        strikes(8009 + 5000, 13_019),
    ];
    check(&[banning()], &script.concat());
}

#[test]
fn a_banned_request_consumes_nothing_and_is_no_strike() {
    check(
        &[
            rule("tried").by("user").limits(&["100/60s"]).shadow(),
            rule("total").limits(&["100/1h"]),
            banning(),
            rule("counting").by("user").limits(&["50/1h"]).count_denied(),
        ],
        "
        at 0s   take user=1     -> allow by reply
        at 0s   take user=1     -> deny by reply
        at 0s   take user=1     -> deny by reply
        at 0s   take user=1     -> deny by reply, banned until 10s
        at 5s   take user=1     -> deny by reply
        at 5s   take user=1     -> deny by reply
        at 5s   take user=1     -> deny by reply
        at 5s   peek user=9 x0  -> allow by reply
        at 5s   peek x0         -> allow by total, 99 left
        at 10s  take user=1     -> allow by reply
        at 10s  take user=1     -> deny by reply, not banned
        at 10s  take user=1     -> deny by reply, not banned
        at 10s  take user=1     -> deny by reply, banned until 1010s
        ",
    );
}

#[test]
fn another_rules_denial_is_no_strike() {
    check(
        &[rule("total").limits(&["1/1h"]), rule("reply").by("user").limits(&["5/60s"]).ban(1, 60, &[60], 60)],
        "
        at 0s  take user=1     -> allow by total
        at 0s  take user=1     -> deny by total, not banned
        at 0s  take user=1 x6  -> deny by total, never, banned until 60s
        at 1s  take user=1     -> deny by reply, banned until 60s, retry in 3599s
        ",
    );
}

#[test]
fn the_first_banned_rule_denies_unless_something_above_has_decided() {
    check(
        &[
            rule("staff").when("role", "staff").action("allow"),
            rule("a").when("act", "a").by("user").limits(&["1/60s"]).ban(1, 60, &[100], 0).action("captcha"),
            rule("b").by("user").limits(&["2/60s"]).ban(1, 60, &[500], 0),
        ],
        "
        at 0s   take user=1 act=a x3    -> captcha by a, never, banned until 500s
        at 1s   take user=1 act=a       -> captcha by a, banned until 100s, retry in 499s
        at 1s   take user=1             -> deny by b, banned until 500s, retry in 499s
        at 1s   take user=1 role=staff  -> allow by staff
        at 100s take user=1 act=a       -> deny by b, banned until 500s
        at 500s take user=1 act=a       -> allow by a
        ",
    );
}

#[test]
fn a_ban_waits_for_the_limits_too() {
    check(
        &[rule("hour").by("user").limits(&["1/1h"]).ban(1, 60, &[10], 0)],
        "
        at 0s     take user=1  -> allow by hour
        at 0s     take user=1  -> deny by hour, banned until 10s, retry in 3600s
        at 5s     take user=1  -> deny by hour, banned until 10s, retry in 3595s
        at 3600s  take user=1  -> allow by hour
        ",
    );
}

#[test]
fn a_peek_is_no_strike() {
    check(
        &[rule("once").by("user").limits(&["1/1s"]).ban(1, 60, &[10], 0)],
        "
        at 0s  take user=1  -> allow by once
        at 0s  peek user=1  -> deny by once, retry in 1s, not banned
        at 0s  peek user=1  -> deny by once, retry in 1s, not banned
        ",
    );
}

#[test]
fn a_ban_by_hand_comes_before_everything() {
    let engine = engine(&[rule("all").action("allow"), rule("user").by("user").limits(&["1/60s"])]);
    let order =
        BanOrder { field: "ip", value: "1.2.3.0/24", length: Span::from_secs(60), reason: "abuse", author: None };
    let ban = engine.ban(order, at(0)).unwrap();
    run(
        &engine,
        "
        at 0s   take ip=1.2.3.4       -> deny, retry in 60s, banned until 60s, says abuse, matched
        at 0s   record ip=1.2.3.4     -> allow
        at 0s   take ip=1.2.4.4       -> allow by all
        at 60s  take ip=1.2.3.4       -> allow by all
        ",
    );
    assert_eq!(engine.bans(at(0)), std::slice::from_ref(&ban));
    assert!(engine.unban(ban.id, at(0)) && !engine.unban(ban.id, at(0)));
    run(&engine, "at 1s  take ip=1.2.3.4 -> allow by all");
    engine.ban(order, at(1)).unwrap();
    assert!(engine.unban_value("ip", "1.2.3.0/24", at(1)) && !engine.unban_value("ip", "1.2.3.0/24", at(1)));
    assert!(engine.bans(at(1)).is_empty());
}

#[test]
fn bans_by_rules_are_listed_by_name_and_can_be_lifted() {
    let engine = engine(&[banning()]);
    for user in ["1", "2", "3"] {
        run(&engine, &format!("at 0s  take user={user} x2 -> deny by reply\n").repeat(3));
    }
    let bans = engine.rule_bans(at(1));
    let whom: Vec<_> = bans.iter().map(|ban| (ban.rule.name(), ban.subject[0].1.as_str(), ban.until)).collect();
    assert_eq!(whom, [("reply", "1", at(10)), ("reply", "2", at(10)), ("reply", "3", at(10))]);
    assert!(engine.unban(bans[1].id, at(1)) && !engine.unban(bans[1].id, at(1)));
    run(
        &engine,
        "
        at 1s  take user=1   -> deny by reply, banned until 10s
        at 1s  take user=2   -> allow by reply
        at 1s  reset user=3  -> allow by reply
        ",
    );
    assert_eq!(engine.rule_bans(at(1)).len(), 1, "one was lifted, one forgotten");
    assert!(engine.rule_bans(at(10)).is_empty());
}

/// Logins are one a minute; a denied one bans the address from everything for a minute.
fn login() -> RuleDef {
    rule("login").when("act", "login").by("ip").limits(&["1/60s"]).ban(1, 60, &[60], 0).everywhere()
}

#[test]
fn a_ban_everywhere_comes_before_all_rules_and_nothing_counts() {
    check(
        &[
            rule("monitoring").when("role", "monitor").action("allow"),
            login(),
            rule("site").by("user").limits(&["3/1h"]).count_denied(),
            rule("closed").when("act", "secret"),
        ],
        "
        at 0s   take ip=1 act=login         -> allow by login
        at 0s   take ip=1 user=u            -> allow by site, 2 left
        at 0s   take ip=1 act=login         -> deny by login, banned until 60s, exceeded [login: sliding 1/60s]
        # another rule matches, one that allows at once, one that denies at once, none
        at 1s   take ip=1 user=u            -> deny by login, retry in 59s, banned until 60s, exceeded []
        at 1s   take ip=1 user=u x4         -> deny by login, never
        at 1s   take ip=1 role=monitor      -> deny by login, retry in 59s, banned until 60s, matched
        at 1s   take ip=1 act=secret        -> deny by login, retry in 59s
        at 1s   take ip=1                   -> deny by login, retry in 59s, reset in 59s
        at 1s   peek ip=1                   -> deny by login, retry in 59s
        at 1s   record ip=1 user=u          -> allow by site, 1 left
        at 1s   refund ip=1 user=u          -> allow by site, 2 left
        at 1s   take ip=1 act=login user=u  -> deny by login, 0 left, of 1
        # other subjects, and a request that lacks the field
        at 1s   take ip=2 role=monitor      -> allow by monitoring
        at 1s   take user=u                 -> allow by site, 1 left
        at 60s  take ip=1 user=u            -> allow by site, 0 left
        at 60s  take ip=1                   -> allow
        ",
    );
}

#[test]
fn of_several_bans_the_first_rule_speaks_and_the_longest_wait_counts() {
    let short = rule("short").when("act", "a").by("user").limits(&["1/1s"]).ban(1, 9, &[5], 0).action("captcha");
    let long = rule("long").when("act", "b").by("ip user").limits(&["1/1s"]).ban(1, 9, &[50], 0);
    let own = rule("own").when("act", "c").by("user").limits(&["1/1s"]).ban(1, 9, &[500], 0);
    check(
        &[own, short.everywhere(), long.everywhere()],
        "
        at 0s   take ip=1 user=u act=b x2  -> deny by long, banned until 50s
        at 0s   take ip=2 user=u act=a x2  -> captcha by short, banned until 5s
        at 0s   take ip=3 user=v act=c x2  -> deny by own, banned until 500s
        at 1s   take ip=1 user=u           -> captcha by short, retry in 49s, banned until 5s
        at 1s   take ip=2 user=u           -> captcha by short, retry in 4s, banned until 5s
        at 5s   take ip=1 user=u act=a     -> deny by long, retry in 45s, banned until 50s
        at 5s   take ip=2 user=u           -> allow
        # the ban of a rule without that scope denies where the rule matches
        at 6s   take ip=3 user=v           -> allow
        at 6s   take ip=3 user=v act=c     -> deny by own, retry in 494s
        ",
    );
}

#[test]
fn one_banned_part_denies_a_joint_step() {
    let engine = engine(&[login(), rule("site").by("user").limits(&["3/1h"])]);
    run(
        &engine,
        "
        at 0s   take ip=1 act=login x2                  -> deny by login, banned until 60s
        at 1s   take user=u + take ip=1                 -> allow by site | deny by login
        at 1s   take user=u + take ip=1 user=v          -> allow by site | deny by login
        at 1s   take user=u + peek ip=1                 -> allow by site | deny by login
        at 60s  take user=u + take ip=1 user=v          -> allow by site, 2 left | allow by site, 2 left
        # a ban that begins in a step holds for all of its parts
        at 60s  take ip=2 user=u + take ip=2 act=login x2  -> deny by login, banned until 120s | deny by login
        at 61s  take user=u                             -> allow by site, 1 left
        ",
    );
}

#[test]
fn a_ban_everywhere_is_listed_explained_and_lifted() {
    let engine = engine(&[login(), rule("own").when("act", "c").by("ip").limits(&["1/1s"]).ban(1, 9, &[50], 0)]);
    run(
        &engine,
        "
        at 0s  take ip=1 act=login x2  -> deny by login, banned until 60s
        at 0s  take ip=2 act=c x2      -> deny by own, banned until 50s
        ",
    );
    let banned = |ip: &str| {
        let explained = engine.explain(&Request::new().field("ip", ip), at(1));
        let rules = explained.rules.iter().map(|rule| (rule.rule.name().to_owned(), rule.banned_until));
        (explained.decision.allowed(), rules.collect::<Vec<_>>())
    };
    let told = |login, own| vec![("login".to_owned(), login), ("own".to_owned(), own)];
    assert_eq!(banned("1"), (false, told(Some(at(60)), None)));
    assert_eq!(banned("2"), (true, told(None, Some(at(50)))), "where the rule does not match it does not deny");
    assert_eq!(banned("3"), (true, told(None, None)));
    let bans = engine.rule_bans(at(1));
    assert_eq!(bans.iter().map(|ban| ban.rule.name()).collect::<Vec<_>>(), ["login", "own"]);
    assert!(engine.unban(bans[0].id, at(1)));
    assert_eq!(banned("1"), (true, told(None, None)));
}

#[test]
fn a_reset_of_a_request_that_a_ban_everywhere_denies_lifts_it() {
    check(
        &[login(), rule("site").by("user").limits(&["2/1h"])],
        "
        at 0s  take ip=1 act=login x2  -> deny by login, banned until 60s
        at 0s  take ip=2 act=login x2  -> deny by login, banned until 60s
        at 1s  take ip=1 user=u        -> deny by login
        # a request without the field has no subject of that rule
        at 1s  reset user=u            -> allow by site, 2 left
        at 1s  take ip=1 user=u        -> deny by login
        at 1s  reset ip=1 user=u       -> allow by site, 2 left
        at 1s  take ip=1 user=u        -> allow by site, 1 left
        at 1s  take ip=2 user=u        -> deny by login
        ",
    );
}

#[test]
fn a_shadow_rule_bans_nobody_and_watching_takes_no_room() {
    let tried = rule("tried").by("ip").limits(&["1/1h"]).ban(1, 60, &[60], 0).everywhere().shadow();
    check(
        &[tried, rule("all").limits(&["9/1s"])],
        "
        at 0s  take ip=1  -> allow by all
        at 0s  take ip=1  -> allow by all, shadow [tried]
        at 0s  take ip=1  -> allow by all
        ",
    );
    let engine = engine(&[login(), rule("site").by("ip").limits(&["5/60s"])]);
    run(&engine, "at 0s  take ip=1 -> allow by site\nat 0s  take user=2 -> allow");
    assert_eq!(engine.memory().stats().counters, 1);
}

#[test]
fn rules_that_ban_everywhere_are_few() {
    let banning = |number: usize| {
        let name = format!("r{number}");
        rule(&name).by("ip").limits(&["1/1s"]).ban(1, 9, &[9], 9).everywhere()
    };
    let rules: Vec<RuleDef> = (0..17).map(banning).collect();
    let error = Engine::new(&policy(&rules), MemoryStore::default()).unwrap_err();
    let expected = "rule `r16`: ban.scope `subject`: expected at most 16 rules whose bans have that scope";
    assert_eq!(error.to_string(), expected);
    assert!(Engine::new(&policy(&rules[1..]), MemoryStore::default()).is_ok());
}

#[test]
fn a_full_store_stays_within_its_bounds_while_subjects_are_banned() {
    for when_full in [WhenFull::Evict, WhenFull::Deny] {
        let config = MemoryConfig { max_bytes: 64 << 10, when_full, ..MemoryConfig::default() };
        let rules = [banning(), rule("other").by("ip").limits(&["fixed 1/10s after=1/20s"]).ban(1, 9, &[5], 50)];
        let engine = Engine::new(&policy(&rules), MemoryStore::new(config)).unwrap();
        for step in 0..20_000u64 {
            let (user, ip) = ((step * step % 3001).to_string(), (step % 701).to_string());
            let request = Request::new().field("user", &user).field("ip", &ip).cost(step % 3);
            let op = [Op::Take, Op::Take, Op::Take, Op::Record, Op::Refund, Op::Peek][step as usize % 6];
            let decision = engine.decide(op, &request, at(step / 100));
            if decision.banned_until().is_some() {
                let again = engine.decide(Op::Peek, &request, at(step / 100));
                assert!(matches!(&again.decided_by, DecidedBy::Ban { .. }), "a ban that is announced is remembered");
            }
        }
        let stats = engine.memory().stats();
        assert!(stats.bytes <= stats.max_bytes, "{stats:?}");
        assert!(if when_full == WhenFull::Evict { stats.evicted > 0 } else { stats.refused > 0 }, "{stats:?}");
    }
}
