//! `/healthz`: is the process there; `/readyz`: should it be sent work.

use hyper::StatusCode;

use super::reply::{self, Reply};
use crate::readiness::{Readiness, Ready};

pub(super) fn alive() -> Reply {
    reply::text("ok")
}

pub(super) fn ready(readiness: &Readiness) -> Reply {
    match readiness.get() {
        Ready::Yes => reply::text("ready"),
        Ready::Degraded(missing) => reply::text(format!("degraded: {missing}")),
        Ready::Draining => {
            let mut reply = reply::text("draining");
            *reply.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            reply
        }
    }
}
