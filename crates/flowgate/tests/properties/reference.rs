//! The algorithms against the reference, answer by answer.

use flowgate::{Decision, RuleFlags, Single, Time};
use flowgate_testkit::properties::naive::{self, RuleHits};
use flowgate_testkit::properties::specs::{Spec, Step, any_spec, any_step, start};
use proptest::prelude::*;

use crate::Store;

proptest! {
    #![proptest_config(crate::cases(1_500))]

    #[test]
    fn a_limit_answers_as_the_reference(
        spec in any_spec(),
        count_denied in prop::bool::weighted(0.25),
        start in start(),
        steps in prop::collection::vec(any_step(), 1..60),
    ) {
        check(&[spec], count_denied, start, &steps)?;
    }

    #[test]
    fn several_limits_answer_as_the_reference(
        specs in prop::collection::vec(any_spec(), 2..5),
        count_denied in prop::bool::weighted(0.25),
        start in start(),
        steps in prop::collection::vec(any_step(), 1..40),
    ) {
        check(&specs, count_denied, start, &steps)?;
    }
}

fn check(specs: &[Spec], count_denied: bool, start: u64, steps: &[Step]) -> Result<(), TestCaseError> {
    let store = Store::new(specs.iter().map(|spec| &spec.limit), count_denied);
    // The ways that are shorter, for a limit that is alone or has not even a key, must agree.
    let alone = (specs.len() == 1 && !count_denied).then(|| &specs[0].limit);
    let short = alone.map(|limit| (Store::new([limit], false), Single::from_limit(limit.clone())));
    let mut counters: Vec<naive::Counter> = specs.iter().map(naive::Counter::new).collect();
    let flags = RuleFlags { count_denied, shadow: false };
    let plan = [RuleHits { flags, counters: (0..specs.len()).collect() }];
    let mut script: Vec<String> = specs.iter().map(|spec| spec.limit.to_string()).collect();
    let (mut latest, mut last) = (start, None::<Decision>);
    for (number, step) in steps.iter().enumerate() {
        let spec = &specs[number % specs.len()];
        let cost = step.cost(spec, last.as_ref());
        let now = step.time(spec, latest, last.as_ref());
        let expected = naive::together(&naive::apply(&mut counters, &plan, step.op, cost, now));
        let found = store.apply(step.op, cost, now);
        script.push(format!("{:?} {cost} at {now} -> {found:?}", step.op));
        prop_assert_eq!(found, expected, "\n{}\n", script.join("\n"));
        if let Some((store, single)) = &short {
            let found = store.apply_one(step.op, cost, now);
            prop_assert_eq!(found, expected, "alone\n{}\n", script.join("\n"));
            let found = single.apply_at(step.op, cost, Time::from_nanos(now));
            prop_assert_eq!(found, expected, "without a key\n{}\n", script.join("\n"));
        }
        latest = latest.max(now);
        last = Some(found);
    }
    Ok(())
}
