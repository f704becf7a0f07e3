//! The routes: what answers each path and method, and the right that it needs.
//!
//! To add a route: its row, and its description in `openapi.json`, which a test checks. Fronts of other systems have
//! tables of their own.

use hyper::Method;

use super::auth::Access;
use super::body::Body;
use super::error::Error;
use super::reply::{self, Reply};
use super::route_table::{self, routes};
use super::{
    Call, bans, console, decide, explain, find_bans, gate, health, limit, pause, policy, rules, sample, session, stats,
    stats_history, subjects,
};
use crate::fronts;
use crate::metrics::CONTENT_TYPE;
use crate::service::Operation;

/// The document of `/openapi.json`.
const DESCRIPTION: &str = include_str!("openapi.json");

// The most frequent routes come first.
routes! { call, body:
    // The gate checks its callers itself.
    "/gate" Open { ANY => gate::check(call).await }
    // As `/gate`, with the status that denials get.
    "/gate/{status}" Open { ANY => gate::check(call).await }
    "/v1/take" Decide { POST => decide::one(call, body, Operation::Take).await }
    "/v1/limit" Decide { POST => limit::limit(call, body).await }
    "/v1/peek" Peek { POST => decide::one(call, body, Operation::Peek).await }
    "/v1/record" Decide { POST => decide::one(call, body, Operation::Record).await }
    "/v1/refund" Decide { POST => decide::one(call, body, Operation::Refund).await }
    "/v1/reset" Decide { POST => decide::one(call, body, Operation::Reset).await }
    "/v1/batch" Decide { POST => decide::batch(call, body).await }
    "/v1/explain" Peek { POST => explain::explain(call, body).await }
    "/v1/bans" Admin { GET => bans::list(call).await, POST => bans::impose(call, body).await }
    "/v1/bans/find" Read { POST => find_bans::find(call, body).await }
    "/v1/bans/{id}" Admin { DELETE => bans::lift(call).await }
    "/v1/pause" Admin {
        GET => Ok(pause::read(call)),
        POST => pause::begin(call, body).await,
        DELETE => Ok(pause::end(call))
    }
    "/v1/rules" Admin { GET => rules::read(call).await, PUT => rules::write(call, body).await }
    "/v1/rules/validate" Admin { POST => rules::validate(call, body).await }
    "/v1/rules/history" Admin { GET => rules::history(call).await }
    "/v1/rules/history/{version}" Read { GET => rules::version(call).await }
    "/v1/rules/rollback" Admin { POST => rules::roll_back(call, body).await }
    "/v1/rules/try" Admin { POST => sample::try_rules(call, body).await }
    "/v1/sample" Admin {
        GET => Ok(sample::read(call)),
        POST => sample::start(call, body).await,
        DELETE => Ok(sample::forget(call))
    }
    "/v1/session" Login { POST => session::log_in(call, body).await }
    "/healthz" Open { GET => Ok(reply::text("ok")) }
    "/readyz" Open { GET => Ok(health::ready(call)) }
    "/openapi.json" Open { GET => Ok(reply::json_text(DESCRIPTION)) }
    "/v1/stats" Admin { GET => stats::stats(call).await }
    "/v1/stats/history" Read { GET => stats_history::history(call).await }
    "/v1/policy" Read { GET => policy::policy(call).await }
    "/v1/subjects/{rule}" Read { GET => subjects::of_rule(call) }
    "/v1/denials" Read { GET => subjects::denials(call) }
    "/metrics" Open { GET => Ok(reply::with_type(call.shared.service.prometheus(), CONTENT_TYPE)) }
    _ => match console::answer(call).await {
        Some(answer) => answer,
        None => fronts::answer(call, body).await,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let document: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let mut described = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            let methods = item.as_object().unwrap().keys().filter(|key| *key != "parameters");
            described.extend(methods.map(|method| format!("{} {path}", method.to_ascii_uppercase())));
        }
        let mut routes = BTreeSet::new();
        for (methods, path) in ROUTES.iter().chain(fronts::DESCRIBED_ROUTES) {
            // HEAD is allowed wherever GET is; openapi.json lists it where every method is.
            let is_listed = |method: &&str| *method != "HEAD" || methods.ends_with("TRACE");
            routes.extend(methods.split(", ").filter(is_listed).map(|method| format!("{method} {path}")));
        }
        assert_eq!(described, routes);
    }
}
