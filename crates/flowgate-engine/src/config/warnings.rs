//! Warnings: settings that work, but probably not as intended.
//!
//! A warning is given only if it is certain: wrong warnings teach people to ignore all of them.

mod actions;
mod crowds;
mod descriptor;
mod fields;
mod hosts;
mod paths;
mod pointless;
mod unreachable;

use std::collections::HashSet;

use super::listen::ListenAddress;
use super::message::coded;
use super::report::Report;
use super::rule::Places;
use super::tree::Table;
use super::{Config, ReadPlaces};
use crate::rules::{Condition, Limits, RuleDef};

/// Reports all warnings.
pub(crate) fn find(report: &mut Report, config: &Config, places: &ReadPlaces, root: &Table) {
    closed_doors(report, config, root);
    unused_lists(report, config, places);
    let rules = &config.policy.rules;
    unreachable::find(report, rules, &places.rules, config.policy.path_spelling);
    crowds::find(report, rules, &places.rules);
    actions::find_pointless_permissions(report, rules, &places.rules);
    for (rule, places) in rules.iter().zip(&places.rules) {
        fields_not_required(report, rule, places);
        without_effect(report, rule, places);
        actions::find_mistyped(report, rule, places);
        if config.listen.grpc == ListenAddress::Off && !descriptor::is_asked_for(rule) {
            fields::find(report, rule, places);
            paths::find_unfit(report, rule, places);
            hosts::find_with_port(report, rule, places);
        }
        paths::find(report, rule, places, config.policy.path_spelling);
        for set in &places.sets {
            pointless::find(report, rule, set);
        }
    }
}

fn closed_doors(report: &mut Report, config: &Config, root: &Table) {
    let all_closed = config.listen.addresses().iter().all(|(_, address)| **address == ListenAddress::Off);
    if let (true, Some(entry)) = (all_closed, root.get("listen")) {
        let hint = "open one, such as http = \"127.0.0.1:7070\"";
        report.warning(entry.key_at, "every listener is off: a server would answer no client").hint(hint).done();
    }
}

fn unused_lists(report: &mut Report, config: &Config, places: &ReadPlaces) {
    let conditions = config.policy.rules.iter().flat_map(|rule| &rule.when);
    let used: HashSet<&str> = conditions.flat_map(|condition| condition.matcher.lists()).collect();
    for (name, at) in &places.lists {
        if !used.contains(name.as_str()) {
            let hint = format!("a rule uses it with when = {{ field = \"@{name}\" }}");
            let message = coded!("unused-list", "no rule uses the list \"{name}\"", name = name);
            report.warning(*at, message).hint(hint).done();
        }
    }
}

/// A field of `by` that `when` does not ask for: requests without it silently escape the rule.
fn fields_not_required(report: &mut Report, rule: &RuleDef, places: &Places) {
    for (field, &at) in rule.by.iter().zip(&places.by) {
        let requires = |condition: &Condition| match &*condition.field {
            name if is_same_field(name, field) => condition.matcher.requires_presence(),
            descriptor::FIELD => descriptor::has_field(&condition.matcher, field),
            _ => false,
        };
        if !rule.when.iter().any(requires) {
            let message = coded!("without-field", "requests without \"{field}\" pass by this rule", field = field);
            let name = super::writer::name(field);
            let hint = coded!("require-field", "if that is meant, say so: {name} = \"*\" in when", name = name);
            report.warning(at, message).hint(hint).done();
        }
    }
}

/// The gate finds a header by its name in any case.
fn is_same_field(a: &str, b: &str) -> bool {
    a == b || a.starts_with("header.") && b.starts_with("header.") && a.eq_ignore_ascii_case(b)
}

/// Only limits count.
fn without_effect(report: &mut Report, rule: &RuleDef, places: &Places) {
    if let (Limits::None, true, Some(at)) = (&rule.limits, rule.count_denied, places.count_denied) {
        let message = "\"count_denied\" has no effect in a rule without limits";
        report.warning(at, message).hint("the rule counts nothing").done();
    }
}
