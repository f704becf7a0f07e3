//! `/gate`: a gateway asks before it lets a request through (nginx `auth_request`, Traefik `forwardAuth`, ..).
//!
//! Rule       The answer is a status: 200, or the status of a denial, which `/gate/403` chooses; headers hold the
//!            numbers, and where the gateway chose the status also the denial that it replaces. Only the gateway
//!            writes the path. Caddy passes the client's query on, so the query is ignored.
//! Rule       A request that can be read in two ways is denied: a client must not choose by which one it is counted.
//! Rule       The fields are those of the [original] request, as far as rules and bans use them.
//! Rule       A request with a turn of `pace` is held until its turn, since a gateway knows only yes and no. Gateways
//!            wait for a short time and then let the request through, so a turn after [`MAX_HOLD`] is denied, as by
//!            the limit's `max_wait`. A turn whose gateway leaves before it comes is given back.

mod described;
mod fields;
mod original;
mod reply;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use flowgate::Span;
use flowgate_engine::config::{self, HeaderFamily};
use flowgate_engine::http::{ClientAddresses, UntrustedPeers};
use flowgate_engine::{Decision, Request};
use hyper::StatusCode;

use super::Call;
use super::error::Error;
use super::head;
use super::reply::Reply;
use crate::service::{Service, Snapshot};
use fields::GateFields;
use original::Original;

/// Gateways stop waiting after about two seconds, and most then let the request through.
const MAX_HOLD: Span = Span::from_secs(1);

/// The settings of the gateway check.
#[derive(Debug)]
pub(crate) struct Gate {
    /// How the addresses of clients are found and counted.
    pub(crate) addresses: ClientAddresses,
    /// True if answers carry `RateLimit-Policy` and `RateLimit`.
    ratelimit: bool,
    /// True if answers carry `X-RateLimit-*`.
    x_ratelimit: bool,
    deny_status: StatusCode,
    /// Untrusted peers that sent `X-Forwarded-*`.
    untrusted_peers: UntrustedPeers,
    missed_uri: AtomicBool,
    /// True once a gateway has sent `?deny=`.
    ignored_query: AtomicBool,
    /// True once a gateway has asked for the console instead of `/gate`.
    asked_console: AtomicBool,
}

impl Gate {
    pub(crate) fn new(gate: &config::Gate) -> Gate {
        Gate {
            addresses: ClientAddresses::from(gate),
            ratelimit: gate.headers.contains(&HeaderFamily::RateLimit),
            x_ratelimit: gate.headers.contains(&HeaderFamily::XRateLimit),
            // The configuration accepts valid statuses only.
            deny_status: StatusCode::from_u16(gate.deny_status).unwrap_or(StatusCode::TOO_MANY_REQUESTS),
            untrusted_peers: UntrustedPeers::default(),
            missed_uri: AtomicBool::new(false),
            ignored_query: AtomicBool::new(false),
            asked_console: AtomicBool::new(false),
        }
    }

    /// Warns of an untrusted peer that sends `X-Forwarded-*`, once for each peer.
    fn warn_of_stranger(&self, peer: IpAddr) {
        if self.untrusted_peers.insert(peer) {
            tracing::warn!(
                %peer,
                "X-Forwarded-* of an untrusted peer is ignored; if this is your gateway, add it to gate.trusted_proxies"
            );
        }
    }

    /// Warns once of a status in the query, which has no effect since clients can write it.
    fn warn_of_ignored_query(&self) {
        if !self.ignored_query.swap(true, Relaxed) {
            tracing::warn!(
                "deny= in the query of /gate has no effect, clients may write it: use the path, such as /gate/403"
            );
        }
    }

    /// Warns once of a gateway that does not send the URI of the original request.
    fn warn_of_missing_uri(&self) {
        if !self.missed_uri.swap(true, Relaxed) {
            tracing::warn!(
                "the gateway sends neither X-Forwarded-Uri nor X-Original-URI: rules see no path and no query"
            );
        }
    }
}

/// Any method on `/gate` and `/gate/{status}`.
pub(super) async fn check(call: &Call<'_>) -> Result<Reply, Error> {
    let gate = &call.shared.gate;
    let status = chosen_status(call.head.path)?;
    let (snapshot, ban_fields) = (call.shared.service.snapshot(), call.shared.service.ban_fields());
    let rules = &snapshot.rules;
    let spelling = rules.path_spelling;
    let original = match Original::from_headers(call, gate, spelling) {
        Ok(original) => original,
        Err(unclear) => return Ok(reply::unclear(&unclear, status)),
    };
    if !original.trusted {
        call.check_gateway()?;
    }
    // A query that the original request has, too, is the client's: Caddy passes it on.
    let own_query = call.head.query.filter(|query| original.query() != Some(query.as_bytes()));
    if own_query.is_some_and(|query| query.contains("deny=")) {
        gate.warn_of_ignored_query();
    }
    let names = rules.field_names().chain(ban_fields.iter().map(|name| &**name));
    let fields = match GateFields::read(&original, call.headers(), spelling, names) {
        Ok(fields) => fields,
        Err(unclear) => return Ok(reply::unclear(&unclear, status)),
    };
    let request = call.named(fields.request());
    let decision = call.answered(call.shared.service.take_within(&snapshot, MAX_HOLD, &request, call.time())).await?;
    if !decision.delay().is_zero() {
        let service = &call.shared.service;
        let mut turn = Turn { service, snapshot: &snapshot, request: &request, decision: &decision, has_come: false };
        tokio::time::sleep(decision.delay().into()).await;
        turn.has_come = true;
    }
    Ok(reply::decided(gate, &decision, status))
}

/// Refuses to show a gateway the console, which it would take for a permission. Only gateways send these headers: a proxy
/// before the console says neither the method nor the target of the original request.
pub(super) fn refuse_console(call: &Call<'_>) -> Result<(), Error> {
    if !["x-forwarded-uri", "x-forwarded-method"].iter().any(|name| head::value(call.headers(), name).is_some()) {
        return Ok(());
    }
    if !call.shared.gate.asked_console.swap(true, Relaxed) {
        tracing::warn!(
            peer = %call.peer,
            "a gateway asks {} instead of /gate, and is answered 404: mend the address in its configuration",
            call.head.path
        );
    }
    Err(Error::NoSuchThing("a gateway asks the console instead of /gate"))
}

/// A turn of `pace` that a request waits for. If the gateway leaves before the turn, the turn is dropped and given
/// back.
struct Turn<'a, 'q> {
    service: &'a Service,
    snapshot: &'a Arc<Snapshot>,
    request: &'a Request<'q>,
    decision: &'a Decision,
    has_come: bool,
}

impl Drop for Turn<'_, '_> {
    fn drop(&mut self) {
        if !self.has_come {
            self.service.give_back(self.snapshot, self.request, self.decision);
        }
    }
}

/// The status that `/gate/403` asks for.
fn chosen_status(path: &str) -> Result<Option<StatusCode>, Error> {
    let Some(text) = path.strip_prefix("/gate/") else { return Ok(None) };
    let status = text.parse().ok().filter(|status| (400..=499).contains(status));
    match status.and_then(|status| StatusCode::from_u16(status).ok()) {
        Some(status) => Ok(Some(status)),
        None => Err(Error::invalid("status", "expected /gate/ and a status from 400 to 499")),
    }
}
