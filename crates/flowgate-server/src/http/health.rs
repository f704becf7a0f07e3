//! `/healthz`: does the process answer; `/readyz`: should it get requests.

use hyper::StatusCode;

use super::Call;
use super::reply::{self, Reply};
use crate::readiness::Ready;

pub(super) fn ready(call: &Call<'_>) -> Reply {
    let service = &call.shared.service;
    let mut notes = String::new();
    if let Some(pause) = service.paused() {
        let left = pause.until.since(service.now()).as_millis_ceil().div_ceil(1000);
        notes = format!("; rules paused for another {left} seconds");
    }
    // The answer leaves out the file's name: this endpoint is open to everybody.
    if service.metrics().reloads.is_failing() {
        notes.push_str("; the configuration on disk has mistakes, the one before it is in force");
    }
    match call.shared.readiness.get() {
        Ready::Yes => reply::text(format!("ready{notes}")),
        Ready::Degraded(missing) => reply::text(format!("degraded: {missing}{notes}")),
        Ready::Draining => reply::text("draining").with_status(StatusCode::SERVICE_UNAVAILABLE),
    }
}
