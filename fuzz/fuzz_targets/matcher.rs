//! A matcher that is read is written as one that is read as the same, and matches the same values.

#![no_main]

use flowgate::{MemoryStore, MemoryConfig, Op, Time};
use flowgate_engine::{Engine, Policy, Request, RuleDef, rules::{Condition, Matcher}};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let (text, value) = input;
    let Ok(matcher) = Matcher::parse(text) else { return };
    let written = matcher.to_string();
    let again = Matcher::parse(&written).unwrap_or_else(|error| panic!("{text:?} -> {written:?}: {error}"));
    assert_eq!(written, again.to_string(), "{text:?}");
    if matcher.lists().next().is_none() {
        assert_eq!(denies(matcher, value), denies(again, value), "{text:?} -> {written:?} on {value:?}");
    }
});

/// Whether a rule with this condition matches.
fn denies(matcher: Matcher, value: &str) -> Option<bool> {
    let rule = RuleDef { when: vec![Condition::new("field", matcher)], ..RuleDef::named("rule") };
    // Nothing is counted; a small store is made faster.
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 64 << 10, ..MemoryConfig::default() });
    let engine = Engine::new(&Policy { rules: vec![rule], ..Policy::default() }, memory).ok()?;
    let request = Request::new().field("field", value);
    Some(!engine.decide(Op::Peek, &request, Time::from_secs(1)).allowed())
}
