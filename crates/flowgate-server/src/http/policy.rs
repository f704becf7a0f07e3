//! `GET /v1/policy`: the rules in force, in their order.
//!
//! Rule       What is told is what decides, not what the file says. While the rules are paused, it is what the end of the
//!            pause puts in force.

use flowgate_api::{BrokenFile, Policy, PolicyRule};

use super::error::Error;
use super::query::Query;
use super::reply::{self, Reply};
use super::{Call, Shared};
use crate::service::Service;

/// The most rules of an answer.
const MAX_RULES: u64 = 1_000;

/// `?from=0&limit=1000`.
pub(super) async fn policy(call: &Call<'_>) -> Result<Reply, Error> {
    let query = Query::read(call, &["from", "limit"])?;
    let from = query.number("from", 0..=u64::from(u32::MAX))?.unwrap_or(0);
    let limit = query.number("limit", 1..=MAX_RULES)?.unwrap_or(MAX_RULES);
    let (service, broken) = (call.shared.service.clone(), broken(call.shared));
    // A thousand rules are a long text, so it is not written on the event loop.
    let written = call.on_thread(move || document(&service, broken, from, limit)).await?;
    Ok(reply::json_text(written))
}

fn document(service: &Service, broken: Option<BrokenFile>, from: u64, limit: u64) -> Vec<u8> {
    let snapshot = service.unpaused();
    let rules = &snapshot.rules;
    let page = rules.rules.iter().skip(from as usize).take(limit as usize);
    reply::written(&Policy {
        now: service.now().into(),
        etag: etag(service).into(),
        loaded: snapshot.loaded.into(),
        broken,
        fields: rules.field_names().map(Into::into).collect(),
        total: rules.rules.len() as u64,
        from,
        rules: page.map(|rule| PolicyRule::new(rules, rule)).collect(),
    })
}

/// An etag that changes whenever other rules come into force, and at a restart.
pub(super) fn etag(service: &Service) -> String {
    format!("\"{:x}-{:x}\"", service.started.as_nanos(), service.unpaused().rules.generation)
}

/// What is wrong with the configuration file; `None`: nothing.
pub(crate) fn broken(shared: &Shared) -> Option<BrokenFile> {
    let status = shared.rules.get()?.reload_status();
    Some(BrokenFile { since: status.failing_since?.into(), report: status.last_error? })
}
