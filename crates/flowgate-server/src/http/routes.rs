//! The routes: the endpoint of each path and method, and the right that it needs.
//!
//! To add a route: a variant of [`Endpoint`], its row in [`ROUTES`], its arm in [`Endpoint::answer`], and its
//! description in `openapi.json`, which a test checks. Fronts of other systems have tables of their own.

use hyper::Method;

use super::auth::Access;
use super::body::Body;
use super::error::Error;
use super::reply::{self, Reply};
use super::{
    Call, bans, console, decide, explain, find_bans, gate, health, limit, pause, policy, rules, sample, session, stats,
    stats_history, subjects,
};
use crate::fronts;
use crate::metrics::CONTENT_TYPE;
use crate::service::Operation;

/// The document of `/openapi.json`.
const DESCRIPTION: &str = include_str!("openapi.json");

/// All endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Decide(Operation),
    Gate,
    Batch,
    Limit,
    Explain,
    ListBans,
    Ban,
    Unban,
    FindBans,
    ReadPause,
    Pause,
    Resume,
    ReadRules,
    WriteRules,
    ValidateRules,
    RulesHistory,
    RulesVersion,
    RollBackRules,
    ReadSample,
    StartSample,
    ForgetSample,
    TryRules,
    LogIn,
    Alive,
    Ready,
    Metrics,
    Stats,
    StatsHistory,
    Policy,
    Subjects,
    Denials,
    Description,
}

/// A path and the endpoints of its methods.
#[derive(Debug)]
pub(crate) struct Route {
    /// A path that ends in `{..}` matches any last segment.
    path: &'static str,
    /// The bytes of the path before `{..}`, if it ends so.
    prefix_bytes: Option<usize>,
    access: Access,
    methods: Methods,
}

#[derive(Debug)]
enum Methods {
    Any(Endpoint),
    Get(Endpoint),
    Post(Endpoint),
    Delete(Endpoint),
    GetPost(Endpoint, Endpoint),
    GetPut(Endpoint, Endpoint),
    GetPostDelete(Endpoint, Endpoint, Endpoint),
}

use Methods::{Any, Delete, Get, GetPost, GetPostDelete, GetPut, Post};

/// All routes, the most frequent first.
pub(crate) const ROUTES: &[Route] = &[
    // The gate checks its callers itself.
    route("/gate", Access::Open, Any(Endpoint::Gate)),
    // The same, with the status of denials.
    route("/gate/{status}", Access::Open, Any(Endpoint::Gate)),
    route("/v1/take", Access::Decide, Post(Endpoint::Decide(Operation::Take))),
    route("/v1/limit", Access::Decide, Post(Endpoint::Limit)),
    route("/v1/peek", Access::Peek, Post(Endpoint::Decide(Operation::Peek))),
    route("/v1/record", Access::Decide, Post(Endpoint::Decide(Operation::Record))),
    route("/v1/refund", Access::Decide, Post(Endpoint::Decide(Operation::Refund))),
    route("/v1/reset", Access::Decide, Post(Endpoint::Decide(Operation::Reset))),
    route("/v1/batch", Access::Decide, Post(Endpoint::Batch)),
    route("/v1/explain", Access::Peek, Post(Endpoint::Explain)),
    route("/v1/bans", Access::Admin, GetPost(Endpoint::ListBans, Endpoint::Ban)),
    route("/v1/bans/find", Access::Read, Post(Endpoint::FindBans)),
    route("/v1/bans/{id}", Access::Admin, Delete(Endpoint::Unban)),
    route("/v1/pause", Access::Admin, GetPostDelete(Endpoint::ReadPause, Endpoint::Pause, Endpoint::Resume)),
    route("/v1/rules", Access::Admin, GetPut(Endpoint::ReadRules, Endpoint::WriteRules)),
    route("/v1/rules/validate", Access::Admin, Post(Endpoint::ValidateRules)),
    route("/v1/rules/history", Access::Admin, Get(Endpoint::RulesHistory)),
    route("/v1/rules/history/{version}", Access::Read, Get(Endpoint::RulesVersion)),
    route("/v1/rules/rollback", Access::Admin, Post(Endpoint::RollBackRules)),
    route("/v1/rules/try", Access::Admin, Post(Endpoint::TryRules)),
    route(
        "/v1/sample",
        Access::Admin,
        GetPostDelete(Endpoint::ReadSample, Endpoint::StartSample, Endpoint::ForgetSample),
    ),
    route("/v1/session", Access::Login, Post(Endpoint::LogIn)),
    route("/healthz", Access::Open, Get(Endpoint::Alive)),
    route("/readyz", Access::Open, Get(Endpoint::Ready)),
    route("/openapi.json", Access::Open, Get(Endpoint::Description)),
    route("/v1/stats", Access::Admin, Get(Endpoint::Stats)),
    route("/v1/stats/history", Access::Read, Get(Endpoint::StatsHistory)),
    route("/v1/policy", Access::Read, Get(Endpoint::Policy)),
    route("/v1/subjects/{rule}", Access::Read, Get(Endpoint::Subjects)),
    route("/v1/denials", Access::Read, Get(Endpoint::Denials)),
    route("/metrics", Access::Open, Get(Endpoint::Metrics)),
];

impl Endpoint {
    /// Answers a request that was let in.
    async fn answer(self, call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
        match self {
            Endpoint::Decide(operation) => decide::one(call, body, operation).await,
            Endpoint::Gate => gate::check(call).await,
            Endpoint::Batch => decide::batch(call, body).await,
            Endpoint::Limit => limit::limit(call, body).await,
            Endpoint::Explain => explain::explain(call, body).await,
            Endpoint::ListBans => bans::list(call).await,
            Endpoint::Ban => bans::impose(call, body).await,
            Endpoint::FindBans => find_bans::find(call, body).await,
            Endpoint::Unban => bans::lift(call).await,
            Endpoint::ReadPause => Ok(pause::read(call)),
            Endpoint::Pause => pause::begin(call, body).await,
            Endpoint::Resume => Ok(pause::end(call)),
            Endpoint::ReadRules => rules::read(call).await,
            Endpoint::WriteRules => rules::write(call, body).await,
            Endpoint::ValidateRules => rules::validate(call, body).await,
            Endpoint::RulesHistory => rules::history(call).await,
            Endpoint::RulesVersion => rules::version(call).await,
            Endpoint::RollBackRules => rules::roll_back(call, body).await,
            Endpoint::ReadSample => Ok(sample::read(call)),
            Endpoint::StartSample => sample::start(call, body).await,
            Endpoint::ForgetSample => Ok(sample::forget(call)),
            Endpoint::TryRules => sample::try_rules(call, body).await,
            Endpoint::LogIn => session::log_in(call, body).await,
            Endpoint::Alive => Ok(reply::text("ok")),
            Endpoint::Ready => Ok(health::ready(call)),
            Endpoint::Description => Ok(reply::json_text(DESCRIPTION)),
            Endpoint::Stats => stats::stats(call).await,
            Endpoint::StatsHistory => stats_history::history(call).await,
            Endpoint::Policy => policy::policy(call).await,
            Endpoint::Subjects => subjects::of_rule(call),
            Endpoint::Denials => subjects::denials(call),
            Endpoint::Metrics => Ok(reply::with_type(call.shared.service.prometheus().await, CONTENT_TYPE)),
        }
    }
}

/// Finds the endpoint, lets the request in, answers it.
pub(crate) async fn answer(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let path = call.head.path;
    let Some(route) = ROUTES.iter().find(|route| route.leads_from(path)) else {
        return match console::answer(call).await {
            Some(answer) => answer,
            None => fronts::answer(call, body).await,
        };
    };
    // Checked before the method: a caller without the right learns nothing about the endpoint.
    call.check_access(route.access_for(call.head.method))?;
    let endpoint = route.methods.endpoint(call.head.method).ok_or(Error::Method(route.methods.allowed()))?;
    endpoint.answer(call, body).await
}

const fn route(path: &'static str, access: Access, methods: Methods) -> Route {
    let (bytes, mut at) = (path.as_bytes(), 0);
    while at < bytes.len() && bytes[at] != b'{' {
        at += 1;
    }
    let prefix_bytes = if at < bytes.len() { Some(at) } else { None };
    Route { path, prefix_bytes, access, methods }
}

impl Route {
    /// The right that a method needs: reading needs less than a change.
    fn access_for(&self, method: &Method) -> Access {
        match (self.access, method) {
            (Access::Admin, &Method::GET | &Method::HEAD) => Access::Read,
            (access, _) => access,
        }
    }

    fn leads_from(&self, path: &str) -> bool {
        match self.prefix_bytes {
            None => path == self.path,
            Some(bytes) => {
                let last = path.strip_prefix(&self.path[..bytes]);
                last.is_some_and(|last| !last.is_empty() && !last.contains('/'))
            }
        }
    }
}

impl Methods {
    /// `HEAD` is allowed wherever `GET` is; the connection leaves the body out.
    fn endpoint(&self, method: &Method) -> Option<Endpoint> {
        match (self, method) {
            (Any(endpoint), _)
            | (
                Get(endpoint) | GetPost(endpoint, _) | GetPut(endpoint, _) | GetPostDelete(endpoint, ..),
                &Method::GET | &Method::HEAD,
            )
            | (Post(endpoint) | GetPost(_, endpoint) | GetPostDelete(_, endpoint, _), &Method::POST)
            | (GetPut(_, endpoint), &Method::PUT)
            | (Delete(endpoint) | GetPostDelete(.., endpoint), &Method::DELETE) => Some(*endpoint),
            _ => None,
        }
    }

    fn allowed(&self) -> &'static str {
        match self {
            // Unused: every method has an endpoint.
            Any(_) => "",
            Get(_) => "GET, HEAD",
            Post(_) => "POST",
            Delete(_) => "DELETE",
            GetPost(..) => "GET, HEAD, POST",
            GetPut(..) => "GET, HEAD, PUT",
            GetPostDelete(..) => "GET, HEAD, POST, DELETE",
        }
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
        for Route { path, methods, .. } in ROUTES {
            let allowed = match methods {
                Any(_) => "GET, POST, PUT, DELETE, PATCH, OPTIONS, HEAD, TRACE",
                // HEAD is allowed wherever GET is; openapi.json does not list it.
                methods => methods.allowed(),
            };
            let methods = allowed.split(", ").filter(|method| matches!(methods, Any(_)) || *method != "HEAD");
            routes.extend(methods.map(|method| format!("{method} {path}")));
        }
        for (methods, path) in fronts::described_routes() {
            let methods = methods.split(", ").filter(|method| *method != "HEAD");
            routes.extend(methods.map(|method| format!("{method} {path}")));
        }
        assert_eq!(described, routes);
    }
}
