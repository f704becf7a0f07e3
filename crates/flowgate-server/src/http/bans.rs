//! `/v1/bans`: lists the bans by hand and by rules, imposes and lifts bans.

use std::borrow::Cow;

use flowgate::Span;
use flowgate_api::{Bans, NewBan, WarningCode};
use flowgate_engine::config::parse_duration;
use flowgate_engine::{
    bans::{ADDRESS_FIELD, BanOrder, ManualBan, WideNetwork, wide_network},
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
        _ => return Err(Error::BanLength),
    };
    let reason = reason.as_ref().map_or("", |reason| &*reason.0);
    let order = BanOrder { field: &field.0, value: &value.0, length, reason, author: None };
    let service = &call.shared.service;
    let ban = call.answered(service.ban(order, &call.author())).await??;
    let warning = Warning::of(service, &ban);
    let created = NewBan {
        ban: (&*ban).into(),
        warning: warning.as_ref().map(ToString::to_string),
        warning_code: warning.as_ref().map(Warning::code),
    };
    Ok(reply::json(&created).with_status(StatusCode::CREATED))
}

/// Why a ban may not have the intended effect.
#[derive(Debug, thiserror::Error)]
enum Warning<'b> {
    #[error("the ban holds for {0}: lift it if that is not meant")]
    Wide(WideNetwork),
    /// Any field may hold addresses. Values that are not addresses pass.
    #[error("the ban holds for values of {1:?} that are addresses, {0}: lift it if that is not meant")]
    WideInField(WideNetwork, &'b str),
    /// Callers of the API may send the value as it is written.
    #[error("requests at the gate have {spelled:?} in the field {field:?}: ban that to stop them")]
    Spelling { field: &'b str, spelled: Cow<'b, str> },
    /// The field may be mistyped, or known to callers only: a ban works without a rule.
    #[error("no rule uses the field {0:?}; only requests that bring it are stopped")]
    Unused(&'b str),
}

impl<'b> Warning<'b> {
    fn of(service: &Service, ManualBan { field, value, .. }: &'b ManualBan) -> Option<Warning<'b>> {
        if let Some(network) = wide_network(value) {
            return Some(match &**field {
                ADDRESS_FIELD => Warning::Wide(network),
                field => Warning::WideInField(network, field),
            });
        }
        let spelled = match &**field {
            "path" => service.rules().path_spelling.spell(&**value),
            "host" => normalized_host(value),
            "method" => normalized_method(value),
            _ => Cow::Borrowed(&**value),
        };
        if spelled != **value {
            return Some(Warning::Spelling { field, spelled });
        }
        (!service.snapshot().uses_field(field)).then_some(Warning::Unused(field))
    }

    fn code(&self) -> WarningCode<'_> {
        let (code, values) = match self {
            Warning::Wide(network) => ("ban-wide", network_values(*network)),
            Warning::WideInField(network, field) => {
                ("ban-wide-in-field", [network_values(*network), vec![("field", (*field).into())]].concat())
            }
            Warning::Spelling { field, spelled } => {
                ("ban-spelling", vec![("field", (*field).into()), ("value", spelled.as_ref().into())])
            }
            Warning::Unused(field) => ("ban-unused", vec![("field", (*field).into())]),
        };
        let values = values.into_iter().map(|(name, value)| (name.into(), value)).collect();
        WarningCode { code: code.into(), values }
    }
}

fn network_values<'v>(network: WideNetwork) -> Vec<(&'static str, Cow<'v, str>)> {
    vec![("family", network.family.into()), ("one_in", network.one_in.to_string().into())]
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
