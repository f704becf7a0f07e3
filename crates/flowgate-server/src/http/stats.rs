//! `GET /v1/stats`: how the server is doing. It names subjects, so only administrators may read it.

use flowgate_api::{BanCounts, Connections, Reloads, Stats, Store};

use super::error::Error;
use super::reply::{self, Reply};
use super::{Call, Shared, policy};
use crate::readiness::Ready;
use crate::service::Service;

pub(super) async fn stats(call: &Call<'_>) -> Result<Reply, Error> {
    let shared = call.shared;
    let file_etag = match shared.rules.get() {
        Some(file) => file.disk_etag(shared.service.now()).await,
        None => None,
    };
    let service = &shared.service;
    let ready = shared.readiness.get();
    let (state, missing) = match &ready {
        Ready::Yes => ("ready", None),
        Ready::Degraded(missing) => ("degraded", Some(missing.as_str())),
        Ready::Draining => ("draining", None),
    };
    service.record_history();
    let since = service.recent().history.lock().store_since;
    let reloads = shared.rules.get().map(|file| file.reload_status());
    Ok(reply::json(&Stats {
        now: service.now().into(),
        node: (&*shared.node).into(),
        state: state.into(),
        missing: missing.map(Into::into),
        since: since.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started: service.started.into(),
        uptime: service.now().since(service.started).into(),
        rules: service.rules().rules.len() as u64,
        paused_until: service.paused().map(|pause| pause.until.into()),
        policy_etag: policy::etag(service).into(),
        file_etag: file_etag.map(Into::into),
        file: shared.rules.get().map(|file| file.name().into()),
        broken: policy::broken(shared),
        store: store(shared),
        bans: BanCounts { hand: service.number_of_bans() as u64, rules: service.number_of_rule_bans() as u64 },
        reloads: reloads.as_ref().map(|status| Reloads { succeeded: status.succeeded, failed: status.failed }),
        restart_needed: reloads.iter().flat_map(|status| &status.restart_needed).map(|&name| name.into()).collect(),
        fronts: service.snapshot().fronts.names().map(Into::into).collect(),
        connections: connections(service, shared.max_connections),
        settings: shared.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        memory: service.stats().into(),
        hottest: service.hottest(),
        most_denied: service.most_denied(),
    }))
}

fn store(shared: &Shared) -> Store<'_> {
    let (Some(redis), Some(settings)) = (shared.service.shared.as_ref(), &shared.redis) else {
        return Store::Memory { durable: shared.service.durable.is_some() };
    };
    let stats = redis.stats();
    Store::Redis {
        servers: redis.redis.servers.standings(),
        on_failure: settings.on_failure.as_str().into(),
        local_share: settings.local_share.to_string().into(),
        unanswered: stats.unanswered,
        outages: stats.outages,
        degraded: stats.degraded,
        unreadable: stats.unreadable,
        deny_cache_hits: stats.deny_cache_hits,
    }
}

fn connections(service: &Service, max: usize) -> Connections {
    let metrics = service.metrics();
    let (http, resp, grpc) = (&metrics.http, &metrics.resp.listener, &metrics.grpc.listener);
    Connections {
        http: http.open.get(),
        resp: resp.open.get(),
        grpc: grpc.open.get(),
        max: max as u64,
        refused: http.refused.get() + resp.refused.get() + grpc.refused.get(),
        unauthorized: http.unauthorized.get() + resp.unauthorized.get() + grpc.unauthorized.get(),
    }
}
