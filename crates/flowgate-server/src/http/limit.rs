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
use crate::limit_cache;
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
    let key = key.0.as_bytes();
    let ask = |limit: &Limit| call.shared.service.limit(op, AdHoc { key, limit, cost: cost.0 });
    let decision = call.answered(limit_cache::with(&limit.0, ask)?).await??;
    let mut out = Vec::with_capacity(256);
    write(&mut out, &limit.0, &decision);
    Ok(reply::json(out))
}

/// The answer in the shape of a decision, in which no rule had a part.
fn write(out: &mut Vec<u8>, limit: &str, KeyDecision { decision, degraded }: &KeyDecision) {
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
        // It was read a moment ago, so this does not fail; as it was written it is a name for it, too.
        object.text("limit", &limit_cache::with(limit, Limit::to_string).unwrap_or_else(|_| limit.to_owned()));
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
