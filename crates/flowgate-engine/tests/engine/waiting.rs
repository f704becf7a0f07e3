//! Honest waiting, whatever rules and bans come together: waiting exactly `retry_after` passes if nothing else
//! happened; any less does not.

use flowgate::{Op, Span, Time};
use flowgate_engine::{Request, RuleDef};
use proptest::prelude::*;

use crate::script::{Written, at, engine, rule};

fn limit() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "3/10s",
        "5/1m",
        "fixed 4/7s",
        "bucket 2/3s",
        "bucket 1/s burst=4",
        "approx 6/9s",
        "pace 1/s max_wait=2s",
        "fixed 1/5s after=4/30s",
        "fixed 20/minute tz=UTC",
        "unlimited",
    ])
}

fn any_rule(name: String) -> impl Strategy<Value = RuleDef> {
    let by = prop::sample::select(vec!["user", "ip", "ip user"]);
    let limits = prop::collection::vec(limit(), 1..3);
    let ban = prop::option::of((1..4u64, 1..60u64, prop::collection::vec(1..40u64, 1..3), 0..60u64));
    (by, limits, ban, any::<[bool; 2]>()).prop_map(move |(by, limits, ban, [count_denied, shadow])| {
        let rule = RuleDef { count_denied, shadow, ..rule(&name).by(by).limits(&limits) };
        ban.into_iter().fold(rule, |rule, (after, within, lengths, forget)| rule.ban(after, within, &lengths, forget))
    })
}

fn policy() -> impl Strategy<Value = Vec<RuleDef>> {
    (1..4usize).prop_flat_map(|rules| (0..rules).map(|number| any_rule(format!("r{number}"))).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn a_request_passes_after_its_wait_and_not_earlier(
        rules in policy(), steps in prop::collection::vec((0..4000u64, 0..2usize, 1..3u64), 1..40)
    ) {
        let engine = engine(&rules);
        let mut millis = 0;
        let mut last = None;
        for (pause, user, cost) in steps {
            millis += pause * pause / 4000;
            let now = at(0) + Span::from_millis(millis);
            let request = Request::new().field("ip", "1").field("user", ["1", "2"][user]).cost(cost);
            last = Some((engine.decide(Op::Take, &request, now), request, now));
        }
        let Some((decision, request, now)) = last else { return Ok(()) };
        if let Some(wait) = decision.retry_after() {
            prop_assert!(!wait.is_zero());
            let just_before = Time::from_nanos((now + wait).as_nanos() - 1);
            prop_assert!(!engine.decide(Op::Peek, &request, just_before).allowed(), "too early: {decision:?}");
            let then = engine.decide(Op::Peek, &request, now + wait);
            prop_assert!(then.allowed(), "{decision:?}\nthen: {then:?}");
        }
    }
}
