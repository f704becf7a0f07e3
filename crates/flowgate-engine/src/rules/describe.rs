//! A compiled rule in words: its conditions and limits as they are written.

use super::rule::{LimitListId, Rule, RuleLimits};
use super::set::RuleSet;

/// What a rule looks at and how often it allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleDescription<'r> {
    /// The fields and what each must be: one of these.
    pub conditions: Vec<(&'r str, &'r [Box<str>])>,
    /// The limits that apply together; none: the rule decides at once, or by the value of a field.
    pub limits: Vec<String>,
    /// The limits that a field chooses.
    pub limits_by: Option<LimitsByField<'r>>,
}

/// Limits that the value of a field chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitsByField<'r> {
    /// The field.
    pub field: &'r str,
    /// Each value with its limits, in the order of the values.
    pub cases: Vec<(&'r str, Vec<String>)>,
    /// The limits of every other value; `None`: the rule does not match those.
    pub default: Option<Vec<String>>,
}

impl RuleSet {
    /// Describes a rule of this set.
    pub fn describe<'r>(&'r self, rule: &'r Rule) -> RuleDescription<'r> {
        let conditions = rule.checks.iter().map(|check| (self.field_name(check.field), &*check.written)).collect();
        let shown = |list: LimitListId| self.limits(list).iter().map(|limit| limit.limit.to_string()).collect();
        let (limits, limits_by) = match &rule.limits {
            RuleLimits::None => (Vec::new(), None),
            RuleLimits::Fixed(list) => (shown(*list), None),
            RuleLimits::ByField { field, cases, default } => {
                let mut cases: Vec<(&str, Vec<String>)> =
                    cases.iter().map(|(value, list)| (&**value, shown(*list))).collect();
                cases.sort_unstable();
                let field = self.field_name(*field);
                (Vec::new(), Some(LimitsByField { field, cases, default: default.map(shown) }))
            }
        };
        RuleDescription { conditions, limits, limits_by }
    }
}

#[cfg(test)]
mod tests {
    use flowgate::MemoryStore;

    use super::*;
    use crate::config::Config;

    #[test]
    fn a_rule_is_described_as_it_is_written() {
        let config = Config::from_toml(
            r#"
            [[rule]]
            name = "reply"
            when = { act = ["reply", "a, b", "{ x"], user = "*" }
            by = ["user"]
            limits = ["5/60s", "fixed 100/day tz=Asia/Shanghai"]
            ban = { after = 3, within = "10m", for = ["1m"], forget = "24h" }
            [[rule]]
            name = "api"
            limits_by = { field = "plan", pro = ["100/min"], free = ["10/min"], default = ["5/min"] }
            "#,
        )
        .unwrap();
        let rules = RuleSet::compile(&config.policy, &MemoryStore::default()).unwrap();
        let [reply, api] = &*rules.rules else { panic!("two rules") };
        let described = rules.describe(reply);
        let conditions: Vec<_> = described.conditions.iter().map(|(field, is)| (*field, is.join("|"))).collect();
        assert_eq!(conditions, [("act", "reply|a, b|{ eq = \"{ x\" }".to_owned()), ("user", "*".to_owned())]);
        assert_eq!(
            described.limits,
            ["5/60s", "fixed 100/day tz=Asia/Shanghai"]
                .map(|limit| limit.parse::<flowgate::Limit>().unwrap().to_string())
        );
        assert_eq!((described.limits_by, reply.place.as_ref().unwrap().line), (None, 3));
        assert_eq!(reply.ban_def().map(|ban| ban.after), Some(3));
        let by = rules.describe(api).limits_by.unwrap();
        let values: Vec<&str> = by.cases.iter().map(|(value, _)| *value).collect();
        assert_eq!((by.field, values, by.default.is_some()), ("plan", vec!["free", "pro"], true));
    }
}
