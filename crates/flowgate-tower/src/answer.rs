//! What a client hears: headers on every answer, and the answer to whom is denied.

use bytes::Bytes;
use flowgate_engine::config::HeaderFamily;
use flowgate_engine::{DecidedBy, Decision, QUOTA_EXCEEDED, Quota};
use http::header::{CONTENT_TYPE, Entry, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde_json::{Map, Value};

/// Adds what a decision says to the headers of an answer.
///
/// What is there already stays: `RateLimit` is a list, to which an outer layer adds its own policy; the older headers
/// hold one number, and the layer closest to the handler knows best.
pub(crate) fn add_headers(headers: &mut HeaderMap, decision: &Decision, families: &[HeaderFamily]) {
    if let Some(seconds) = decision.retry_after_header() {
        set(headers, RETRY_AFTER, seconds);
    }
    let Some(quota) = Quota::from_decision(decision) else { return };
    for family in families {
        match family {
            HeaderFamily::RateLimit => {
                append(headers, "ratelimit-policy", quota.policy_header());
                append(headers, "ratelimit", quota.header());
            }
            HeaderFamily::XRateLimit => {
                set(headers, HeaderName::from_static("x-ratelimit-limit"), quota.limit);
                set(headers, HeaderName::from_static("x-ratelimit-remaining"), quota.remaining);
                set(headers, HeaderName::from_static("x-ratelimit-reset"), quota.reset);
            }
        }
    }
}

fn append(headers: &mut HeaderMap, name: &'static str, value: impl std::fmt::Display) {
    // Rules have names of letters, digits and the like, so this is always the value of a header.
    if let Ok(value) = HeaderValue::try_from(value.to_string()) {
        headers.append(HeaderName::from_static(name), value);
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, number: u64) {
    if let Entry::Vacant(entry) = headers.entry(name) {
        entry.insert(HeaderValue::from(number));
    }
}

/// The answer to a denied request unless [`RateLimit::on_deny`](crate::RateLimit::on_deny) words another: 429, or 403
/// where a rule denies whatever the rate or a ban is in force, with a problem document.
///
/// ```json
/// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,
///  "detail":"You reply too fast.","violated-policies":["reply"],"action":"deny","code":201}
/// ```
///
/// `detail` and `code` are there where the rule has a `message` and a `code`.
pub fn problem(decision: &Decision) -> Response<Bytes> {
    let limited = matches!(decision.decided_by, DecidedBy::Limits | DecidedBy::Nothing);
    let status = if limited { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::FORBIDDEN };
    let mut body = Map::new();
    let mut member = |name: &str, value: Value| body.insert(name.to_owned(), value);
    member("type", if limited { QUOTA_EXCEEDED } else { "about:blank" }.into());
    member("title", status.canonical_reason().into());
    member("status", status.as_u16().into());
    if let Some(message) = &decision.message {
        member("detail", (**message).into());
    }
    member("violated-policies", decision.violated_policies().collect());
    member("action", decision.action().into());
    if let Some(code) = decision.code {
        member("code", code.into());
    }
    let mut response = Response::new(Bytes::from(Value::Object(body).to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}
