//! Replacing the policy, ad hoc limits, explaining.

use flowgate::{Limit, Op, OtherAlgorithm, Span};
use flowgate_engine::{AdHoc, DecidedBy, Request, explain::RuleMatch};

use crate::script::{Written, at, engine, policy, rule, run};

#[test]
fn a_counter_survives_an_edit_of_anything_but_its_identity() {
    let engine = engine(&[rule("r").by("user").limits(&["5/60s", "fixed 10/1h"]).ban(9, 60, &[60], 60)]);
    let replace = |rules: &[flowgate_engine::RuleDef]| engine.replace(&policy(rules)).unwrap();
    run(&engine, "at 0s  take user=1 x3  -> allow by r, 2 left");
    // Another count, condition, action, place and company.
    replace(&[
        rule("new").limits(&["100/60s"]),
        rule("r").when("user", "*").by("user").limits(&["fixed 20/1h", "bucket 1/s", "8/60s"]).action("captcha"),
    ]);
    run(&engine, "at 0s  peek user=1 x6  -> captcha by r, never, exceeded [r: bucket 1/1s; r: sliding 8/60s]");
    run(&engine, "at 1s  take user=1  -> allow by r, 0 left, of 1");
    replace(&[rule("r").by("user").limits(&["fixed 20/1h"])]);
    run(&engine, "at 2s  take user=1  -> allow by r, 15 left");
    // Another name, another subject, another period: all new.
    replace(&[rule("q").by("user").limits(&["fixed 20/1h"])]);
    run(&engine, "at 3s  take user=1  -> allow by q, 19 left");
    replace(&[rule("r").by("user act").limits(&["fixed 20/1h"])]);
    run(&engine, "at 4s  take user=1 act=a  -> allow by r, 19 left");
    replace(&[rule("r").by("user").limits(&["fixed 20/2h"])]);
    run(&engine, "at 5s  take user=1  -> allow by r, 19 left");
}

#[test]
fn a_ban_survives_an_edit() {
    let engine = engine(&[rule("r").by("user").limits(&["1/60s"]).ban(1, 60, &[600], 0)]);
    run(&engine, "at 0s  take user=1 x2  -> deny by r, banned until 600s");
    engine.replace(&policy(&[rule("r").by("user").limits(&["9/s"]).ban(5, 60, &[60], 0)])).unwrap();
    run(&engine, "at 1s  take user=1 -> deny by r, banned until 600s");
}

#[test]
fn a_policy_that_does_not_fit_together_changes_nothing() {
    let engine = engine(&[rule("r").limits(&["1/60s"])]);
    let long = "x".repeat(200);
    let wrong = [
        (vec![rule("a b")], "rule `a b`: name `a b`: expected letters, digits, _ . - (at most 128)"),
        (vec![rule("a"), rule("a")], "rule `a`: name `a`: expected a name that no other rule has"),
        (vec![rule("a").when("ip", "@none")], "rule `a`: when.ip `none`: expected a list that is defined: none is"),
        (vec![rule("a").by("x x")], "rule `a`: by.x `x`: expected each field once"),
        (vec![rule("a").limits(&[])], "rule `a`: limits `0 limits`: expected 1 to 32 limits"),
        (
            vec![rule("a").limits(&["1/s"]).action("allow")],
            "rule `a`: action `allow`: expected `deny` or another word, where there are limits to exceed",
        ),
        (
            vec![rule("a").action("c d")],
            "rule `a`: action `c d`: expected allow, deny or a word: letters, digits, _ . - (at most 128)",
        ),
        (
            vec![rule("a").limits(&["1/s"]).ban(1, 1, &[1], 1)],
            "rule `a`: ban `a`: expected a rule with `by`: a ban must know whom",
        ),
        (
            vec![rule("a").by("x").ban(1, 1, &[1], 1)],
            "rule `a`: ban `a`: expected a rule with limits: a ban counts what they deny",
        ),
        (
            vec![rule("a").by("x").limits(&["1/s"]).ban(0, 1, &[1], 1)],
            "rule `a`: ban.after `0`: expected a number of denials from 1 to 1000",
        ),
    ];
    for (rules, message) in wrong {
        assert_eq!(engine.replace(&policy(&rules)).unwrap_err().to_string(), message);
    }
    assert!(engine.replace(&policy(&[rule(&long)])).is_err());
    run(&engine, "at 0s  take -> allow by r");
}

#[test]
fn ad_hoc_limits_need_no_rules() {
    let engine = engine(&[]);
    let (five, nine): (Limit, Limit) = ("5/60s".parse().unwrap(), "9/60s".parse().unwrap());
    let fixed: Limit = "fixed 5/60s".parse().unwrap();
    let call = |op, limit, cost| engine.limit(op, AdHoc { key: b"hist:42\xff".into(), limit, cost }, at(0));
    assert_eq!(call(Op::Take, &five, 2).unwrap().remaining, Some(3));
    assert_eq!(call(Op::Take, &nine, 2).unwrap().remaining, Some(5));
    assert_eq!(call(Op::Take, &fixed, 1), Err(OtherAlgorithm));
    assert_eq!(call(Op::Peek, &five, 2).unwrap().retry_after(), Some(Span::from_secs(60)));
    assert_eq!(engine.limit_lifetime(b"hist:42\xff", at(10)), Some(Span::from_secs(50)));
    assert!(engine.limit_reset(b"hist:42\xff") && !engine.limit_reset(b"hist:42\xff"));
    assert_eq!(engine.limit_lifetime(b"hist:42\xff", at(10)), None);
    assert_eq!(call(Op::Take, &fixed, 1).unwrap().remaining, Some(4));
}

#[test]
fn an_explanation_names_what_kept_a_rule_from_matching() {
    let engine = engine(&[
        rule("reply").when("act", "reply").when("level", "> 5").by("user").limits(&["5/60s", "fixed 9/day tz=UTC"]),
        rule("address").by("ip").limits(&["9/60s"]),
        rule("staff").when("user", "7").action("allow"),
        rule("below").limits(&["1/60s"]),
    ]);
    run(&engine, "at 0s  take act=reply level=6 user=7  -> allow by staff");
    let request = Request::new().field("act", "reply").field("level", "6").field("user", "7");
    let explanation = engine.explain(&request, at(1));
    assert!(matches!(&explanation.decision.decided_by, DecidedBy::Rule(_)));
    let [reply, address, staff, below] = &explanation.rules[..] else { panic!("four rules") };
    assert_eq!(reply.matched, RuleMatch::Yes);
    let states: Vec<_> = reply.limits.iter().map(|l| (l.limit.to_string(), l.outcome.remaining)).collect();
    assert_eq!(states, [("sliding 5/60s".to_owned(), Some(4)), ("fixed 9/1d tz=UTC".to_owned(), Some(8))]);
    assert_eq!(address.matched, RuleMatch::Lacks { field: "ip".into() });
    assert!(staff.matched == RuleMatch::Yes && staff.reached);
    assert!(below.matched == RuleMatch::Yes && !below.reached && below.limits.is_empty());
    run(&engine, "at 1s  take act=reply level=6 user=7  -> allow by staff");

    let explanation = engine.explain(&Request::new().field("act", "reply").field("level", "5"), at(1));
    let failed = RuleMatch::Failed { field: "level".into(), expected: "> 5".into(), found: Some("5".into()) };
    assert_eq!(explanation.rules[0].matched, failed);
    let failed = RuleMatch::Failed { field: "user".into(), expected: "7".into(), found: None };
    assert_eq!(explanation.rules[2].matched, failed);
    assert!(explanation.decision.allowed() && explanation.rules[3].reached);
}
