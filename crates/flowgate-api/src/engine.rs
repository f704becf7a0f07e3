//! Documents made from the engine's types.

use std::borrow::Cow;

use flowgate::{Limit, MAX_COUNT, MemoryStats, Op, Retry, Span, Time};
use flowgate_engine::{self as engine, DecidedBy, OnFailure, RuleOutcome, config, explain::RuleMatch};

use crate::{
    AtomicBatch, BanAuthor, BanRule, Condition, Decision, ExceededLimit, Explanation, FailedCondition, Finding,
    Findings, FoundBan, Hint, LimitReport, LimitsBy, MAX_COST, ManualBan, Memory, Millis, Operation, Origin,
    PartDecision, PolicyRule, Problem, QUOTA_EXCEEDED, RuleBan, RuleReport, RuleTotals, Severity, Values,
};

const _: () = assert!(MAX_COST == MAX_COUNT, "a cost counts up to what counters hold");

impl Operation {
    /// The operation on counters; `None` for a reset, which forgets them.
    pub fn op(self) -> Option<Op> {
        match self {
            Operation::Take => Some(Op::Take),
            Operation::Peek => Some(Op::Peek),
            Operation::Record => Some(Op::Record),
            Operation::Refund => Some(Op::Refund),
            Operation::Reset => None,
        }
    }
}

impl<'a> From<&'a engine::JointDecision> for AtomicBatch<'a> {
    fn from(joint: &'a engine::JointDecision) -> AtomicBatch<'a> {
        let part = |part: &'a engine::PartDecision| PartDecision {
            decision: Decision::from(&part.decision),
            charged: part.charged,
        };
        AtomicBatch { allowed: joint.allowed(), decisions: joint.parts().iter().map(part).collect() }
    }
}

impl From<Span> for Millis {
    /// Rounded up, so that a client that waits that long passes.
    fn from(span: Span) -> Millis {
        Millis(span.as_millis_ceil())
    }
}

impl From<Time> for Millis {
    /// Rounded up.
    fn from(time: Time) -> Millis {
        time.since(Time::EPOCH).into()
    }
}

impl<'a> From<&'a engine::Decision> for Decision<'a> {
    fn from(decision: &'a engine::Decision) -> Decision<'a> {
        Decision {
            allowed: decision.allowed(),
            action: decision.action().into(),
            rule: decision.rule().map(|rule| rule.name().into()),
            matched: decision.matched(),
            code: decision.code(),
            message: decision.message().map(Cow::from),
            limit: decision.limit(),
            remaining: decision.remaining(),
            retry_after: decision.retry_after().map(Millis::from),
            never: decision.never(),
            reset_after: decision.reset_after().into(),
            delay: decision.delay().into(),
            exceeded: decision.exceeded().iter().map(ExceededLimit::from).collect(),
            shadow: decision.shadow.iter().map(|rule| rule.name().into()).collect(),
            banned_until: decision.banned_until().map(Millis::from),
            degraded: decision.degraded,
        }
    }
}

impl Decision<'_> {
    /// The decision of one limit, without any rule: the answer of `/v1/limit`.
    pub fn of_limit(limit: &Limit, decision: &flowgate::Decision, degraded: bool) -> Decision<'static> {
        let (allowed, retry_after) = (decision.allowed(), decision.retry_after().map(Millis::from));
        let never = decision.never();
        let memory_full = decision.lacks_room();
        let exceeded =
            || ExceededLimit { rule: None, limit: limit.to_string().into(), retry_after, never, memory_full };
        Decision {
            allowed,
            action: if allowed { "allow" } else { "deny" }.into(),
            matched: true,
            limit: decision.limit,
            remaining: decision.remaining,
            retry_after,
            never,
            reset_after: decision.reset_after.into(),
            delay: decision.delay().into(),
            exceeded: if allowed { Vec::new() } else { vec![exceeded()] },
            degraded,
            ..Decision::default()
        }
    }
}

impl<'a> From<&'a engine::ExceededLimit> for ExceededLimit<'a> {
    fn from(exceeded: &'a engine::ExceededLimit) -> ExceededLimit<'a> {
        let retry_after = match exceeded.retry {
            Retry::After(wait) => Some(wait.into()),
            Retry::Never => None,
        };
        let (rule, limit) = (Some(exceeded.rule.name().into()), exceeded.limit.to_string().into());
        ExceededLimit { rule, limit, retry_after, never: retry_after.is_none(), memory_full: exceeded.lacks_room }
    }
}

impl<'a> From<&'a engine::Explanation> for Explanation<'a> {
    fn from(explanation: &'a engine::Explanation) -> Explanation<'a> {
        Explanation {
            decision: (&explanation.decision).into(),
            ban: explanation.ban.as_deref().map(ManualBan::from),
            rules: explanation.rules.iter().map(RuleReport::from).collect(),
            ..Explanation::default()
        }
    }
}

impl<'a> From<&'a engine::explain::RuleReport> for RuleReport<'a> {
    fn from(report: &'a engine::explain::RuleReport) -> RuleReport<'a> {
        RuleReport {
            rule: report.rule.name().into(),
            title: report.rule.title.as_deref().map(Cow::from),
            matched: report.matched == RuleMatch::Yes,
            failed: FailedCondition::of_rule(&report.matched),
            reached: report.reached,
            shadow: report.rule.is_shadow(),
            action: report.rule.action.as_str().into(),
            limits: report.limits.iter().map(LimitReport::from).collect(),
            banned_until: report.banned_until.map(Millis::from),
            ban_scope: report.rule.ban_scope().map(|scope| scope.as_str().into()),
            on_failure: report.on_failure.map(|on_failure| OnFailure::as_str(on_failure).into()),
        }
    }
}

impl<'a> FailedCondition<'a> {
    fn of_rule(matched: &'a RuleMatch) -> Option<FailedCondition<'a>> {
        let (field, expected, found) = match matched {
            RuleMatch::Yes => return None,
            RuleMatch::Failed { field, expected, found } => (field, expected.as_str(), found.as_deref()),
            RuleMatch::Lacks { field } => (field, "present: the rule counts by it", None),
            RuleMatch::NoLimits { field, found } => (field, "a value that limits_by has limits for", found.as_deref()),
        };
        Some(FailedCondition { field: field.into(), expected: expected.into(), found: found.map(Cow::from) })
    }
}

impl From<&engine::explain::LimitReport> for LimitReport<'_> {
    fn from(engine::explain::LimitReport { limit, outcome }: &engine::explain::LimitReport) -> Self {
        LimitReport {
            limit: limit.to_string().into(),
            allowed: outcome.allowed(),
            most: outcome.limit,
            remaining: outcome.remaining,
            retry_after: outcome.retry_after().map(Millis::from),
            never: outcome.never(),
            reset_after: outcome.reset_after.into(),
            delay: outcome.delay().into(),
        }
    }
}

impl<'a> From<&'a engine::bans::ManualBan> for ManualBan<'a> {
    fn from(ban: &'a engine::bans::ManualBan) -> ManualBan<'a> {
        let (field, value, reason) = ((&*ban.field).into(), (&*ban.value).into(), (&*ban.reason).into());
        let author = ban.author.as_ref().map(BanAuthor::from);
        ManualBan { id: ban.id.to_string().into(), field, value, until: ban.until.into(), reason, author }
    }
}

impl<'a> From<&'a engine::bans::BanAuthor> for BanAuthor<'a> {
    fn from(author: &'a engine::bans::BanAuthor) -> BanAuthor<'a> {
        BanAuthor { by: (&*author.by).into(), from: author.from.as_deref().map(Into::into) }
    }
}

impl<'a> From<&'a engine::bans::RuleBan> for RuleBan<'a> {
    fn from(ban: &'a engine::bans::RuleBan) -> RuleBan<'a> {
        let subject = ban.subject.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let (id, rule) = (ban.id.to_string().into(), ban.rule.name().into());
        let scope = ban.rule.ban_scope().unwrap_or_default().as_str().into();
        RuleBan { id, rule, subject, scope, until: ban.until.into() }
    }
}

impl<'a> From<&'a engine::bans::ManualBan> for FoundBan<'a> {
    fn from(ban: &'a engine::bans::ManualBan) -> FoundBan<'a> {
        let ManualBan { id, field, value, until, reason, author } = ban.into();
        FoundBan {
            id,
            origin: Origin::Hand,
            field: Some(field),
            value: Some(value),
            since: ban.since.map(Millis::from),
            until,
            reason: Some(reason),
            author,
            ..FoundBan::default()
        }
    }
}

impl<'a> From<&'a engine::bans::RuleBan> for FoundBan<'a> {
    fn from(ban: &'a engine::bans::RuleBan) -> FoundBan<'a> {
        let RuleBan { id, rule, subject, scope, until } = ban.into();
        FoundBan {
            id,
            origin: Origin::Rule,
            rule: Some(rule),
            subject: Some(subject),
            scope: Some(scope),
            until,
            ..FoundBan::default()
        }
    }
}

impl<'a> PolicyRule<'a> {
    /// Describes a rule of a set.
    pub fn new(rules: &'a engine::RuleSet, rule: &'a engine::Rule) -> PolicyRule<'a> {
        let engine::rules::RuleDescription { conditions, limits, limits_by } = rules.describe(rule);
        let place = rule.place.as_ref();
        PolicyRule {
            name: rule.name().into(),
            title: rule.title.as_deref().map(Cow::from),
            source: place.map(|place| Cow::from(&*place.source)),
            line: place.map(|place| place.line as u64),
            when: conditions.into_iter().map(condition).collect(),
            by: rule.by().map(Cow::from).collect(),
            limits,
            limits_by: limits_by.map(|by| LimitsBy {
                field: by.field.into(),
                cases: by.cases.into_iter().map(|(value, limits)| (value.into(), limits)).collect(),
                default: by.default,
            }),
            action: rule.action.as_str().into(),
            shadow: rule.is_shadow(),
            count_denied: rule.counts_denied(),
            ban: rule.ban_def().map(BanRule::from),
            on_failure: rule.on_failure.map(|on_failure| on_failure.as_str().into()),
            total: rule.counters.read().into(),
        }
    }
}

fn condition<'a>((field, is): (&'a str, &'a [Box<str>])) -> Condition<'a> {
    Condition { field: field.into(), is: is.iter().map(|item| (&**item).into()).collect() }
}

impl From<&engine::rules::BanDef> for BanRule<'_> {
    fn from(ban: &engine::rules::BanDef) -> Self {
        BanRule {
            after: ban.after,
            within: ban.within.into(),
            lengths: ban.lengths.iter().map(|length| (*length).into()).collect(),
            forget: ban.forget.into(),
            scope: ban.scope.as_str().into(),
        }
    }
}

impl From<engine::RuleCounts> for RuleTotals {
    fn from(counts: engine::RuleCounts) -> RuleTotals {
        RuleTotals {
            allowed: counts.get(RuleOutcome::Allowed),
            denied: counts.get(RuleOutcome::Denied),
            banned: counts.get(RuleOutcome::Banned),
            shadow: counts.get(RuleOutcome::Shadowed),
            bans_started: counts.get(RuleOutcome::BanStarted),
        }
    }
}

impl<'r> From<&'r config::Report> for Findings<'r> {
    fn from(report: &'r config::Report) -> Findings<'r> {
        Findings { findings: report.entries().map(Finding::from).collect(), report: report.to_string() }
    }
}

impl<'r> From<config::ReportEntry<'r>> for Finding<'r> {
    fn from(entry: config::ReportEntry<'r>) -> Finding<'r> {
        let severity = match entry.severity {
            config::Severity::Error => Severity::Error,
            config::Severity::Warning => Severity::Warning,
        };
        Finding {
            severity,
            message: entry.message.text.as_str().into(),
            source: entry.source.map(Cow::from),
            line: entry.position.map(|position| position.line as u64),
            column: entry.position.map(|position| position.column as u64),
            hint: entry.hints.iter().map(|hint| hint.text.as_str()).collect::<Vec<_>>().join("\n").into(),
            code: entry.message.code.map(Into::into),
            values: values(&entry.message.values),
            hints: entry.hints.into_iter().map(Hint::from).collect(),
        }
    }
}

impl From<config::Message> for Hint<'_> {
    fn from(message: config::Message) -> Self {
        Hint { values: values(&message.values), text: message.text.into(), code: message.code.map(Into::into) }
    }
}

fn values(values: &[(&'static str, String)]) -> Values<'static> {
    values.iter().map(|(name, value)| ((*name).into(), value.clone().into())).collect()
}

impl From<MemoryStats> for Memory {
    fn from(stats: MemoryStats) -> Memory {
        Memory {
            keys: stats.counters as u64,
            bytes: stats.bytes as u64,
            max_bytes: stats.max_bytes as u64,
            evicted: stats.evicted,
            evicted_in_use: stats.evicted_in_use,
            refused: stats.refused,
            bans_refused: stats.bans_refused,
            coarsened: stats.coarsened,
        }
    }
}

impl<'a> Problem<'a> {
    /// The problem document of a denial: with the status `quota_exceeded` where a limit denies, and `forbidden` where
    /// a ban or a rule without limits does.
    pub fn from_decision(decision: &'a engine::Decision, quota_exceeded: u16, forbidden: u16) -> Problem<'a> {
        let (status, kind, title) = match &decision.decided_by {
            DecidedBy::Limits { .. } => (quota_exceeded, QUOTA_EXCEEDED, "Quota exceeded"),
            _ => (forbidden, "about:blank", "Forbidden"),
        };
        Problem {
            status,
            kind: kind.into(),
            title: title.into(),
            detail: decision.message().map(Cow::from),
            action: Some(decision.action().into()),
            code: decision.code(),
            retry_after: decision.retry_after().map(Millis::from),
            violated_policies: Some(decision.violated_policies().map(Cow::from).collect()),
        }
    }

    /// The problem document of a request that is refused before any rule is asked.
    pub fn forbidden(status: u16, detail: &'a str) -> Problem<'a> {
        let (kind, title) = ("about:blank".into(), "Forbidden".into());
        Problem { status, kind, title, detail: Some(detail.into()), ..Problem::default() }
    }
}
