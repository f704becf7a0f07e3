//! The answer to a gateway: a status, headers, and for a denied client a problem document (RFC 9457).

use std::fmt;
use std::io::Write;

use bytes::Bytes;
use flowgate_api::Problem;
use flowgate_engine::{Decision, http::Quota};
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use smallvec::SmallVec;

use super::Gate;
use super::described::describe;
use super::original::Unclear;
use crate::http::reply::{self, Reply};

const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const RULE: HeaderName = HeaderName::from_static("x-flowgate-rule");
const ACTION: HeaderName = HeaderName::from_static("x-flowgate-action");

/// The answer for a decision. `chosen` is the status that the gateway wants for a denial.
pub(super) fn decided(gate: &Gate, decision: &Decision, chosen: Option<StatusCode>) -> Reply {
    let mut reply = if decision.allowed() {
        reply::empty(StatusCode::OK)
    } else {
        let (limited, forbidden) = (gate.deny_status, StatusCode::FORBIDDEN);
        denied(Problem::from_decision(decision, limited.as_u16(), forbidden.as_u16()), chosen)
    };
    write_headers(gate, decision, reply.headers_mut());
    reply
}

/// The answer to a request that can be read in two ways. It is a denial and not an error: many gateways let requests
/// through on an error, and a client can send such a request at will.
pub(super) fn unclear(unclear: &Unclear<'_>, chosen: Option<StatusCode>) -> Reply {
    denied(Problem::forbidden(StatusCode::FORBIDDEN.as_u16(), &unclear.to_string()), chosen)
}

/// The denial, or under another status the denial [described](describe) in headers, too.
fn denied(problem: Problem<'_>, chosen: Option<StatusCode>) -> Reply {
    let Some(status) = chosen else { return document(&problem) };
    let mut reply = document(&Problem { status: status.as_u16(), ..problem.clone() });
    describe(problem, reply.headers_mut());
    reply
}

fn document(problem: &Problem<'_>) -> Reply {
    let mut reply = reply::with_type(reply::written(problem), "application/problem+json");
    // The configuration accepts valid statuses only.
    *reply.status_mut() = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::FORBIDDEN);
    reply
}

fn write_headers(gate: &Gate, decision: &Decision, headers: &mut HeaderMap) {
    let mut values = Values { text: Vec::with_capacity(128), ends: SmallVec::new() };
    if let Some(quota) = Quota::from_decision(decision) {
        if gate.ratelimit {
            values.shown(RATELIMIT_POLICY, quota.policy_header());
            values.shown(RATELIMIT, quota.header());
        }
        if gate.x_ratelimit {
            values.shown(X_LIMIT, quota.limit);
            values.shown(X_REMAINING, quota.remaining);
            values.shown(X_RESET, quota.reset);
        }
    }
    if let Some(wait) = decision.retry_after_header() {
        values.shown(RETRY_AFTER, wait);
    }
    if let Some(rule) = &decision.rule() {
        values.text(RULE, rule.name());
    }
    values.text(ACTION, decision.action());
    values.insert_into(headers);
}

/// Values of headers, written one behind the other into one allocation.
struct Values {
    text: Vec<u8>,
    /// Each header with the end of its value.
    ends: SmallVec<[(HeaderName, usize); 8]>,
}

impl Values {
    fn text(&mut self, name: HeaderName, value: &str) {
        self.text.extend_from_slice(value.as_bytes());
        self.ends.push((name, self.text.len()));
    }

    fn shown(&mut self, name: HeaderName, value: impl fmt::Display) {
        // Writing to a growing buffer cannot fail.
        let _ = write!(self.text, "{value}");
        self.ends.push((name, self.text.len()));
    }

    fn insert_into(self, headers: &mut HeaderMap) {
        headers.reserve(self.ends.len());
        let (text, mut start) = (Bytes::from(self.text), 0);
        for (name, end) in self.ends {
            // Names of rules and actions are valid in a header.
            if let Ok(value) = HeaderValue::from_maybe_shared(text.slice(start..end)) {
                headers.insert(name, value);
            }
            start = end;
        }
    }
}
