//! `POST /v1/limit`: a key and a limit of the caller's, without any rule.

use flowgate::{Decision, Limit};
use flowgate_engine::AdHoc;
use hyper::body::Incoming;
use serde::Deserialize;

use super::error::Error;
use super::fields::{Cost, Text};
use super::json::Object;
use super::reply::{self, Reply};
use super::{Call, body};
use crate::service::{KeyDecision, Operation};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked<'b> {
    #[serde(borrow)]
    key: Text<'b>,
    #[serde(borrow)]
    limit: Text<'b>,
    #[serde(default)]
    cost: Cost,
    #[serde(default)]
    op: Operation,
}

/// `{"key":"user:42","limit":"5/60s","cost":1,"op":"take"}` -> a decision.
pub(super) async fn limit(call: &Call<'_>, body: Incoming) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let Asked { key, limit, cost, op } = body::parse(&body)?;
    let limit: Limit = limit.0.parse()?;
    let order = AdHoc { key: key.0.as_bytes(), limit: &limit, cost: cost.0 };
    let decision = call.answered(call.shared.service.limit(op, order)).await??;
    let mut out = Vec::with_capacity(256);
    write(&mut out, &limit, &decision);
    Ok(reply::json(out))
}

/// The answer in the shape of a decision, in which no rule had a part.
fn write(out: &mut Vec<u8>, limit: &Limit, KeyDecision { decision, degraded }: &KeyDecision) {
    let allowed = decision.allowed();
    let mut object = Object::new(out);
    object.boolean("allowed", allowed);
    object.text("action", if allowed { "allow" } else { "deny" });
    object.null("rule");
    object.boolean("matched", true);
    object.optional_number("limit", decision.limit);
    object.optional_number("remaining", decision.remaining);
    write_retry(&mut object, decision);
    object.seconds("reset_after", decision.reset_after);
    object.seconds("delay", decision.delay());
    object.list("exceeded", (!allowed).then_some(limit), |out, limit| {
        let mut object = Object::new(out);
        object.null("rule");
        object.text("limit", &limit.to_string());
        write_retry(&mut object, decision);
        object.end();
    });
    object.list("shadow", [], |_, ()| {});
    object.null("banned_until");
    object.boolean("degraded", *degraded);
    object.end();
}

/// `never` is there only where it is true.
pub(super) fn write_retry(object: &mut Object<'_>, decision: &Decision) {
    match decision.retry_after() {
        Some(wait) => object.seconds("retry_after", wait),
        None => object.null("retry_after"),
    }
    if decision.never() {
        object.boolean("never", true);
    }
}
