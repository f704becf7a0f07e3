//! A plan tells which rules had a say.

use flowgate::{MemoryStore, Op, Time};
use flowgate_engine::config::Config;
use flowgate_engine::{Engine, Request};

#[test]
fn the_rules_that_matched_as_far_as_the_evaluation_went() {
    let config = Config::from_toml(
        r#"
        rule = [
            { name = "other", when = { act = "other" }, limits = ["1/s"] },
            { name = "two", by = ["user"], limits = ["5/s", "50/min"] },
            { name = "shadow-allow", shadow = true, action = "allow" },
            { name = "shadow", shadow = true, limits = ["1/s"] },
            { name = "stop", when = { user = "7" }, action = "deny" },
            { name = "below", limits = ["1/s"] },
        ]"#,
    )
    .unwrap();
    let engine = Engine::new(&config.policy, MemoryStore::default()).unwrap();
    let names = |user: &str, act: &str| {
        let request = Request::new().field("user", user).field("act", act);
        let (in_force, now) = (engine.rules(), Time::from_secs(1));
        let mut plan = engine.plan(&in_force, Op::Peek, &request, now);
        engine.apply(&mut plan, || request.clone(), now);
        let decision = plan.conclude(now);
        let mut rules: Vec<usize> = plan.rules().collect();
        rules.sort_unstable();
        let rule = |position: usize| in_force.rules[position].name().to_owned();
        assert!(rules.iter().all(|&position| in_force.rules[position].position() == position));
        (decision.allowed(), rules.into_iter().map(rule).collect::<Vec<_>>())
    };
    assert_eq!(names("1", "x").1, ["two", "shadow-allow", "shadow", "below"]);
    assert_eq!(
        names("7", "other"),
        (false, ["other", "two", "shadow-allow", "shadow", "stop"].map(String::from).into())
    );
}
