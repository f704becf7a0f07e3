//! A `RateLimitResponse`, written directly: one status for each descriptor, and on a denial what the client is told.
//!
//! Rule       Envoy pairs statuses and descriptors by position, and cuts off fractions of seconds: times are whole
//!            seconds, rounded up.
//! Rule       `x-ratelimit-*` headers are Envoy's: it adds its own, so a second set would stand beside them.
//! Rule       `dynamic_metadata` tells what was granted, so that a request that was denied gives nothing back at its
//!            end.

use std::fmt::Write;

use bytes::Bytes;
use flowgate::{Retry, Span, Verdict};
use flowgate_api::Problem;
use flowgate_engine::http::Quota;
use flowgate_engine::{DecidedBy, Decision};

use super::body::PREFIX_BYTES;
use super::wire::{put_bytes, put_double, put_message, put_number};

// The number of a field of `RateLimitResponse`.
const OVERALL_CODE: u32 = 1;
const STATUSES: u32 = 2;
const RESPONSE_HEADERS_TO_ADD: u32 = 3;
const RAW_BODY: u32 = 5;
const DYNAMIC_METADATA: u32 = 6;

const OK: u64 = 1;
const OVER_LIMIT: u64 = 2;

/// The statuses of a problem document, which Envoy replaces by its own.
const TOO_MANY_REQUESTS: u16 = 429;
const FORBIDDEN: u16 = 403;

/// The answer to a call that asked for `hits` units, behind its prefix.
pub(super) fn message(answers: &[Decision], hits: u32) -> Bytes {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    write(&mut out, answers, hits);
    // The message is shorter than 4 GiB.
    let length = (out.len() - PREFIX_BYTES) as u32;
    out[1..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    out.into()
}

fn write(out: &mut Vec<u8>, answers: &[Decision], hits: u32) {
    let denied = answers.iter().find(|answer| !passes(answer));
    put_number(out, OVERALL_CODE, if denied.is_some() { OVER_LIMIT } else { OK });
    for answer in answers {
        put_message(out, STATUSES, |out| Status::new(answer).write(out));
    }
    if let Some(denied) = denied {
        write_denial(out, denied, answers);
    }
    let granted = if denied.is_some() { 0 } else { hits };
    put_message(out, DYNAMIC_METADATA, |out| write_metadata(out, denied.or(answers.first()), answers, granted));
}

/// The status of one descriptor.
#[derive(Debug, PartialEq, Eq)]
struct Status<'a> {
    code: u64,
    /// The limit, the period of its window, and the name of its rule.
    current_limit: Option<(u64, Option<Span>, &'a str)>,
    remaining: u64,
    seconds: u64,
}

impl<'a> Status<'a> {
    fn new(answer: &'a Decision) -> Status<'a> {
        let code = if passes(answer) { OK } else { OVER_LIMIT };
        let numbers = &answer.numbers;
        let seconds = match numbers.verdict {
            Verdict::Deny(Retry::After(wait)) => wait.as_secs_ceil().max(1),
            Verdict::Allow { delay } if !delay.is_zero() => delay.as_secs_ceil(),
            _ => numbers.reset_after.as_secs_ceil(),
        };
        let Some(quota) = Quota::from_decision(answer) else {
            return Status { code, current_limit: None, remaining: unasked(answer), seconds };
        };
        let current_limit = Some((numbers.limit.unwrap_or(0), answer.window(), quota.policy));
        Status { code, current_limit, remaining: numbers.remaining.unwrap_or(0), seconds }
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_number(out, 1, self.code);
        if let Some((limit, window, name)) = self.current_limit {
            put_message(out, 2, |out| {
                put_number(out, 1, cut(limit));
                put_number(out, 2, unit(window));
                put_bytes(out, 3, name.as_bytes());
            });
        }
        put_number(out, 3, cut(self.remaining));
        put_message(out, 4, |out| put_number(out, 1, self.seconds));
    }
}

/// What is left if no limit was asked: everything under `unlimited`.
fn unasked(decision: &Decision) -> u64 {
    match &decision.decided_by {
        DecidedBy::Limits { .. } if decision.allowed() => u64::from(u32::MAX),
        _ => 0,
    }
}

fn cut(number: u64) -> u64 {
    number.min(u64::from(u32::MAX))
}

/// The number of the unit that is exactly the window; 0 if there is none. Envoys before 1.40 ignore a multiplier, and
/// would tell clients that `5/10s` is 5 a second.
fn unit(window: Option<Span>) -> u64 {
    const UNITS: [(u64, u64); 7] =
        [(1, 1), (60, 2), (3_600, 3), (86_400, 4), (30 * 86_400, 5), (365 * 86_400, 6), (7 * 86_400, 7)];
    let unit = |window: Span| UNITS.iter().find(|(seconds, _)| Span::from_secs(*seconds) == window);
    window.and_then(unit).map_or(0, |(_, number)| *number)
}

/// Appends the headers and the problem document of a denial, by the first descriptor that is denied.
fn write_denial(out: &mut Vec<u8>, denied: &Decision, answers: &[Decision]) {
    let mut header = |name: &str, value: &str| {
        put_message(out, RESPONSE_HEADERS_TO_ADD, |out| {
            put_bytes(out, 1, name.as_bytes());
            put_bytes(out, 2, value.as_bytes());
        });
    };
    if let Some(seconds) = retry_after(answers) {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(text, "{seconds}");
        header("retry-after", &text);
    }
    if let Some(rule) = rule(denied) {
        header("x-flowgate-rule", rule);
    }
    header("x-flowgate-action", action(denied));
    header("content-type", "application/problem+json");
    let document = serde_json::to_vec(&Problem::from_decision(denied, TOO_MANY_REQUESTS, FORBIDDEN));
    // Texts and numbers can always be written.
    put_bytes(out, RAW_BODY, &document.unwrap_or_default());
}

/// The longest wait of all descriptors, in seconds; `None` if no wait helps one of them.
fn retry_after(answers: &[Decision]) -> Option<u64> {
    let mut longest = None;
    for answer in answers {
        match answer.numbers.verdict {
            Verdict::Deny(Retry::Never) => return None,
            Verdict::Deny(Retry::After(wait)) | Verdict::Allow { delay: wait } if !passes(answer) => {
                longest = longest.max(Some(wait.as_secs_ceil().max(1)));
            }
            _ => {}
        }
    }
    longest
}

fn write_metadata(out: &mut Vec<u8>, decided: Option<&Decision>, answers: &[Decision], granted: u32) {
    let field = |out: &mut Vec<u8>, name: &str, value: &dyn Fn(&mut Vec<u8>)| {
        put_message(out, 1, |out| {
            put_bytes(out, 1, name.as_bytes());
            put_message(out, 2, value);
        });
    };
    field(out, "granted", &|out| put_double(out, 2, f64::from(granted)));
    if let Some(decided) = decided {
        field(out, "action", &|out| put_bytes(out, 3, action(decided).as_bytes()));
        if let Some(rule) = rule(decided) {
            field(out, "rule", &|out| put_bytes(out, 3, rule.as_bytes()));
        }
    }
    if answers.iter().any(|decision| decision.degraded) {
        field(out, "degraded", &|out| put_number(out, 4, 1));
    }
}

fn rule(answer: &Decision) -> Option<&str> {
    answer.rule().map(|rule| rule.name())
}

fn action(answer: &Decision) -> &str {
    match answer {
        _ if passes(answer) => "allow",
        // A turn of `pace` that is too far away is a denial, although the rule itself says wait.
        _ if answer.allowed() => "deny",
        _ => answer.action(),
    }
}

/// True if a request passes. A peek that would have to wait for its turn does not pass: its caller does not wait.
fn passes(answer: &Decision) -> bool {
    answer.allowed() && answer.delay().is_zero()
}
