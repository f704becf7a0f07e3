//! `/healthz`: is the process there; `/readyz`: should it be sent work.

use hyper::StatusCode;

use super::Call;
use super::reply::{self, Reply};
use crate::readiness::Ready;

pub(super) fn alive() -> Reply {
    reply::text("ok")
}

pub(super) fn ready(call: &Call<'_>) -> Reply {
    let service = &call.shared.service;
    let paused = service.paused().map_or_else(String::new, |pause| {
        let left = pause.until.since(service.now()).as_millis_ceil().div_ceil(1000);
        format!("; rules paused for another {left} seconds")
    });
    match call.shared.readiness.get() {
        Ready::Yes => reply::text(format!("ready{paused}")),
        Ready::Degraded(missing) => reply::text(format!("degraded: {missing}{paused}")),
        Ready::Draining => {
            let mut reply = reply::text("draining");
            *reply.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            reply
        }
    }
}
