//! `DEL`, `EXISTS`, `TTL`, `PTTL` on the keys of `CL.THROTTLE` and `FG.LIMIT`, and `DBSIZE`.
//!
//! A key exists while it differs from one that was never used.

use flowgate::Span;

use super::Call;
use crate::resp::error::Error;
use crate::service::{Answer, StoreAway};

/// The reply of `TTL` for a key that does not exist.
const NO_KEY: i64 = -2;

pub(super) fn del(call: &mut Call<'_>) -> Result<(), Error> {
    count(call, |call, key| call.session.shared.service.key_reset(call.session.key(key), call.at))
}

/// The number of keys that exist. A key that is given twice counts twice, as in Redis.
pub(super) fn exists(call: &mut Call<'_>) -> Result<(), Error> {
    count(call, |call, key| lifetime(call, key).map(|left| left.map(|left| left.is_some())))
}

/// The lifetime in seconds, rounded up: after that time the key is gone.
pub(super) fn ttl(call: &mut Call<'_>) -> Result<(), Error> {
    own_lifetime(call, |left| left.as_secs_ceil())
}

/// The lifetime in milliseconds, rounded up.
pub(super) fn pttl(call: &mut Call<'_>) -> Result<(), Error> {
    own_lifetime(call, |left| left.as_millis_ceil())
}

/// The number of counters in the client's database; the first one has those of rules, too.
pub(super) fn dbsize(call: &mut Call<'_>) -> Result<(), Error> {
    call.takes(super::report::REPORT_WORK);
    let counters = call.session.shared.service.counters_in(call.session.database);
    call.reply().integer(counters as i64);
    Ok(())
}

/// Replies with the number of keys for which `holds` is true.
fn count(
    call: &mut Call<'_>,
    holds: impl Fn(&Call<'_>, &[u8]) -> Answer<Result<bool, StoreAway>>,
) -> Result<(), Error> {
    call.takes(call.command.count());
    let sum = |sum: Result<i64, StoreAway>, holds: Result<bool, StoreAway>| Ok(sum? + i64::from(holds?));
    let answers = call.command.args().map(|key| holds(call, key));
    let number = Answer::fold(answers, Ok(0), sum);
    call.reply_with(number, |number, reply| {
        reply.integer(number?);
        Ok(())
    })
}

fn own_lifetime(call: &mut Call<'_>, unit: fn(Span) -> u64) -> Result<(), Error> {
    let left = lifetime(call, call.command.arg(0).unwrap_or_default());
    call.reply_with(left, move |left, reply| {
        reply.integer(left?.map_or(NO_KEY, |left| unit(left) as i64));
        Ok(())
    })
}

fn lifetime(call: &Call<'_>, key: &[u8]) -> Answer<Result<Option<Span>, StoreAway>> {
    call.session.shared.service.key_lifetime(call.session.key(key), call.at)
}
