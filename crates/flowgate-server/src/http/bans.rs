//! `/v1/bans`: lists the bans by hand and by rules, imposes and lifts bans.

use std::borrow::Cow;

use flowgate::Span;
use flowgate_api::{Bans, NewBan};
use flowgate_engine::config::parse_duration;
use flowgate_engine::{
    bans::{BanOrder, ManualBan, wide_network},
    http::{normalized_host, normalized_method},
};
use hyper::StatusCode;

use super::body::Body;
use super::error::Error;
use super::reply::{self, Reply};
use super::{Call, body};
use crate::service::Service;

/// Every ban in force: `{"bans":[..]}`.
pub(super) async fn list(call: &Call<'_>) -> Result<Reply, Error> {
    let service = &call.shared.service;
    let (by_hand, by_rules) = (service.bans(), call.answered(service.rule_bans()).await??);
    let bans = by_hand.iter().map(|ban| (&**ban).into()).collect();
    Ok(reply::json(&Bans { bans, rule_bans: by_rules.iter().map(Into::into).collect() }))
}

/// `{"field":"ip","value":"192.0.2.0/24","for":"1h","reason":".."}` -> the ban, with its id, and a
/// warning if the network is very large, no rule uses the field, or no request at the gate has the value.
pub(super) async fn impose(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let flowgate_api::BanOrder { field, value, length, reason } = body::parse(&body)?;
    let length = match parse_duration(&length.0) {
        Some(length) if !length.is_zero() => Span::from(length),
        _ => return Err(Error::invalid("for", "expected a length such as \"10m\", \"1h\" or \"7d\", at most 366d")),
    };
    let reason = reason.as_ref().map_or("", |reason| &*reason.0);
    let order = BanOrder { field: &field.0, value: &value.0, length, reason };
    let service = &call.shared.service;
    let ban = call.answered(service.ban(order, &call.author())).await??;
    let created = NewBan { ban: (&*ban).into(), warning: warning(service, &ban) };
    Ok(reply::json(&created).with_status(StatusCode::CREATED))
}

/// Why a ban may not have the intended effect.
fn warning(service: &Service, ban: &ManualBan) -> Option<String> {
    let ManualBan { field, value, .. } = ban;
    if let Some(addresses) = wide_network(value) {
        return Some(format!("the ban holds for {addresses}: lift it if that is not meant"));
    }
    let at_the_gate = match &**field {
        "path" => service.rules().path_spelling.spell(&**value),
        "host" => normalized_host(value),
        "method" => normalized_method(value),
        _ => Cow::Borrowed(&**value),
    };
    if at_the_gate != **value {
        // Callers of the API may send the value as it is written.
        return Some(format!(
            "requests at the gate have {at_the_gate:?} in the field {field:?}: ban that to stop them"
        ));
    }
    // The field may be mistyped, or known to callers only: a ban works without a rule.
    let is_unused = !service.snapshot().uses_field(field);
    is_unused.then(|| format!("no rule uses the field {field:?}; only requests that bring it are stopped"))
}

/// `DELETE /v1/bans/{id}`, for bans by hand and by rules.
pub(super) async fn lift(call: &Call<'_>) -> Result<Reply, Error> {
    let id = call.head.path.rsplit('/').next().unwrap_or_default();
    let lifted = match id.parse() {
        Ok(id) => call.answered(call.shared.service.unban(id, &call.author())).await??,
        Err(_) => false,
    };
    if lifted { Ok(reply::empty(StatusCode::NO_CONTENT)) } else { Err(Error::NoSuchThing("no ban of that id")) }
}
