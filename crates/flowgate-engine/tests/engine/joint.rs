//! Joint steps: several requests that pass together or not at all.

use flowgate::{Op, Retry, Span, Time, Verdict};
use flowgate_engine::bans::BanOrder;
use flowgate_engine::{Decision, ExceededLimit, JointDecision, Limits, Request, RuleDef};
use flowgate_testkit::vectors::joint::{self, Answer, PartAnswer, Rule, Step, Trace};
use flowgate_testkit::{numbers, op};

use crate::script::{Written, at, engine, rule, run};

/// The rules of a trace. Each counts by the field of its own name, so a request meets the rules whose fields it has.
pub(crate) fn rules(trace: &Trace) -> Vec<RuleDef> {
    let written = |traced: &Rule| {
        let limits: Vec<&str> = traced.limits.iter().map(String::as_str).collect();
        let rule = rule(&traced.name).by(&traced.name).limits(&limits);
        RuleDef { count_denied: traced.count_denied, shadow: traced.shadow, ..rule }
    };
    trace.rules.iter().map(written).collect()
}

/// The requests of a step.
pub(crate) fn requests<'a>(step: &'a Step) -> Vec<(Op, Request<'a>)> {
    let request = |joint::Part { op, cost, on }: &'a joint::Part| {
        let fields = on.iter().map(|target| (target.rule.as_str(), target.subject.as_str()));
        (op!(flowgate, *op), fields.collect::<Request<'_>>().cost(*cost))
    };
    step.parts.iter().map(request).collect()
}

/// The answer to a step as traces have it.
pub(crate) fn answer(trace: &Trace, found: &JointDecision) -> Answer {
    let (allowed, retry_after_us, never, delay_us) = match found.verdict() {
        Verdict::Allow { delay } => (true, None, false, delay.as_micros_ceil()),
        Verdict::Deny(Retry::After(wait)) => (false, Some(wait.as_micros_ceil()), false, 0),
        Verdict::Deny(Retry::Never) => (false, None, true, 0),
    };
    assert_eq!(found.allowed(), allowed);
    let parts = found.parts().iter().map(|part| part_answer(trace, &part.decision)).collect();
    Answer { allowed, retry_after_us, never, delay_us, parts }
}

fn part_answer(trace: &Trace, decision: &Decision) -> PartAnswer {
    let exceeded = |ExceededLimit { rule, limit, retry, .. }: &ExceededLimit| {
        let traced = trace.rules.iter().find(|traced| traced.name == rule.name()).unwrap();
        let written = traced.limits.iter().find(|text| text.parse::<flowgate::Limit>().unwrap() == *limit);
        let retry_after_us = match retry {
            Retry::After(wait) => Some(wait.as_micros_ceil()),
            Retry::Never => None,
        };
        joint::ExceededLimit { rule: rule.name().to_owned(), limit: written.unwrap().clone(), retry_after_us }
    };
    let denied_by = decision.rule().filter(|_| !decision.allowed());
    PartAnswer {
        numbers: numbers!(&decision.numbers),
        rule: denied_by.map(|rule| rule.name().to_owned()),
        exceeded: decision.exceeded().iter().map(exceeded).collect(),
        shadow: decision.shadow.iter().map(|rule| rule.name().to_owned()).collect(),
    }
}

#[test]
fn the_engine_gives_the_recorded_answers() {
    for trace in joint::traces() {
        let engine = engine(&rules(&trace));
        for (number, step) in trace.steps.iter().enumerate() {
            let found = engine.decide_joint(&requests(step), Time::from_micros(step.at_us));
            trace.check(number, &answer(&trace, &found));
        }
    }
}

#[test]
fn a_denied_part_denies_all_and_each_part_tells_its_own_verdict() {
    run(
        &engine(&[rule("user").by("user").limits(&["5/60s"]), rule("ip").by("ip").limits(&["2/60s"])]),
        "
        at 0s  take user=1 + take ip=1             -> allow by user, 4 left | allow by ip, 1 left
        at 0s  take user=1 x2 + take ip=1 x2       -> allow by user, 4 left | deny by ip, 1 left, retry in 60s
        at 0s  peek user=1 + record ip=1 x2        -> allow by user, 4 left | allow by ip, 0 left
        at 0s  take user=2 + record user=3 + peek ip=1  -> allow by user, 5 left | allow by user, 5 left | deny by ip
        at 0s  refund ip=1 x3 + take ip=1 + take ip=1   -> allow by ip, 2 left | allow by ip, 1 left | allow by ip, 0 left
        at 0s  take other=1 + take user=9          -> allow, unmatched | allow by user, 4 left
        ",
    );
}

#[test]
fn a_part_is_asked_as_if_the_parts_before_it_were_counted() {
    run(
        &engine(&[rule("user").by("user").limits(&["5/60s"]), rule("spacing").by("spaced").limits(&["bucket 1/10s"])]),
        "
        at 0s  take user=1 x3 + take user=1 x3         -> allow by user, 5 left | deny by user, never
        at 0s  take user=1 x2 + take user=1 x3         -> allow by user, 3 left | allow by user, 0 left
        at 1s  take spaced=1 + take user=1             -> allow by spacing | deny by user, retry in 59s
        at 1s  take spaced=1 + take user=2             -> allow by spacing, 0 left | allow by user
        at 2s  take spaced=1 + take user=2 + take user=2 x5  -> deny by spacing, retry in 9s | allow by user | deny by user, never
        ",
    );
}

#[test]
fn a_rule_without_limits_that_denies_a_part_denies_the_step() {
    run(
        &engine(&[
            rule("user").by("user").limits(&["5/60s"]),
            rule("counting").by("counted").limits(&["1/60s"]).count_denied(),
            rule("closed").when("door", "closed").action("deny"),
        ]),
        "
        at 0s  take user=1 + take door=closed             -> allow by user, 5 left | deny by closed, never
        at 0s  take user=1 + peek door=closed             -> allow by user, 5 left | deny by closed, never
        at 0s  record user=1 + take door=closed user=1    -> allow by user, 5 left | deny by closed
        at 0s  take counted=1 x2 + take counted=1 + take door=closed -> deny by counting, never | deny by counting | deny by closed
        at 0s  take user=1 + record door=closed           -> allow by user, 4 left | allow, matched
        ",
    );
}

/// One a second; three denials in 100 s ban for 10 s.
fn banning() -> RuleDef {
    rule("reply").by("user").limits(&["1/1s"]).ban(3, 100, &[10, 1000], 5000)
}

#[test]
fn a_step_strikes_a_subject_once_however_many_parts_it_denies() {
    run(
        &engine(&[banning()]),
        "
        at 0s  take user=1                                 -> allow by reply
        at 0s  take user=1 + take user=1 + take user=1     -> deny by reply, not banned | deny by reply | deny by reply, not banned
        at 0s  peek user=1 + take user=2                   -> deny by reply, not banned | allow by reply
        at 0s  take user=1 + take user=1                   -> deny by reply, not banned | deny by reply, not banned
        at 0s  take user=2 + take user=1 + take user=1     -> allow by reply | deny by reply, banned until 10s | deny by reply, banned until 10s
        at 5s  take user=1                                 -> deny by reply, banned until 10s
        at 10s take user=1 + take user=2                   -> allow by reply | allow by reply
        ",
    );
}

#[test]
fn a_ban_on_one_part_denies_the_step_and_that_part_charges_and_strikes_nothing() {
    run(
        &engine(&[
            banning(),
            rule("counting").by("name").limits(&["1/1h"]).count_denied(),
            rule("shade").by("name").limits(&["9/1h"]).shadow(),
            rule("free").by("free").limits(&["3/60s"]),
        ]),
        "
        at 0s   take user=1                          -> allow by reply
        at 0s   take user=1 *2                       -> deny by reply
        at 0s   take user=1                          -> deny by reply, banned until 10s
        at 1s   take user=1 name=a + take free=1     -> deny by reply, banned until 10s, exceeded [] | allow by free, 3 left
        at 1s   peek name=a                          -> allow by counting, 1 left
        at 1s   record user=1 + take free=1          -> allow by reply | allow by free, 2 left
        # the other parts count and strike as denied requests do
        at 20s  take user=2                          -> allow by reply
        at 20s  take user=2 *2                       -> deny by reply
        at 20s  take user=2                          -> deny by reply, banned until 30s
        at 21s  take user=3                          -> allow by reply
        at 21s  take user=2 + take user=3            -> deny by reply, banned until 30s | deny by reply, not banned
        at 21s  take user=2 + take user=3            -> deny by reply, banned until 30s | deny by reply, not banned
        at 21s  take user=2 + take user=3            -> deny by reply, banned until 30s | deny by reply, banned until 31s
        ",
    );
}

#[test]
fn a_ban_by_hand_on_one_part_denies_the_step() {
    let engine = engine(&[rule("user").by("user").limits(&["5/60s"])]);
    let order =
        BanOrder { field: "ip", value: "1.2.3.4", length: Span::from_secs(60), reason: "scraper", author: None };
    engine.ban(order, at(0)).unwrap();
    let ask = |op| {
        let banned = Request::new().field("ip", "1.2.3.4");
        engine.decide_joint(&[(Op::Take, Request::new().field("user", "1")), (op, banned)], at(0))
    };
    for op in [Op::Take, Op::Peek] {
        let denied = ask(op);
        assert_eq!(denied.verdict(), Verdict::Deny(Retry::After(Span::from_secs(60))));
        assert!(denied.parts()[0].decision.allowed());
        assert!(denied.parts().iter().all(|part| !part.charged));
    }
    let allowed = ask(Op::Record);
    assert_eq!(allowed.parts()[0].decision.remaining(), Some(4), "the denied steps have counted nothing");
    assert!(allowed.parts()[0].charged);
}

#[test]
fn a_part_is_charged_if_a_step_that_passes_counts_its_cost() {
    let engine = engine(&[
        rule("user").by("user").limits(&["5/60s"]),
        rule("open").by("open").limits(&["unlimited"]),
        rule("shade").by("shade").limits(&["9/60s"]).shadow(),
    ]);
    let field = |name| Request::new().field(name, "1");
    let requests = [
        (Op::Take, field("user")),
        (Op::Record, field("user")),
        (Op::Peek, field("user")),
        (Op::Refund, field("user")),
        (Op::Take, field("user").cost(0)),
        (Op::Take, field("open")),
        (Op::Take, field("shade")),
        (Op::Take, field("none")),
    ];
    let charged = |joint: JointDecision| joint.parts().iter().map(|part| part.charged).collect::<Vec<_>>();
    let found = charged(engine.decide_joint(&requests, at(0)));
    assert_eq!(found, [true, true, false, false, false, false, false, false]);
    let denied = [requests.as_slice(), &[(Op::Take, field("user").cost(6))]].concat();
    assert_eq!(charged(engine.decide_joint(&denied, at(0))), [false; 9]);
}

#[test]
fn parts_under_different_limits_of_one_counter_count_as_one_after_the_other() {
    let limits = |text: &str| vec![text.parse().unwrap()];
    let (few, many) = ("fixed 9/1h", "fixed 9/1h after=2/1h");
    for (first, second) in [(few, many), (many, few)] {
        let cases = [("a".to_owned(), limits(first)), ("b".to_owned(), limits(second))].into();
        let limits = Limits::ByField { field: "plan".to_owned(), cases, default: None };
        let rule = RuleDef { limits, ..rule("user").by("user") };
        let (joint, single) = (engine(std::slice::from_ref(&rule)), engine(&[rule]));
        let request = |plan| Request::new().field("user", "1").field("plan", plan);
        for _ in 0..4 {
            let parts = ["a", "b"].map(|plan| (Op::Take, request(plan)));
            let together = joint.decide_joint(&parts, at(0));
            let found: Vec<_> = together.parts().iter().map(|part| part.decision.remaining()).collect();
            let expected = parts.map(|(op, request)| single.decide(op, &request, at(0)).remaining());
            assert_eq!(found, expected, "{first}, {second}");
        }
    }
}
