//! `POST /v1/limit`: a key and a limit of the caller's, without any rule.

use flowgate::Limit;
use flowgate_api::{Decision, LimitCall, Operation};
use flowgate_engine::AdHoc;

use super::body::Body;
use super::error::Error;
use super::reply::{self, Reply};
use super::{Call, body};
use crate::limit_cache;
use crate::service::KeyDecision;

/// `{"key":"user:42","limit":"5/60s","cost":1,"op":"take"}` -> a decision.
pub(super) async fn limit(call: &Call<'_>, body: Body) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let LimitCall { key, limit, cost, op } = body::parse(&body)?;
    let key = key.0.as_bytes();
    let service = &call.shared.service;
    let KeyDecision { decision, degraded } = match op {
        Operation::Reset => {
            let ask = |limit: &Limit| service.limit_reset_at(AdHoc { key: key.into(), limit, cost: 0 }, service.read());
            call.answered(limit_cache::with(&limit.0, ask)?).await???
        }
        op => {
            let ask = |limit: &Limit| service.limit(op, AdHoc { key: key.into(), limit, cost: cost.0 });
            call.answered(limit_cache::with(&limit.0, ask)?).await??
        }
    };
    let decision = limit_cache::with(&limit.0, |limit| Decision::of_limit(limit, &decision, degraded))?;
    Ok(reply::decision(&decision))
}
