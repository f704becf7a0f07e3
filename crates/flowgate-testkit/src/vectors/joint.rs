//! The recorded traces of `joint.jsonl` and `never_count_denied_joint.jsonl`: steps of several parts, decided all or
//! nothing.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::{Numbers, Op};

/// Some rules, and what happens to their subjects.
#[derive(Debug, Deserialize)]
pub struct Trace {
    /// What the trace is about.
    pub case: String,
    /// The rules in their order.
    #[serde(deserialize_with = "rules_in_file_order")]
    pub rules: Vec<Rule>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// A rule. It counts each subject apart.
#[derive(Debug)]
pub struct Rule {
    /// The rule's name.
    pub name: String,
    /// The rule's limits.
    pub limits: Vec<String>,
    /// Whether denied requests count.
    pub count_denied: bool,
    /// Whether the rule only reports what it would deny.
    pub shadow: bool,
}

/// Several requests at once, and their answer.
#[derive(Debug, Deserialize)]
pub struct Step {
    /// Microseconds since the epoch.
    pub at_us: u64,
    /// The requests.
    pub parts: Vec<Part>,
    /// The answer.
    pub expect: Answer,
}

/// One request of a step.
#[derive(Debug, Deserialize)]
pub struct Part {
    /// The operation.
    pub op: Op,
    /// The request's cost in units.
    pub cost: u64,
    /// The rules that the request meets.
    pub on: Vec<Target>,
}

/// A rule that a request meets, and the subject that the rule counts. A counter is one limit of one target, so parts
/// with the same target share its counters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Target {
    /// The rule's name.
    pub rule: String,
    /// The subject.
    pub subject: String,
}

/// The answer to a step.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Answer {
    /// Whether all parts pass.
    pub allowed: bool,
    /// How long the whole step has to wait.
    pub retry_after_us: Option<u64>,
    /// Whether waiting does not help.
    pub never: bool,
    /// How long a step that passes is held.
    pub delay_us: u64,
    /// The answer to each part, in order.
    pub parts: Vec<PartAnswer>,
}

/// The answer to one part of a step.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PartAnswer {
    /// The numbers of the first exceeded rule, with the longest wait of all exceeded rules.
    #[serde(flatten)]
    pub numbers: Numbers,
    /// The first exceeded rule.
    pub rule: Option<String>,
    /// Every exceeded limit in order.
    pub exceeded: Vec<ExceededLimit>,
    /// The shadow rules that would have denied.
    pub shadow: Vec<String>,
}

/// A limit that a request exceeds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "(String, String, Option<u64>)")]
pub struct ExceededLimit {
    /// The rule's name.
    pub rule: String,
    /// The limit.
    pub limit: String,
    /// How long the limit makes the request wait; `None` if it never passes.
    pub retry_after_us: Option<u64>,
}

/// All recorded traces.
pub fn traces() -> Vec<Trace> {
    let mut traces = super::read("joint.jsonl", 150);
    traces.extend(super::read("never_count_denied_joint.jsonl", 12));
    traces
}

/// The traces whose time never runs back. A server's clock never does, either.
pub fn forward_traces() -> Vec<Trace> {
    let mut traces = traces();
    traces.retain(|trace| trace.steps.is_sorted_by_key(|step| step.at_us));
    assert!(traces.len() > 140, "only {} traces run forward", traces.len());
    traces
}

impl Trace {
    /// The rule of a target, and its place among the trace's rules.
    ///
    /// # Panics
    ///
    /// If the trace has no such rule.
    pub fn rule(&self, target: &Target) -> (usize, &Rule) {
        let found = self.rules.iter().enumerate().find(|(_, rule)| rule.name == target.rule);
        found.unwrap_or_else(|| panic!("{} has no rule {}", self.case, target.rule))
    }

    /// Expects this answer to a step.
    ///
    /// # Panics
    ///
    /// If the step has another answer.
    #[track_caller]
    pub fn check(&self, number: usize, found: &Answer) {
        assert_eq!(*found, self.steps[number].expect, "{}", self.describe(number));
    }

    /// Expects these numbers of a protocol, whose spans are whole milliseconds, as the answers to the parts of a step.
    ///
    /// # Panics
    ///
    /// If the step has other answers.
    #[track_caller]
    pub fn check_millis(&self, number: usize, found: &[Numbers]) {
        let parts = &self.steps[number].expect.parts;
        let expected: Vec<Numbers> = parts.iter().map(|part| part.numbers.in_millis()).collect();
        assert_eq!(found, expected, "{}", self.describe(number));
    }

    fn describe(&self, number: usize) -> String {
        let Step { at_us, parts, .. } = &self.steps[number];
        let parts: Vec<String> = parts.iter().map(Part::to_string).collect();
        format!("{} {:?} step {number}: {} at {at_us}", self.case, self.rules, parts.join(", "))
    }
}

/// `take 2 user:u ip:i`
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.op, self.cost)?;
        self.on.iter().try_for_each(|target| write!(f, " {}:{}", target.rule, target.subject))
    }
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Target, String> {
        let (rule, subject) = text.split_once(':').ok_or_else(|| format!("`{text}` has no `:`"))?;
        Ok(Target { rule: rule.to_owned(), subject: subject.to_owned() })
    }
}

impl From<(String, String, Option<u64>)> for ExceededLimit {
    fn from((rule, limit, retry_after_us): (String, String, Option<u64>)) -> ExceededLimit {
        ExceededLimit { rule, limit, retry_after_us }
    }
}

/// Reads an object of rules in the order of the file, which a map would lose.
fn rules_in_file_order<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    #[derive(Deserialize)]
    struct Unnamed {
        limits: Vec<String>,
        count_denied: bool,
        shadow: bool,
    }

    struct Rules;

    impl<'de> Visitor<'de> for Rules {
        type Value = Vec<Rule>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("rules by name")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Vec<Rule>, M::Error> {
            let mut rules = Vec::new();
            while let Some((name, Unnamed { limits, count_denied, shadow })) = map.next_entry()? {
                rules.push(Rule { name, limits, count_denied, shadow });
            }
            Ok(rules)
        }
    }

    deserializer.deserialize_map(Rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_the_order_of_the_file() {
        let rules = r#"{"user":{"limits":["5/1m"],"count_denied":false,"shadow":true},
                        "ip":{"limits":[],"count_denied":true,"shadow":false}}"#;
        let rules = rules_in_file_order(&mut serde_json::Deserializer::from_str(rules)).unwrap();
        let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, ["user", "ip"]);
    }

    #[test]
    fn every_trace_is_whole() {
        for trace in traces() {
            for (number, step) in trace.steps.iter().enumerate() {
                assert_eq!(step.parts.len(), step.expect.parts.len(), "{} step {number}", trace.case);
                for target in step.parts.iter().flat_map(|part| &part.on) {
                    assert_eq!(trace.rule(target).1.name, target.rule);
                }
            }
        }
    }
}
