//! `POST /v1/session`: trades a token for a key that ends by itself.
//!
//! Rule       The first ten wrong tokens of an address within a minute are answered with 401. Then every token of that
//!            address is answered with 429 until the minute is over, before it is compared: guessing gets no further.

use flowgate_api::{Login, Session};

use super::body::Body;
use super::error::Error;
use super::reply::{self, Reply};
use super::{Call, body};

/// `{"token":".."}` -> `{"key":"fgs1...","until":1763312400,"rights":"admin","now":1763283600}`.
pub(super) async fn log_in(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let Login { token } = body::parse(&body)?;
    let (shared, service) = (call.shared, &call.shared.service);
    let (source, at) = (call.source(), service.monotonic());
    if let Some(wait) = shared.wrong_tokens.wait(source, at) {
        return Err(Error::TooManyLogins(wait));
    }
    let now = service.now();
    let until = (now + shared.session).as_nanos() / 1_000_000_000;
    let Some((key, rights)) = shared.tokens.log_in(&token.0, until)? else {
        shared.wrong_tokens.count(source, at);
        service.metrics().http.unauthorized.add(1);
        return Err(Error::WrongToken);
    };
    Ok(reply::json(&Session { key, until, rights, now: now.into() }))
}
