//! `POST /v1/limit`: the caller brings a key and a limit, and no rule is asked.

use flowgate::{Limit, Reading};
use flowgate_api::{Decision, LimitCall, Operation};
use flowgate_engine::AdHoc;

use super::body::Body;
use super::error::Error;
use super::reply::{self, Reply};
use super::{Call, body};
use crate::answer::Answer;
use crate::limit_cache;
use crate::service::{KeyDecision, Service};

/// `{"key":"user:42","limit":"5/60s","cost":1,"op":"take"}` -> a decision.
pub(super) async fn limit(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let LimitCall { key, limit: text, cost, op } = body::parse(&body)?;
    let pending = {
        let limit = limit_cache::parse(&text.0)?;
        let asked = AdHoc { key: key.0.as_bytes().into(), limit: &limit, cost: cost.0 };
        match ask(&call.shared.service, op, asked, call.time()) {
            Answer::Now(decided) => return Ok(reply_to(&limit, decided?)),
            pending @ Answer::Later(_) => pending,
        }
    };
    let decided = call.answered(pending).await??;
    Ok(limit_cache::with(&text.0, |limit| reply_to(limit, decided))?)
}

fn ask(service: &Service, op: Operation, asked: AdHoc<'_>, at: Reading) -> Answer<Result<KeyDecision, Error>> {
    match op {
        Operation::Reset => service.limit_reset_at(AdHoc { cost: 0, ..asked }, at).map(|reset| Ok(reset??)),
        op => service.limit(op, asked, at).map(|decided| Ok(decided?)),
    }
}

fn reply_to(limit: &Limit, KeyDecision { decision, degraded }: KeyDecision) -> Reply {
    reply::decision(&Decision::of_limit(limit, &decision, degraded))
}
