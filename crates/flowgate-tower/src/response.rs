//! What a client gets: headers with every response, and the response to a denied request.

use bytes::Bytes;
use flowgate_api::Problem;
use flowgate_engine::config::HeaderFamily;
use flowgate_engine::{Decision, http::Quota};
use http::header::{CONTENT_TYPE, Entry, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::fields::FieldError;

/// Adds what a decision says to the headers of a response.
///
/// Headers that are there already stay: `RateLimit` is a list, to which an outer layer adds its own policy; the older
/// headers hold one number, and the layer closest to the handler knows best.
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
    // A rule's name consists of letters, digits, `_`, `.` and `-`, so the text is always valid in a header.
    if let Ok(value) = HeaderValue::try_from(value.to_string()) {
        headers.append(HeaderName::from_static(name), value);
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, number: u64) {
    if let Entry::Vacant(entry) = headers.entry(name) {
        entry.insert(HeaderValue::from(number));
    }
}

/// The response to a denied request unless [`RateLimit::on_deny`](crate::RateLimit::on_deny) makes another: 429 where a
/// limit denies, 403 where a ban or a rule without limits does, with a problem document (RFC 9457). The server's gate
/// answers with the same document.
///
/// ```json
/// {"status":429,"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded",
///  "detail":"You reply too fast.","action":"deny","code":201,"retry_after":12.25,"violated-policies":["reply"]}
/// ```
///
/// `detail` and `code` are there where the rule has a `message` and a `code`, `retry_after` where a wait helps.
pub fn problem(decision: &Decision) -> Response<Bytes> {
    problem_with_status(decision, StatusCode::TOO_MANY_REQUESTS)
}

/// Like [`problem`], with another status where a limit denies.
pub(crate) fn problem_with_status(decision: &Decision, limited: StatusCode) -> Response<Bytes> {
    let problem = Problem::from_decision(decision, limited.as_u16(), StatusCode::FORBIDDEN.as_u16());
    document(&problem, StatusCode::from_u16(problem.status).unwrap_or(StatusCode::FORBIDDEN))
}

/// The response to a request that cannot be counted. If the service does not pass on the addresses of its clients, the
/// response says what to do about it: the author of the service reads it at the first request.
pub(crate) fn uncounted(error: FieldError) -> Response<Bytes> {
    let (status, title) = match error {
        FieldError::UnknownClient(_) => (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
        FieldError::AmbiguousPath(_) | FieldError::AmbiguousQuery(_) => (StatusCode::FORBIDDEN, "Forbidden"),
    };
    let detail = error.to_string();
    let problem = Problem { title: title.into(), ..Problem::forbidden(status.as_u16(), &detail) };
    document(&problem, status)
}

fn document(problem: &Problem<'_>, status: StatusCode) -> Response<Bytes> {
    // A document whose keys are texts can always be written.
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}
