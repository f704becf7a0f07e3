//! `DEL`, `EXISTS`, `TTL`, `PTTL` on the keys of `CL.THROTTLE` and `FG.LIMIT`, and `DBSIZE`.
//!
//! A key exists while it differs from one that was never used.

use flowgate::Span;

use super::Call;
use crate::resp::error::Error;

/// What `TTL` says of a key that does not exist.
const NO_KEY: i64 = -2;

pub(super) fn del(call: &mut Call<'_>) -> Result<(), Error> {
    let service = &call.session.shared.service;
    let deleted = call.command.args().filter(|key| service.key_reset_at(key, call.now)).count();
    call.reply().integer(deleted as i64);
    Ok(())
}

/// A key that is named twice counts twice, as in Redis.
pub(super) fn exists(call: &mut Call<'_>) -> Result<(), Error> {
    let existing = call.command.args().filter(|key| lifetime(call, key).is_some()).count();
    call.reply().integer(existing as i64);
    Ok(())
}

/// Seconds, rounded up: whoever waits that long finds the key gone.
pub(super) fn ttl(call: &mut Call<'_>) -> Result<(), Error> {
    let seconds = own_lifetime(call).map_or(NO_KEY, |left| left.as_secs_ceil() as i64);
    call.reply().integer(seconds);
    Ok(())
}

/// Milliseconds, rounded up.
pub(super) fn pttl(call: &mut Call<'_>) -> Result<(), Error> {
    let millis = own_lifetime(call).map_or(NO_KEY, |left| left.as_millis_ceil() as i64);
    call.reply().integer(millis);
    Ok(())
}

/// The number of counters, those of rules included.
pub(super) fn dbsize(call: &mut Call<'_>) -> Result<(), Error> {
    let counters = call.session.shared.service.stats().counters;
    call.reply().integer(counters as i64);
    Ok(())
}

fn own_lifetime(call: &Call<'_>) -> Option<Span> {
    lifetime(call, call.command.arg(0).unwrap_or_default())
}

fn lifetime(call: &Call<'_>, key: &[u8]) -> Option<Span> {
    call.session.shared.service.key_lifetime_at(key, call.now)
}
