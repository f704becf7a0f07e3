//! How rules are evaluated together.

use std::collections::BTreeMap;

use flowgate_engine::{Limits, RuleDef};

use crate::script::{Written, check, engine, rule, run};

#[test]
fn a_rule_counts_each_subject_by_itself() {
    let reply =
        rule("reply").when("act", "reply").when("user", "*").by("user").limits(&["5/60s", "fixed 6/day tz=UTC"]);
    check(
        &[RuleDef { code: Some(201), message: Some("You reply too fast.".into()), ..reply }],
        "
        at 0s   take act=reply user=42     -> allow by reply, 4 left, of 5, at once, matched, no code, no message
        at 0s   take act=reply user=42 x4  -> allow by reply, 0 left
        at 1s   take act=reply user=42     -> deny by reply, 0 left, retry in 59s, code 201, says You reply too fast.
        at 1s   take act=reply user=42     -> exceeded [reply: sliding 5/60s], not banned, shadow []
        at 1s   take act=reply user=42 x6  -> deny by reply, never
        at 1s   take act=reply user=43     -> allow by reply, 4 left
        at 1s   take act=like user=42      -> allow, unmatched, no limit, unlimited
        at 60s  take act=reply user=42     -> allow by reply, 0 left, of 6
        at 60s  take act=reply user=42     -> deny by reply, exceeded [reply: fixed 6/1d tz=UTC]
        ",
    );
}

#[test]
fn a_field_that_is_lacking_matches_nothing() {
    check(
        &[
            rule("by").by("user").limits(&["1/s"]),
            rule("not").when("act", "!reply").limits(&["1/s"]),
            rule("without").when("user", "!*").action("captcha"),
        ],
        "
        at 0s  take           -> captcha by without, matched, never
        at 0s  take user=     -> captcha by without
        at 1s  take user=1    -> allow by by
        at 1s  take act=like  -> captcha by without
        at 1s  take act=reply user=2  -> allow by by
        at 2s  take act=like user=3   -> allow by by, 0 left
        at 2s  take act=like user=4   -> deny by not, retry in 1s
        ",
    );
}

/// `ua` is `header.user-agent` in conditions, in `by`, in `limits_by`, and in requests.
#[test]
fn second_names_of_a_field_meet_the_first() {
    let limit = |text: &str| vec![text.parse().unwrap()];
    let by_agent = BTreeMap::from([("bot".to_owned(), limit("1/60s"))]);
    let limits = Limits::ByField { field: "ua".into(), cases: by_agent, default: Some(limit("9/60s")) };
    for field in ["ua", "header.user-agent", "header.User-Agent"] {
        let agents = rule("agents").when(field, "!evil").by(field).limits(&["2/60s"]);
        let plans = RuleDef { limits: limits.clone(), ..rule("plans").when("plan", "*") };
        check(
            &[rule("evil").when(field, "evil").action("deny"), agents, plans],
            "
            at 0s  take ua=evil                            -> deny by evil
            at 0s  take header.user-agent=evil             -> deny by evil
            at 0s  take header.user-agent=a                -> allow by agents, 1 left
            at 0s  take ua=a                               -> allow by agents, 0 left
            at 0s  take header.USER-AGENT=a                -> deny by agents
            at 0s  take ua=b header.user-agent=a           -> allow by agents, 1 left
            at 0s  take ua=bot plan=x                      -> allow by plans, 0 left
            at 0s  take header.user-agent=bot plan=x       -> deny by plans
            ",
        );
    }
}

#[test]
fn limits_of_all_rules_are_all_or_nothing() {
    check(
        &[
            rule("address").by("ip").limits(&["10/60s"]),
            rule("user").by("user").limits(&["3/60s", "bucket 2/1s burst=2"]),
            rule("all").limits(&["100/60s"]),
        ],
        "
        at 0s  take ip=1 user=1 x2  -> allow by user, 0 left, of 2
        at 0s  take ip=1 user=1     -> deny by user, retry in 0.5s, exceeded [user: bucket 2/1s]
        at 0s  peek ip=1 x0         -> allow by address, 8 left
        at 0s  peek x0              -> allow by all, 98 left
        at 1s  take ip=1 user=1     -> allow by user, 0 left, of 3
        at 1s  take ip=1 user=1 x2  -> deny by user, retry in 59s, exceeded [user: sliding 3/60s; user: bucket 2/1s]
        at 1s  take ip=1 user=2 x8  -> deny by address, never, exceeded [address: sliding 10/60s; user: sliding 3/60s; user: bucket 2/1s]
        at 1s  peek ip=1 x0         -> allow by address, 7 left
        at 1s  take ip=1 x7         -> allow by address, 0 left
        at 2s  take ip=1 user=2     -> deny by address, retry in 58s, 0 left, of 10
        at 2s  take ip=2 user=2     -> allow by user, 1 left
        ",
    );
}

#[test]
fn the_first_exceeded_rule_speaks_and_the_longest_wait_counts() {
    check(
        &[
            rule("short").by("user").limits(&["1/10s"]).action("captcha"),
            rule("long").by("user").limits(&["1/1h"]),
        ],
        "
        at 0s   take user=1  -> allow by short
        at 1s   take user=1  -> captcha by short, retry in 3599s, reset in 9s, exceeded [short: sliding 1/10s; long: sliding 1/1h]
        at 10s  take user=1  -> deny by long, retry in 3590s
        ",
    );
}

#[test]
fn allow_above_limits_ends_the_evaluation() {
    check(
        &[
            rule("total").limits(&["3/60s"]),
            RuleDef { code: Some(101), ..rule("staff").when("user", "7").action("allow") },
            rule("user").by("user").limits(&["1/60s"]),
        ],
        "
        at 0s  take user=7  -> allow by staff, matched, code 101
        at 0s  take user=7  -> allow by staff
        at 0s  take user=1  -> allow by total, 0 left
        at 0s  take user=7  -> deny by total, retry in 60s
        ",
    );
}

#[test]
fn a_direct_denial_consumes_nothing() {
    check(
        &[
            rule("total").limits(&["3/60s"]),
            rule("blocked").when("ip", "10.0.0.0/8"),
            rule("user").by("user").limits(&["1/60s"]),
        ],
        "
        at 0s  take ip=10.1.1.1 user=1      -> deny by blocked, never, no limit, exceeded []
        at 0s  peek ip=10.1.1.1 user=1      -> deny by blocked, never
        at 0s  peek ip=1.1.1.1 user=1 x0    -> allow by user, 1 left
        at 0s  take ip=1.1.1.1 x3           -> allow by total, 0 left
        at 1s  take ip=10.1.1.1             -> deny by total, retry in 59s
        ",
    );
}

#[test]
fn a_rule_that_counts_denied_attempts_keeps_hammering_out() {
    check(
        &[rule("strict").by("user").limits(&["2/10s"]).count_denied(), rule("plain").by("user").limits(&["100/60s"])],
        "
        at 0s   take user=1     -> allow by strict, 1 left
        at 0s   take user=1     -> allow by strict, 0 left
        at 9s   take user=1     -> deny by strict, retry in 1s
        at 10s  take user=1     -> allow by strict, 0 left
        at 15s  take user=1     -> deny by strict, retry in 5s
        at 15s  peek user=1 x0  -> allow by strict, 0 left
        at 21s  take user=1     -> allow by strict, 0 left
        ",
    );
}

#[test]
fn another_rules_denial_is_not_counted() {
    check(
        &[rule("strict").by("user").limits(&["2/10s"]).count_denied(), rule("total").limits(&["1/10s"])],
        "
        at 0s  take user=1     -> allow by total, 0 left
        at 1s  take user=1     -> deny by total
        at 1s  take user=1     -> deny by total
        at 1s  peek user=1 x0  -> allow by total
        at 10s take user=1     -> allow by total
        at 10s take user=1     -> deny by total, exceeded [total: sliding 1/10s]
        ",
    );
}

#[test]
fn a_shadow_rule_counts_by_itself_and_never_denies() {
    check(
        &[
            rule("tried").by("user").limits(&["1/60s"]).shadow(),
            rule("strict").by("user").limits(&["2/10s"]),
            rule("blocked").when("ip", "10.0.0.0/8").shadow(),
            rule("soon").when("ip", "10.0.0.0/8").action("allow").shadow(),
        ],
        "
        at 0s   take user=1              -> allow by strict, 1 left, shadow []
        at 0s   take user=1 ip=10.0.0.1  -> allow by strict, 0 left, shadow [tried blocked]
        at 0s   take user=1              -> deny by strict, shadow [tried], exceeded [strict: sliding 2/10s]
        at 60s  take user=1              -> allow by strict, 1 left, shadow []
        at 60s  take ip=10.0.0.1         -> allow, matched, shadow [blocked], no limit
        # denied by another, it is charged all the same
        at 70s  take user=2 x3           -> deny by strict, never, shadow [tried]
        at 70s  take user=2 x2           -> allow by strict, shadow [tried]
        at 71s  take user=2              -> deny by strict, shadow []
        at 72s  take user=2              -> deny by strict, shadow [tried]
        ",
    );
}

#[test]
fn limits_may_depend_on_a_field() {
    let limits = |limit: &str| vec![limit.parse().unwrap()];
    let cases = BTreeMap::from([("free".to_owned(), limits("2/60s")), ("pro".to_owned(), limits("4/60s"))]);
    let by_plan = |default: Option<&str>| Limits::ByField {
        field: "plan".into(),
        cases: cases.clone(),
        default: default.map(limits),
    };
    check(
        &[RuleDef { limits: by_plan(Some("1/60s")), ..rule("plan").by("user") }],
        "
        at 0s  take user=1 plan=free   -> allow by plan, 1 left, of 2
        at 0s  take user=1 plan=free   -> allow by plan, 0 left
        at 0s  take user=1 plan=free   -> deny by plan
        # the account moves up and keeps what it has used
        at 0s  take user=1 plan=pro    -> allow by plan, 1 left, of 4
        at 0s  take user=2             -> allow by plan, 0 left, of 1
        at 0s  take user=2 plan=other  -> deny by plan
        ",
    );
    check(
        &[RuleDef { limits: by_plan(None), ..rule("plan").by("user") }],
        "
        at 0s  take user=1 plan=free  -> allow by plan, 1 left
        at 0s  take user=1 plan=x     -> allow, unmatched
        at 0s  take user=1            -> allow, unmatched
        ",
    );
}

#[test]
fn free_at_first_and_strict_later() {
    check(
        &[rule("post").by("user").limits(&["fixed 1/5s after=3/day tz=UTC"]).action("captcha")],
        "
        at 0s  take user=1  -> allow by post, 2 left, of 3
        at 0s  take user=1  -> allow by post, 1 left
        at 0s  take user=1  -> allow by post, 0 left, of 1
        at 0s  take user=1  -> captcha by post, retry in 5s
        at 5s  take user=1  -> allow by post, 0 left
        ",
    );
}

#[test]
fn pace_hands_out_delays() {
    check(
        &[rule("queue").by("user").limits(&["pace 1/s max_wait=2s"]), rule("other").by("user").limits(&["pace 2/s"])],
        "
        at 0s  take user=1  -> allow by queue, at once
        at 0s  take user=1  -> allow by queue, after 1s
        at 0s  take user=1  -> allow by queue, after 2s
        at 0s  take user=1  -> deny by queue, retry in 1s
        ",
    );
}

#[test]
fn record_refund_and_reset() {
    check(
        &[rule("user").by("user").limits(&["3/60s"]).ban(2, 60, &[600], 600), rule("blocked").when("ip", "10.0.0.0/8")],
        "
        at 0s  record user=1 x5             -> allow by user, 0 left, at once
        at 0s  take user=1                  -> deny by user, not banned
        at 0s  refund user=1 x2             -> allow by user, 2 left
        at 0s  record user=1 ip=10.0.0.1    -> allow by user, 1 left
        at 0s  take user=1 x2               -> deny by user, banned until 600s
        at 1s  take user=1                  -> deny by user, banned until 600s, retry in 599s
        at 1s  record user=1                -> allow by user, 0 left
        at 1s  refund user=1                -> allow by user, 1 left
        at 2s  reset user=1                 -> allow by user, 3 left, of 3, reset in 0s
        at 2s  take user=1 x3               -> allow by user, 0 left
        at 2s  take user=1                  -> deny by user, not banned
        ",
    );
}

#[test]
fn unlimited_is_never_the_tightest() {
    check(
        &[rule("none").by("user").limits(&["unlimited"]), rule("some").by("user").limits(&["5/s"])],
        "
        at 0s  take user=1  -> allow by some, 4 left
        ",
    );
    check(&[rule("none").limits(&["unlimited"])], "at 0s  take  -> allow by none, no limit, unlimited, matched");
}

#[test]
fn no_two_subjects_share_a_counter() {
    let engine = engine(&[rule("pair").by("a b").limits(&["1/60s"]), rule("same").by("b a").limits(&["2/60s"])]);
    run(
        &engine,
        "
        at 0s  take a=x b=yz  -> allow by pair
        at 0s  take a=xy b=z  -> allow by pair
        at 0s  take a=x b=yz  -> deny by pair, exceeded [pair: sliding 1/60s]
        at 0s  take b=x a=yz  -> allow by pair
        ",
    );
}
