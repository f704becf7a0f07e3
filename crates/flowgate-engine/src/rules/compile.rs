//! From a [`Policy`] to a [`RuleSet`]: the one place that checks the rules as a whole.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flowgate::{Ban, Limit, MemoryStore};
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::fields::{FieldId, FieldNames};
use super::index::{Entry, Index};
use super::matcher::{Matcher, shown};
use super::predicate::Predicate;
use super::rule::{Check, LimitListId, NamedLimit, Rule, RuleBan, RuleLimits, SubjectId};
use super::set::RuleSet;
use super::spelled_condition::{self, Spelling};
use super::subjects::SubjectFields;
use super::{Action, BanScope, Condition, Limits, Policy, RuleDef};
use crate::config::name;
use crate::field_name::canonical;
use crate::key;
use crate::lists::List;

/// The largest number of limits of one rule. They are all decided in one step.
const MAX_LIMITS: usize = 32;

const MAX_RULES: usize = 100_000;

/// The largest number of rules whose bans deny everywhere. Every request asks for the bans of all of them.
const MAX_BANNING_EVERYWHERE: usize = 16;

/// The generation of the last set that was compiled.
static LAST_GENERATION: AtomicU64 = AtomicU64::new(0);

impl RuleSet {
    /// Compiles a policy. Counters are named for `memory`, so the set can only be used with it.
    ///
    /// # Errors
    /// When the rules do not fit together; the error names the rule and the part.
    pub fn compile(policy: &Policy, memory: &MemoryStore) -> Result<RuleSet, PolicyError> {
        let spelled_lists = spelled_lists(policy);
        let (fields, subjects, limits) = (FieldNames::default(), Vec::new(), vec![Box::default()]);
        let mut compiler = Compiler { policy, memory, spelled_lists, fields, subjects, limits };
        let mut names = HashSet::new();
        let mut rules = Vec::with_capacity(policy.rules.len());
        for (number, def) in policy.rules.iter().enumerate() {
            let wrong = Wrong { number, def };
            if number == MAX_RULES {
                return Err(wrong.part("name", None, &def.name, "at most 100000 rules"));
            }
            if !names.insert(&def.name) {
                return Err(wrong.part("name", None, &def.name, "a name that no other rule has"));
            }
            rules.push(compiler.rule(&wrong)?);
        }
        let banning_everywhere = banning_everywhere(policy, &rules)?;
        let Compiler { fields, subjects, limits, .. } = compiler;
        let matchers: Vec<Vec<Cow<'_, Matcher>>> = policy.rules.iter().map(|def| matchers(policy, def)).collect();
        let entries: Vec<Entry<'_>> =
            matchers.iter().zip(&rules).map(|(matchers, rule)| entry(matchers, rule, &subjects)).collect();
        let (index, proven) = Index::new(&entries, &fields);
        let rules = rules.into_iter().zip(proven).map(|(rule, proven)| {
            let unproven = (0..rule.checks.len()).filter(|number| proven != Some(*number)).collect();
            Arc::new(Rule { unproven, ..rule })
        });
        Ok(RuleSet {
            rules: rules.collect(),
            index,
            subjects: subjects.iter().map(|by| SubjectFields::new(by, &fields, memory)).collect(),
            limits: limits.into(),
            banning_everywhere,
            fields,
            path_spelling: policy.path_spelling,
            generation: next_generation(),
        })
    }
}

/// A number that no compiled set has yet.
pub(super) fn next_generation() -> u64 {
    LAST_GENERATION.fetch_add(1, Relaxed) + 1
}

/// The positions of the rules whose bans deny everywhere.
fn banning_everywhere(policy: &Policy, rules: &[Rule]) -> Result<Box<[u32]>, PolicyError> {
    let everywhere = rules.iter().filter(|rule| rule.ban_scope() == Some(BanScope::Subject));
    let positions: Box<[u32]> = everywhere.map(|rule| rule.id).collect();
    match positions.get(MAX_BANNING_EVERYWHERE) {
        None => Ok(positions),
        Some(&first) => {
            let wrong = Wrong { number: first as usize, def: &policy.rules[first as usize] };
            Err(wrong.part("ban", Some("scope"), "subject", "at most 16 rules whose bans have that scope"))
        }
    }
}

/// The matcher of a condition, in the spelling that the gate gives the field's values.
fn matcher<'a>(policy: &Policy, Condition { field, matcher }: &'a Condition) -> Cow<'a, Matcher> {
    match Spelling::of_field(field, policy.path_spelling) {
        Some(spelling) => Cow::Owned(spelled_condition::spelled(matcher, spelling)),
        None => Cow::Borrowed(matcher),
    }
}

fn matchers<'a>(policy: &Policy, def: &'a RuleDef) -> Vec<Cow<'a, Matcher>> {
    def.when.iter().map(|condition| matcher(policy, condition)).collect()
}

/// The lists in which values of a spelled field are looked up, with the spellings of their entries: by field and name.
type SpelledLists<'a> = HashMap<&'a str, BTreeMap<String, Arc<List>>>;

fn spelled_lists(policy: &Policy) -> SpelledLists<'_> {
    let mut all = SpelledLists::new();
    for Condition { field, matcher } in policy.rules.iter().flat_map(|def| &def.when) {
        let Some(spelling) = Spelling::of_field(field, policy.path_spelling) else { continue };
        let lists = all.entry(field.as_str()).or_default();
        for name in matcher.lists() {
            if let (false, Some(list)) = (lists.contains_key(name), policy.lists.get(name)) {
                let spelled = spelled_condition::spelled_list(list, spelling);
                lists.insert(name.to_owned(), spelled.map_or_else(|| Arc::clone(list), Arc::new));
            }
        }
    }
    all
}

fn entry<'a>(matchers: &'a [Cow<'_, Matcher>], rule: &Rule, subjects: &'a [Box<[FieldId]>]) -> Entry<'a> {
    // `limits_by` without a default also needs its field. The index leaves that out, because the lookup of the limits
    // finds out as quickly.
    let fields = rule.checks.iter().map(|check| check.field);
    Entry {
        conditions: fields.zip(matchers.iter().map(|matcher| &**matcher)).collect(),
        by: &subjects[rule.subject.0 as usize],
    }
}

struct Compiler<'a> {
    policy: &'a Policy,
    memory: &'a MemoryStore,
    spelled_lists: SpelledLists<'a>,
    fields: FieldNames,
    subjects: Vec<Box<[FieldId]>>,
    limits: Vec<Box<[NamedLimit]>>,
}

impl Compiler<'_> {
    fn rule(&mut self, wrong: &Wrong<'_>) -> Result<Rule, PolicyError> {
        let def = wrong.def;
        if !name::fits(&def.name) {
            return Err(wrong.part("name", None, &def.name, "letters, digits, _ . - (at most 128)"));
        }
        check_action(wrong)?;
        let checks = def.when.iter().map(|condition| self.check(wrong, condition)).collect::<Result<_, _>>()?;
        let subject = self.subject(wrong)?;
        let limits = self.limits(wrong)?;
        let ban = self.ban(wrong)?;
        let RuleDef { count_denied, shadow, .. } = *def;
        Ok(Rule {
            name: def.name.as_str().into(),
            title: def.title.as_deref().map(Into::into),
            action: def.action.clone(),
            code: def.code,
            message: def.message.as_deref().map(Into::into),
            on_failure: def.on_failure,
            id: wrong.number as u32,
            flags: flowgate::RuleFlags { count_denied, shadow },
            checks,
            unproven: Box::default(),
            subject,
            limits,
            ban,
            by: def.by.iter().map(|field| canonical(field).into()).collect(),
            place: def.place.clone(),
            counters: Arc::default(),
        })
    }

    fn check(&mut self, wrong: &Wrong<'_>, condition: &Condition) -> Result<Check, PolicyError> {
        let Condition { field, matcher: written } = condition;
        let lists = self.spelled_lists.get(field.as_str()).unwrap_or(&self.policy.lists);
        let matcher = matcher(self.policy, condition);
        let predicate = Predicate::compile(&matcher, lists).map_err(|missing| {
            let known: Vec<&str> = self.policy.lists.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none is".to_owned() } else { known.join(", ") };
            wrong.part("when", Some(field), missing, format!("a list that is defined: {known}"))
        })?;
        let field = self.read_field(wrong, "when", field)?;
        Ok(Check { field, predicate, written: written.alternatives().into() })
    }

    /// A field whose value the rule reads.
    fn read_field(&mut self, wrong: &Wrong<'_>, key: &'static str, name: &str) -> Result<FieldId, PolicyError> {
        let field = self.field(wrong, key, name)?;
        self.fields.note_read(field);
        Ok(field)
    }

    fn field(&mut self, wrong: &Wrong<'_>, key: &'static str, name: &str) -> Result<FieldId, PolicyError> {
        if name.is_empty() {
            return Err(wrong.part(key, Some(name), name, "the name of a field"));
        }
        self.fields.number(name).ok_or_else(|| wrong.part(key, Some(name), name, "at most 65536 different fields"))
    }

    fn subject(&mut self, wrong: &Wrong<'_>) -> Result<SubjectId, PolicyError> {
        let mut names: SmallVec<[&str; 4]> = wrong.def.by.iter().map(|field| canonical(field)).collect();
        // The subject is the same in whatever order the fields are written.
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong.part("by", Some(pair[0]), pair[0], "each field once"));
        }
        let fields: Box<[FieldId]> =
            names.iter().map(|name| self.field(wrong, "by", name)).collect::<Result<_, _>>()?;
        let known = self.subjects.iter().position(|subject| *subject == fields);
        let index = known.unwrap_or_else(|| {
            self.subjects.push(fields);
            self.subjects.len() - 1
        });
        Ok(SubjectId(index as u32))
    }

    fn limits(&mut self, wrong: &Wrong<'_>) -> Result<RuleLimits, PolicyError> {
        match &wrong.def.limits {
            Limits::None => Ok(RuleLimits::None),
            Limits::Fixed(limits) => Ok(RuleLimits::Fixed(self.named(wrong, "limits", None, limits)?)),
            Limits::ByField { field, cases, default } => {
                if cases.is_empty() && default.is_none() {
                    return Err(wrong.part("limits_by", None, field, "limits for at least one value of the field"));
                }
                let spelling = Spelling::of_field(field, self.policy.path_spelling);
                let mut named = |case: &str, limits| self.named(wrong, "limits_by", Some(case), limits);
                let default = default.as_ref().map(|limits| named("default", limits)).transpose()?;
                let mut by_value = HashMap::new();
                for (value, limits) in cases {
                    by_value.insert(value.as_str().into(), named(value, limits)?);
                    // A value also counts in the gate's spelling, unless another case of the table is written so.
                    let spelled = spelling.map(|spelling| spelling.of_written(value));
                    if let Some(spelled) = spelled.filter(|spelled| !cases.contains_key(spelled)) {
                        by_value.insert(spelled.into(), named(value, limits)?);
                    }
                }
                let cases = by_value;
                Ok(RuleLimits::ByField { field: self.read_field(wrong, "limits_by", field)?, cases, default })
            }
        }
    }

    /// Names the counters: limits of one algorithm and period differ by their order.
    fn named(
        &mut self,
        wrong: &Wrong<'_>,
        key: &'static str,
        case: Option<&str>,
        limits: &[Limit],
    ) -> Result<LimitListId, PolicyError> {
        if limits.is_empty() || limits.len() > MAX_LIMITS {
            return Err(wrong.part(key, case, &format!("{} limits", limits.len()), "1 to 32 limits"));
        }
        let named = limits.iter().enumerate().map(|(index, limit)| {
            let alike = limits[..index].iter().filter(|before| key::identity(before) == key::identity(limit));
            let nth = alike.count();
            let name = key::limit_counter(&wrong.def.name, limit, nth);
            NamedLimit {
                limit: limit.clone(),
                id: self.memory.counter(&name),
                #[cfg(feature = "redis")]
                name: crate::store::redis::limit_name(&wrong.def.name, limit, nth),
            }
        });
        self.limits.push(named.collect());
        Ok(LimitListId(self.limits.len() as u32 - 1))
    }

    fn ban(&self, wrong: &Wrong<'_>) -> Result<Option<RuleBan>, PolicyError> {
        let Some(def) = &wrong.def.ban else { return Ok(None) };
        let name = &wrong.def.name;
        if wrong.def.by.is_empty() {
            return Err(wrong.part("ban", None, name, "a rule with `by`: a ban must know whom"));
        }
        if matches!(wrong.def.limits, Limits::None) {
            return Err(wrong.part("ban", None, name, "a rule with limits: a ban counts what they deny"));
        }
        let (built, scope) = (Ban::new(def.after, def.within, &def.lengths, def.forget), def.scope);
        let ban = built.map_err(|error| wrong.part("ban", Some(error.part), &error.found, error.expected))?;
        Ok(Some(RuleBan {
            ban,
            counter: self.memory.counter(&key::ban_counter(name)),
            #[cfg(feature = "redis")]
            name: crate::store::redis::ban_name(name),
            scope,
            def: Box::new(def.clone()),
        }))
    }
}

fn check_action(wrong: &Wrong<'_>) -> Result<(), PolicyError> {
    let RuleDef { action, limits, .. } = wrong.def;
    let word = action.as_str();
    match action {
        Action::Allow if !matches!(limits, Limits::None) => {
            Err(wrong.part("action", None, word, "`deny` or another word, where there are limits to exceed"))
        }
        _ if !name::fits(word) => {
            Err(wrong.part("action", None, word, "allow, deny or a word: letters, digits, _ . - (at most 128)"))
        }
        _ => Ok(()),
    }
}

/// The rule that is being compiled, for errors about it.
struct Wrong<'a> {
    number: usize,
    def: &'a RuleDef,
}

impl Wrong<'_> {
    fn part(&self, key: &'static str, item: Option<&str>, found: &str, expected: impl Into<String>) -> PolicyError {
        PolicyError {
            rule: self.number,
            name: shown(&self.def.name),
            key,
            item: item.map(str::to_owned),
            found: shown(found),
            expected: expected.into(),
        }
    }
}

/// A policy that does not compile: which rule and part are wrong, what is written there, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule `{name}`: {key}{} `{found}`: expected {expected}", item.as_ref().map(|item| format!(".{item}")).unwrap_or_default())]
pub struct PolicyError {
    /// The position of the rule, from 0.
    pub rule: usize,
    name: String,
    /// The key of the rule that is wrong: `name`, `when`, `by`, `limits`, `limits_by`, `action` or `ban`.
    pub key: &'static str,
    /// The part of the key that is wrong: a field of `when` or `by`, a value of `limits_by`, a key of `ban`.
    pub item: Option<String>,
    /// What was written there, shortened if it is long.
    pub found: String,
    /// What was expected.
    pub expected: String,
}
