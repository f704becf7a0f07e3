//! The answer to a gateway: a status, headers, and for a denied client a problem document (RFC 9457).

use flowgate_api::Problem;
use flowgate_engine::{Decision, http::Quota};
use hyper::StatusCode;
use hyper::header::{HeaderName, RETRY_AFTER};

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
    write_headers(gate, decision, &mut reply);
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
    describe(problem, &mut reply);
    reply
}

fn document(problem: &Problem<'_>) -> Reply {
    let mut reply = reply::with_type(reply::written(problem), "application/problem+json");
    // The configuration accepts valid statuses only.
    reply.status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::FORBIDDEN);
    reply
}

fn write_headers(gate: &Gate, decision: &Decision, reply: &mut Reply) {
    if let Some(quota) = Quota::from_decision(decision) {
        if gate.ratelimit {
            reply.header_written(&RATELIMIT_POLICY, |out| quota.write_policy(out));
            reply.header_written(&RATELIMIT, |out| quota.write(out));
        }
        if gate.x_ratelimit {
            reply.header_number(&X_LIMIT, quota.limit);
            reply.header_number(&X_REMAINING, quota.remaining);
            reply.header_number(&X_RESET, quota.reset);
        }
    }
    if let Some(wait) = decision.retry_after_header() {
        reply.header_number(&RETRY_AFTER, wait);
    }
    if let Some(rule) = &decision.rule() {
        reply.header(&RULE, rule.name());
    }
    reply.header(&ACTION, decision.action());
}
