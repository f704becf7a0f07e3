//! `/v1/pause`: for a while no rule denies.

use flowgate::Span;
use flowgate_api::{Pause, PauseOrder};
use flowgate_engine::config::parse_duration;

use super::body::Body;
use super::error::Error;
use super::reply::{self, Reply};
use super::{Call, body};
use crate::service::{self, MAX_PAUSE};

/// `{"paused":true,"since":1700000000,"until":1700000600}`.
pub(super) fn read(call: &Call<'_>) -> Reply {
    told(call.shared.service.paused())
}

/// `{"for":"10m"}` -> the pause.
pub(super) async fn begin(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let PauseOrder { length } = body::parse(&body)?;
    let length = match parse_duration(&length.0).map(Span::from) {
        Some(length) if !length.is_zero() && length <= MAX_PAUSE => length,
        _ => return Err(Error::invalid("for", "expected a length such as \"10m\" or \"1h\", at most 24h")),
    };
    let (service, author) = (call.shared.service.clone(), call.author());
    // Copying many rules takes a while, so it does not run on the event loop.
    let pause = tokio::task::spawn_blocking(move || service.pause(length, &author)).await;
    // The work does not panic, and its runtime lives as long as this connection.
    Ok(told(Some(pause.map_err(|_| Error::Overloaded)?)))
}

/// Ends the pause, if there is one.
pub(super) fn end(call: &Call<'_>) -> Reply {
    call.shared.service.resume(&call.author());
    told(None)
}

fn told(pause: Option<service::Pause>) -> Reply {
    let (since, until) = (pause.map(|pause| pause.since.into()), pause.map(|pause| pause.until.into()));
    reply::json(&Pause { paused: pause.is_some(), since, until })
}
