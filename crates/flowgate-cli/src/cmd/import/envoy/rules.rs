//! Descriptors as Flowgate's rules.
//!
//! Rule       A node with a `rate_limit` is a rule. `descriptor` names its keys, so that the depth is equal, as it must
//!            be there.
//! Rule       Of siblings with one key, the exact value comes before wildcards in file order before the key alone, and
//!            a descriptor that chose one of them never tries another. Each rule therefore excludes what comes before
//!            it.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use flowgate_engine::front::{is_name, toml_key, toml_list, toml_string};

use super::tree::{Descriptor, Domain, Grant, RateLimit, shown};
use super::yaml::Place;

const HEAD: &str = "\
# From the configuration of envoyproxy/ratelimit, by `flowgate import envoy`. docs/envoy.md tells how descriptors are requests.
# Envoy asks over gRPC, which is off by default: a section [listen] with grpc = \"127.0.0.1:7072\" opens it.
#
# The limits are the same fixed windows. A window admits its number twice around its end; `\"60/60s\"` in place of
# `\"fixed 60/min tz=UTC\"` never does.
";

/// The TOML, and what it cannot express of the original.
#[derive(Debug, Default)]
pub(super) struct ImportedRules {
    pub(super) toml: String,
    pub(super) warnings: Vec<(Place, String)>,
    names: BTreeSet<String>,
}

/// A field of a rule: its name, and the condition on its value.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    condition: Option<String>,
    is_counted: bool,
}

impl ImportedRules {
    pub(super) fn new() -> ImportedRules {
        ImportedRules { toml: HEAD.to_owned(), ..ImportedRules::default() }
    }

    /// Adds the rules of a domain.
    pub(super) fn add(&mut self, domain: &Domain) {
        self.add_siblings(&domain.name, &domain.descriptors, &mut Vec::new());
    }

    fn add_siblings<'d>(&mut self, domain: &str, siblings: &'d [Descriptor], above: &mut Vec<(&'d Descriptor, Field)>) {
        for descriptor in siblings {
            self.warnings.extend(descriptor.left_out.iter().cloned());
            let field = Field {
                name: field_name(&descriptor.key, above),
                condition: condition(descriptor, siblings),
                is_counted: !descriptor.share_threshold,
            };
            above.push((descriptor, field));
            if let Some(limit) = &descriptor.limit {
                self.add_rule(domain, above, limit);
            }
            self.add_siblings(domain, &descriptor.children, above);
            above.pop();
        }
    }

    fn add_rule(&mut self, domain: &str, path: &[(&Descriptor, Field)], limit: &RateLimit) {
        let Some((last, _)) = path.last() else { return };
        let name = self.free_name(domain, path, limit.name.as_deref());
        let out = &mut self.toml;
        // Writing to a String cannot fail, here and below.
        let steps: Vec<String> = path.iter().map(|(descriptor, _)| shown(descriptor)).collect();
        let _ = write!(out, "\n# {}\n", one_line(&steps.join(", ")));
        for (_, why) in &last.left_out {
            let _ = writeln!(out, "# {why}");
        }
        let limits = match limit.grant {
            Grant::Unlimited => Some("unlimited".to_owned()),
            Grant::Requests(0, _) => None,
            Grant::Requests(count, unit) => Some(format!("fixed {count}/{}", unit.window)),
        };
        let _ = writeln!(out, "[[rule]]\nname = {}", toml_string(&name));
        let keys: Vec<&str> = path.iter().map(|(descriptor, _)| descriptor.key.as_str()).collect();
        let mut conditions = format!("domain = {}, descriptor = {}", equal(domain), equal(&keys.join(",")));
        for (_, field) in path {
            if let Some(condition) = &field.condition {
                let _ = write!(conditions, ", {} = {condition}", toml_key(&field.name));
            }
        }
        let _ = writeln!(out, "when = {{ {conditions} }}");
        let counted = path.iter().map(|(_, field)| field).filter(|field| field.is_counted);
        let by: Vec<&str> = counted.map(|field| field.name.as_str()).collect();
        match limits {
            None => out.push_str("action = \"deny\"\n"),
            Some(limits) => {
                if !by.is_empty() {
                    let _ = writeln!(out, "by = {}", toml_list(by.iter().copied()));
                }
                let _ = writeln!(out, "limits = [{}]", toml_string(&limits));
                if limit.grant != Grant::Unlimited {
                    out.push_str("count_denied = true\n");
                }
            }
        }
        if last.shadow {
            out.push_str("shadow = true\n");
        }
    }

    /// The name of the limit, or else a name made of the domain, the keys and the values.
    fn free_name(&mut self, domain: &str, path: &[(&Descriptor, Field)], own: Option<&str>) -> String {
        if let Some(own) = own.filter(|own| is_name(own) && !self.names.contains(*own)) {
            self.names.insert(own.to_owned());
            return own.to_owned();
        }
        let mut wanted = domain.to_owned();
        for (descriptor, _) in path {
            let _ = write!(wanted, ".{}", descriptor.key);
            if let Some(value) = &descriptor.value {
                let _ = write!(wanted, "_{value}");
            }
        }
        let fitting = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
        let wanted: String = wanted.chars().map(fitting).take(90).collect();
        let numbered = (2..).map(|number| format!("{wanted}-{number}"));
        let free = std::iter::once(wanted.clone()).chain(numbered).find(|name| !self.names.contains(name));
        let free = free.unwrap_or(wanted);
        self.names.insert(free.clone());
        free
    }
}

/// The field name of a key; a key that occurs again further down gets a number.
fn field_name(key: &str, above: &[(&Descriptor, Field)]) -> String {
    let own = usize::from(key == "domain" || key == "descriptor");
    match own + above.iter().filter(|(descriptor, _)| descriptor.key == key).count() {
        0 => key.to_owned(),
        before => format!("{key}.{}", before + 1),
    }
}

/// The condition on the value of a descriptor among its siblings, as TOML; `None`: any value.
fn condition(descriptor: &Descriptor, siblings: &[Descriptor]) -> Option<String> {
    let same_key = || siblings.iter().filter(|sibling| sibling.key == descriptor.key);
    let exact = || same_key().filter(|sibling| !sibling.is_wildcard()).filter_map(|sibling| sibling.value.as_deref());
    let wildcards = || same_key().filter(|sibling| sibling.is_wildcard());
    let mut all: Vec<String> = Vec::new();
    match &descriptor.value {
        Some(value) if !descriptor.is_wildcard() => return Some(equal(value)),
        Some(pattern) => {
            all.push(toml_string(&matching(&descriptor.key, pattern)));
            all.extend(exact().map(different));
            let earlier = wildcards().take_while(|sibling| !std::ptr::eq(*sibling, descriptor));
            all.extend(earlier.map(not_matching));
        }
        None => {
            all.extend(exact().map(different));
            all.extend(wildcards().map(not_matching));
        }
    }
    match all.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        all => Some(format!("{{ all = [{}] }}", all.join(", "))),
    }
}

fn equal(value: &str) -> String {
    format!("{{ eq = {} }}", toml_string(value))
}

fn different(value: &str) -> String {
    format!("{{ ne = {} }}", toml_string(value))
}

fn not_matching(sibling: &Descriptor) -> String {
    toml_string(&format!("!{}", matching(&sibling.key, sibling.value.as_deref().unwrap_or_default())))
}

/// A pattern in which `*` is any text: as a glob if it can be written so, else as a regular expression.
fn matching(key: &str, pattern: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-/*".contains(c);
    let reads_as_glob = pattern.starts_with(|c: char| c.is_ascii_alphabetic()) && pattern.chars().all(plain);
    if reads_as_glob && !pattern.contains("**") && !matches!(key, "path" | "ip") {
        return pattern.replace('*', "**");
    }
    let mut regex = "~(?s)^".to_owned();
    for c in pattern.chars() {
        match c {
            '*' => regex.push_str(".*"),
            c if c.is_ascii_punctuation() => regex.extend(['\\', c]),
            c => regex.push(c),
        }
    }
    regex + "$"
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Joins the descriptors of a domain that several files define.
pub(super) fn merge(domains: Vec<Domain>) -> Vec<Domain> {
    let (mut merged, mut places): (Vec<Domain>, HashMap<String, usize>) = (Vec::new(), HashMap::new());
    for domain in domains {
        let next = merged.len();
        match *places.entry(domain.name.clone()).or_insert(next) {
            place if place == next => merged.push(domain),
            place => merged[place].descriptors.extend(domain.descriptors),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use flowgate::{MemoryStore, Op, Time};
    use flowgate_engine::{Engine, Request, config::Config};
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::super::{tree, yaml};
    use super::*;

    fn read(text: &str) -> Domain {
        tree::read(&yaml::read(text).unwrap()).unwrap().0
    }

    fn import(text: &str) -> ImportedRules {
        let mut imported = ImportedRules::new();
        imported.add(&read(text));
        imported
    }

    #[test]
    fn every_feature_as_rules() {
        let imported = import(
            "domain: shop\n\
             descriptors:\n\
             - key: path\n  value: /a*\n  share_threshold: true\n  rate_limit: { unit: minute, requests_per_unit: 5, name: paths }\n\
             - key: user\n  rate_limit: { unlimited: true }\n  shadow_mode: true\n  descriptors:\n  \
             - { key: user, value: '42', rate_limit: { unit: month, requests_per_unit: 0 } }\n  \
             - { key: user, rate_limit: { unit: YEAR, requests_per_unit: 7, replaces: [{ name: other }] } }\n",
        );
        assert_eq!(
            imported.toml.strip_prefix(HEAD).unwrap(),
            r#"
# path=/a*
[[rule]]
name = "paths"
when = { domain = { eq = "shop" }, descriptor = { eq = "path" }, path = "~(?s)^\\/a.*$" }
limits = ["fixed 5/min tz=UTC"]
count_denied = true

# user
[[rule]]
name = "shop.user"
when = { domain = { eq = "shop" }, descriptor = { eq = "user" } }
by = ["user"]
limits = ["unlimited"]
shadow = true

# user, user=42
# months are those of the calendar here, 30 days there
[[rule]]
name = "shop.user.user_42"
when = { domain = { eq = "shop" }, descriptor = { eq = "user,user" }, "user.2" = { eq = "42" } }
action = "deny"

# user, user
# a year begins with the first request here, 365 days after another there
# replaces is left out: every rule that matches applies, which is stricter
[[rule]]
name = "shop.user.user"
when = { domain = { eq = "shop" }, descriptor = { eq = "user,user" }, "user.2" = { ne = "42" } }
by = ["user", "user.2"]
limits = ["fixed 7/365d"]
count_denied = true
"#
        );
        assert_eq!(imported.warnings.len(), 3);
        Config::from_toml(&imported.toml).unwrap();
    }

    /// The matching of envoyproxy/ratelimit, on the tree: exact, then wildcards in file order, then the key alone,
    /// without a way back. Gives the number of the limit.
    fn matched(mut siblings: &[Descriptor], entries: &[(&str, &str)]) -> Option<u32> {
        for (index, (key, value)) in entries.iter().enumerate() {
            let of_key = || siblings.iter().filter(|sibling| sibling.key == *key);
            let exact = of_key().find(|sibling| !sibling.is_wildcard() && sibling.value.as_deref() == Some(*value));
            let wildcard = || {
                of_key()
                    .find(|sibling| sibling.is_wildcard() && fits(sibling.value.as_deref().unwrap_or_default(), value))
            };
            let found = exact.or_else(wildcard).or_else(|| of_key().find(|sibling| sibling.value.is_none()))?;
            if index + 1 == entries.len() {
                return found.limit.as_ref().map(|limit| match limit.grant {
                    Grant::Requests(number, _) => number,
                    Grant::Unlimited => 0,
                });
            }
            siblings = &found.children;
        }
        None
    }

    /// Whether a pattern matches, by trying every length for each `*`.
    fn fits(pattern: &str, text: &str) -> bool {
        match pattern.split_once('*') {
            None => pattern == text,
            Some((before, after)) => text
                .strip_prefix(before)
                .is_some_and(|rest| (0..=rest.len()).any(|cut| rest.get(cut..).is_some_and(|rest| fits(after, rest)))),
        }
    }

    #[derive(Clone, Debug)]
    struct Tree(Vec<(String, Option<String>, bool, Tree)>);

    fn trees() -> impl Strategy<Value = Tree> {
        let value = || option::weighted(0.8, "[ab/1*]{1,3}");
        let leaf = Just(Tree(Vec::new())).boxed();
        leaf.prop_recursive(3, 40, 5, move |below| vec(("[kl]", value(), any::<bool>(), below), 0..5).prop_map(Tree))
    }

    /// The YAML of a tree, each limit with a number of its own.
    fn written(tree: &Tree, indent: usize, number: &mut u32, out: &mut String) {
        let mut seen = BTreeSet::new();
        for (key, value, limited, below) in &tree.0 {
            if !seen.insert((key, value)) {
                continue;
            }
            let blanks = " ".repeat(indent);
            let _ = writeln!(out, "{blanks}- key: {key}");
            if let Some(value) = value {
                let _ = writeln!(out, "{blanks}  value: \"{value}\"");
            }
            if *limited {
                *number += 1;
                let _ = writeln!(out, "{blanks}  rate_limit: {{ unit: hour, requests_per_unit: {number} }}");
            }
            if !below.0.is_empty() {
                let _ = writeln!(out, "{blanks}  descriptors:");
                written(below, indent + 2, number, out);
            }
        }
    }

    proptest! {
        #[test]
        fn a_descriptor_meets_the_same_limit(
            tree in trees(),
            requests in vec(vec(("[kl]", "[ab/1]{0,3}"), 1..4), 40),
        ) {
            let (mut text, mut number) = ("domain: d\ndescriptors:\n".to_owned(), 0);
            written(&tree, 0, &mut number, &mut text);
            let domain = read(&text);
            let toml = import(&text).toml;
            let config = Config::from_toml(&toml).unwrap_or_else(|report| panic!("{toml}\n{report}"));
            let engine = Engine::new(&config.policy, MemoryStore::default()).unwrap();
            for entries in requests {
                let entries: Vec<(&str, &str)> = entries.iter().map(|(key, value)| (&**key, &**value)).collect();
                let keys: Vec<&str> = entries.iter().map(|(key, _)| *key).collect();
                let descriptor = keys.join(",");
                let names: Vec<String> = (0..entries.len())
                    .map(|index| match keys[..index].iter().filter(|key| **key == keys[index]).count() {
                        0 => keys[index].to_owned(),
                        before => format!("{}.{}", keys[index], before + 1),
                    })
                    .collect();
                let mut request = Request::new().field("domain", "d").field("descriptor", &descriptor);
                for (name, (_, value)) in names.iter().zip(&entries) {
                    request.push(name, value);
                }
                let decision = engine.decide(Op::Peek, &request, Time::from_secs(1_700_000_000));
                let found = decision.limit().map(|limit| limit as u32);
                prop_assert_eq!(found, matched(&domain.descriptors, &entries), "{:?}\n{}\n{}", entries, text, toml);
            }
        }
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, expected) in [
            ("descriptors: []\n", "1:1 the file has no domain"),
            ("domain: d\ndescriptors:\n- value: x\n", "3:3 a descriptor has no key"),
            ("domain: d\ndescriptors:\n- key: a\n- key: a\n", "4:3 a stands twice"),
            ("domain: d\ndescriptors:\n- key: a\n  limit: 5\n", "4:3 unknown key \"limit\""),
            (
                "domain: d\ndescriptors:\n- key: a\n  share_threshold: true\n",
                "3:3 share_threshold needs a value with *",
            ),
            (
                "domain: d\ndescriptors:\n- key: a\n  rate_limit: { unit: fortnight }\n",
                "4:23 \"fortnight\" is not a unit: second, minute, hour, day, week, month or year",
            ),
            (
                "domain: d\ndescriptors:\n- key: a\n  rate_limit: { unlimited: true, unit: day }\n",
                "4:15 an unlimited rate_limit has no unit",
            ),
            (
                "domain: d\ndescriptors:\n- key: a\n  rate_limit: { unit: day, name: n, replaces: [{ name: n }] }\n",
                "4:56 n replaces itself",
            ),
            ("domain: [\n", "2:1 while parsing a node, did not find expected node content"),
        ] {
            let read = yaml::read(text).and_then(|root| tree::read(&root).map(|_| ()));
            let mistake = read.unwrap_err();
            assert_eq!(format!("{} {}", mistake.at, mistake.message), expected, "{text}");
        }
    }

    #[test]
    fn aliases_are_what_they_stand_for_and_stay_bounded() {
        let domain = read(
            "domain: d\ndescriptors:\n- key: a\n  rate_limit: &l { unit: day, requests_per_unit: 3 }\n- key: b\n  rate_limit: *l\n",
        );
        let grant = domain.descriptors[1].limit.as_ref().unwrap().grant;
        assert!(matches!(grant, Grant::Requests(3, unit) if unit.name == "day"), "{grant:?}");
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let _ = writeln!(laughs, "a{level}: &a{level} [{}]", vec![format!("*a{}", level - 1); 10].join(", "));
        }
        assert!(yaml::read(&laughs).unwrap_err().message.contains("too large"));
    }
}
