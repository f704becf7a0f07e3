//! `POST /v1/explain`: why would this be decided so? Every rule, and how its limits stand. Changes nothing.

use flowgate_engine::{LimitReport, Matched, OnFailure, RuleReport};
use hyper::body::Incoming;

use super::decide::Asked;
use super::error::Error;
use super::json::Object;
use super::limit::write_retry;
use super::reply::{self, Reply};
use super::{Call, bans, body};
use crate::decision_json;

/// `{"fields":{..},"cost":1,"gate":false}` -> `{"decision":{..},"ban":null,"rules":[..]}`.
pub(super) async fn explain(call: &Call<'_>, body: Incoming) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let asked = Asked::read(call, &body)?;
    let explanation = call.answered(call.shared.service.explain(&asked.request())).await?;
    let mut out = Vec::with_capacity(1024);
    let mut object = Object::new(&mut out);
    object.value("decision", |out| decision_json::write(out, &explanation.decision));
    match &explanation.ban {
        Some(ban) => object.value("ban", |out| bans::write_manual(out, ban)),
        None => object.null("ban"),
    }
    object.list("rules", &explanation.rules, write_rule);
    object.end();
    Ok(reply::json(out))
}

fn write_rule(out: &mut Vec<u8>, report: &RuleReport) {
    let mut object = Object::new(out);
    object.text("rule", report.rule.name());
    object.optional_text("title", report.rule.title());
    object.boolean("matched", report.matched == Matched::Yes);
    match &report.matched {
        Matched::Yes => object.null("failed"),
        failed => object.value("failed", |out| write_failed(out, failed)),
    }
    object.boolean("reached", report.reached);
    object.boolean("shadow", report.rule.is_shadow());
    object.text("action", report.rule.action().as_str());
    object.list("limits", &report.limits, write_limit);
    object.optional_time("banned_until", report.banned_until);
    object.optional_text("on_failure", report.on_failure.map(OnFailure::as_str));
    object.end();
}

/// The first condition that failed, what it wants and what the request has.
fn write_failed(out: &mut Vec<u8>, failed: &Matched) {
    let (field, expected, found) = match failed {
        Matched::Yes => return,
        Matched::Failed { field, expected, found } => (field, expected.as_str(), found.as_deref()),
        Matched::Lacks { field } => (field, "present: the rule counts by it", None),
        Matched::NoLimits { field, found } => (field, "a value that limits_by has limits for", found.as_deref()),
    };
    let mut object = Object::new(out);
    object.text("field", field);
    object.text("expected", expected);
    object.optional_text("found", found);
    object.end();
}

fn write_limit(out: &mut Vec<u8>, LimitReport { limit, outcome }: &LimitReport) {
    let mut object = Object::new(out);
    object.text("limit", &limit.to_string());
    object.boolean("allowed", outcome.allowed());
    object.optional_number("most", outcome.limit);
    object.optional_number("remaining", outcome.remaining);
    write_retry(&mut object, outcome);
    object.seconds("reset_after", outcome.reset_after);
    object.seconds("delay", outcome.delay());
    object.end();
}
