//! All counts as one text for Prometheus.

use std::sync::atomic::Ordering::Relaxed;

use flowgate_engine::{Rule, RuleCounts, RuleOutcome};
use flowgate_journal::JournalStatus;

use super::exposition::{Exposition, Family, seconds};
use super::{Counter, ListenerCounters, Metrics, OPERATIONS, process};
use crate::grpc::Code;
use crate::redis::SharedStats;
use crate::service::Service;

/// The number of rules, from the top, with a label of their own; the others share one label.
pub(crate) const MAX_RULES: usize = 1000;

// Names that no rule can have, for decisions without a rule of their own.
pub(crate) const OTHER_RULES: &str = "(other)";
pub(crate) const NO_RULE: &str = "(none)";
pub(crate) const BAN_BY_HAND: &str = "(ban)";
pub(crate) const KEY_LIMITS: &str = "(key)";

/// The text for Prometheus.
pub(crate) fn render(service: &Service) -> String {
    let metrics = service.metrics();
    let mut out = Exposition::default();
    out.gauge("flowgate_build_info", "1, with the version as a label.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    decisions(&mut out, service, metrics);
    service.snapshot().fronts.render(&mut out);
    bans(&mut out, service);
    latencies(&mut out, metrics);
    store(&mut out, service, metrics);
    journal(&mut out, service);
    clock(&mut out, service);
    connections(&mut out, metrics);
    reloads(&mut out, service, metrics);
    service.recent().render(&mut out, service.now());
    process::write(&mut out);
    out.text
}

fn decisions(out: &mut Exposition, service: &Service, metrics: &Metrics) {
    let rules = service.rules();
    let named: Vec<(&Rule, RuleCounts)> =
        rules.rules.iter().take(MAX_RULES).map(|rule| (&**rule, rule.counters.read())).collect();
    let mut others = RuleCounts::default();
    rules.rules.iter().skip(MAX_RULES).for_each(|rule| others += rule.counters.read());

    let help = "Requests that were decided, by the rule that decided and the action: allow, the rule's own, or ban.";
    let mut family = out.counter("flowgate_decisions_total", help);
    let mut sample = |rule: &str, action: &str, count| {
        family.sample(&[("rule", rule), ("action", action)], count);
    };
    for (rule, counts) in &named {
        let (name, action) = (rule.name(), rule.action.as_str());
        let (denied, banned) = (counts.get(RuleOutcome::Denied), counts.get(RuleOutcome::Banned));
        if action != "allow" {
            sample(name, action, if action == "ban" { denied + banned } else { denied });
        }
        sample(name, "allow", counts.get(RuleOutcome::Allowed));
        if banned > 0 && action != "ban" {
            sample(name, "ban", banned);
        }
    }
    if rules.rules.len() > MAX_RULES {
        sample(OTHER_RULES, "allow", others.get(RuleOutcome::Allowed));
        sample(OTHER_RULES, "deny", others.get(RuleOutcome::Denied));
        sample(OTHER_RULES, "ban", others.get(RuleOutcome::Banned));
    }
    sample(NO_RULE, "allow", metrics.unruled.read().get(RuleOutcome::Allowed));
    sample(BAN_BY_HAND, "ban", metrics.banned.read().get(RuleOutcome::Banned));
    let keys = metrics.keys.read();
    sample(KEY_LIMITS, "allow", keys.get(RuleOutcome::Allowed));
    sample(KEY_LIMITS, "deny", keys.get(RuleOutcome::Denied));

    let mut by_rule = |name, help, what| {
        let mut family = out.counter(name, help);
        for (rule, counts) in named.iter().filter(|(_, counts)| counts.get(what) > 0) {
            family.sample(&[("rule", rule.name())], counts.get(what));
        }
        if others.get(what) > 0 {
            family.sample(&[("rule", OTHER_RULES)], others.get(what));
        }
    };
    let help = "Requests that a shadow rule would have denied.";
    by_rule("flowgate_shadow_denials_total", help, RuleOutcome::Shadowed);
    by_rule("flowgate_bans_started_total", "Bans that a rule has started.", RuleOutcome::BanStarted);

    let mut family = out.counter("flowgate_operations_total", "What else was asked of counters.");
    for (operation, counter) in OPERATIONS.iter().zip(&metrics.operations) {
        family.sample(&[("operation", operation.name())], counter.get());
    }
    out.counter(
        "flowgate_degraded_decisions_total",
        "Decisions that were a stopgap, as the store was away or its disk was behind.",
    )
    .sample(&[], metrics.degraded.get());
    out.gauge("flowgate_rules", "Rules in force.").sample(&[], rules.rules.len());
    let help = "1 while the rules are paused and none of them denies.";
    out.gauge("flowgate_rules_paused", help).sample(&[], u8::from(service.paused().is_some()));
}

fn bans(out: &mut Exposition, service: &Service) {
    let mut family = out.gauge("flowgate_bans", "Bans in force, by who imposed them; of those by rules at most 10000.");
    family.sample(&[("origin", "hand")], service.number_of_bans());
    family.sample(&[("origin", "rule")], service.number_of_rule_bans());
}

fn latencies(out: &mut Exposition, metrics: &Metrics) {
    let help = "From a request that has arrived to its answer that is ready to be sent; a sample of all requests.";
    let mut family = out.histogram("flowgate_request_duration_seconds", help);
    for (protocol, histogram) in
        [("http", &metrics.http_latency), ("resp", &metrics.resp_latency), ("grpc", &metrics.grpc_latency)]
    {
        let (counts, sum) = histogram.read();
        family.distribution(&[("protocol", protocol)], &counts, seconds(sum));
    }
}

/// The metrics of the journal; without values where counters end with the process.
fn journal(out: &mut Exposition, service: &Service) {
    let durable = service.durable.as_ref();
    let status = durable.map(|durable| durable.status());
    let help = "Seconds since the oldest change that may not be on the disk.";
    let lag = durable.map(|durable| seconds(durable.lag().as_nanos()));
    out.gauge("flowgate_journal_lag_seconds", help).sample_if(lag);
    let help = "1 while the journal cannot be written, and counters are in memory alone.";
    out.gauge("flowgate_journal_failing", help).sample_if(status.map(|status| u8::from(status.is_failing())));
    let failures = status.map(JournalStatus::failures);
    out.counter("flowgate_journal_failures_total", "Writes and syncs that failed.").sample_if(failures);
    let written = status.map(JournalStatus::written_bytes);
    out.counter("flowgate_journal_written_bytes_total", "Bytes written.").sample_if(written);
    out.counter("flowgate_journal_syncs_total", "Syncs of the disk.").sample_if(status.map(JournalStatus::syncs));
    out.gauge("flowgate_journal_file_bytes", "Bytes of the file in use.")
        .sample_if(status.map(JournalStatus::file_bytes));
    let generation = status.map(JournalStatus::generation);
    out.gauge("flowgate_journal_generation", "The generation that is written.").sample_if(generation);
    let help = "How long the journal held the lock of a shard at a time, while it looked for changes.";
    let mut family = out.histogram("flowgate_journal_lock_seconds", help);
    if let Some(durable) = durable {
        let (counts, sum) = durable.lock_times.read();
        family.distribution(&[], &counts, seconds(sum));
    }
    let help = "Stretches of damage that the last start found.";
    out.gauge("flowgate_journal_damaged", help).sample_if(durable.map(|durable| durable.read.damaged));
}

fn store(out: &mut Exposition, service: &Service, metrics: &Metrics) {
    let memory = service.stats();
    out.gauge("flowgate_memory_keys", "Counters in memory.").sample(&[], memory.counters);
    out.gauge("flowgate_memory_bytes", "Bytes that they take.").sample(&[], memory.bytes);
    out.gauge("flowgate_memory_max_bytes", "The most that they may take.").sample(&[], memory.max_bytes);
    let help = "Counters that were forgotten early, as memory was full.";
    out.counter("flowgate_memory_evicted_total", help).sample(&[], memory.evicted);
    let help = "Those of them of which half the limit or more was used, or bans: somebody's limit was reset.";
    out.counter("flowgate_memory_evicted_in_use_total", help).sample(&[], memory.evicted_in_use);
    let help = "Requests that found no room for a counter, as memory was full.";
    out.counter("flowgate_memory_refused_total", help).sample(&[], memory.refused);
    let help = "Denials that did not count towards a ban, as memory was full.";
    out.counter("flowgate_memory_bans_refused_total", help).sample(&[], memory.bans_refused);
    let help = "Sliding logs that gave up their precision in time, as memory was full.";
    out.counter("flowgate_memory_coarsened_total", help).sample(&[], memory.coarsened);

    shared_store(out, service.shared_stats().unwrap_or_default(), metrics);
}

/// The metrics of the shared store; all zero without one.
fn shared_store(out: &mut Exposition, shared: SharedStats, metrics: &Metrics) {
    let help = "1 while the shared store, or a part of it, is away and answers are stopgaps.";
    out.gauge("flowgate_store_degraded", help).sample(&[], u8::from(shared.away > 0));
    let help = "Requests to the shared store that had no answer in time, and servers that were given up.";
    out.counter("flowgate_store_errors_total", help)
        .sample(&[("kind", "unanswered")], shared.unanswered)
        .sample(&[("kind", "outage")], shared.outages);
    let help = "Values in the shared store that could not be read and counted as absent.";
    out.counter("flowgate_store_unreadable_values_total", help).sample(&[], shared.unreadable);
    let help = "Denials that were remembered and cost the shared store nothing.";
    out.counter("flowgate_store_deny_cache_hits_total", help).sample(&[], shared.deny_cache_hits);
    let (counts, sum) = metrics.store_latency.read();
    let mut family = out.histogram("flowgate_store_duration_seconds", "How long the shared store took to answer.");
    family.distribution(&[], &counts, seconds(sum));
}

fn clock(out: &mut Exposition, service: &Service) {
    let status = service.clock.status();
    let help = "How far the clock that decides is ahead of the wall clock; while it is, it runs at half speed.";
    out.gauge("flowgate_clock_ahead_seconds", help).sample(&[], seconds(status.ahead.as_nanos()));
    let help = "Steps of the wall clock by more than a second: back, forward, or forward for less than two seconds.";
    out.counter("flowgate_clock_steps_total", help)
        .sample(&[("kind", "back")], status.back.count)
        .sample(&[("kind", "forward")], status.forward.count)
        .sample(&[("kind", "ignored")], status.ignored.count);
}

type ListenerCounter = fn(&ListenerCounters) -> &Counter;

/// The counters that every listener has: name, help and value.
const LISTENER_COUNTERS: [(&str, &str, ListenerCounter); 5] = [
    ("flowgate_connections_total", "Connections that were let in.", |listener| &listener.connections),
    ("flowgate_connections_refused_total", "Connections that found every place taken.", |listener| &listener.refused),
    ("flowgate_tls_failures_total", "Connections that ended in the TLS handshake.", |listener| &listener.handshakes),
    ("flowgate_requests_total", "Requests and commands.", |listener| &listener.requests),
    ("flowgate_authentication_failures_total", "Wrong passwords and tokens.", |listener| &listener.unauthorized),
];

fn connections(out: &mut Exposition, metrics: &Metrics) {
    let (resp, grpc) = (&*metrics.resp, &metrics.grpc);
    let listeners = [("http", &metrics.http), ("resp", &resp.listener), ("grpc", &grpc.listener)];
    let by_protocol = |mut family: Family<'_>, counter: ListenerCounter| {
        for (protocol, counters) in listeners {
            family.sample(&[("protocol", protocol)], counter(counters).get());
        }
    };
    by_protocol(out.gauge("flowgate_connections", "Open connections."), |listener| &listener.open);
    for (name, help, counter) in LISTENER_COUNTERS {
        by_protocol(out.counter(name, help), counter);
    }
    let mut family = out.counter("flowgate_grpc_calls_total", "Calls of the rate limit service, by gRPC code.");
    for ((_, code), counter) in Code::ALL.iter().zip(&grpc.codes) {
        family.sample(&[("code", code)], counter.get());
    }
    out.counter("flowgate_grpc_descriptors_total", "Descriptors of these calls.").sample(&[], grpc.descriptors.get());
    let help = "Wrong passwords that were answered late, because their address had given many.";
    out.counter("flowgate_authentication_delays_total", help).sample(&[("protocol", "resp")], resp.held_up.get());
    let help = "Transactions of the Redis protocol that were refused because they were too long.";
    out.counter("flowgate_resp_transactions_refused_total", help).sample(&[], resp.long_transactions.get());
    let help = "Bytes of half-received commands and unread replies of the Redis protocol.";
    out.gauge("flowgate_resp_buffer_bytes", help).sample(&[], resp.occupied.get());
    let help = "Connections of the Redis protocol that the server closed, by the bound that was hit.";
    let mut family = out.counter("flowgate_resp_closed_total", help);
    for (reason, counter) in [
        ("idle", &resp.idle),
        ("protocol_error", &resp.protocol_errors),
        ("replies_unread", &resp.backlogs),
        ("crowded", &resp.crowded),
        ("spoke_http", &resp.cross_protocol),
    ] {
        family.sample(&[("reason", reason)], counter.get());
    }
}

fn reloads(out: &mut Exposition, service: &Service, metrics: &Metrics) {
    let reloads = &metrics.reloads;
    out.counter("flowgate_reloads_total", "Attempts to put a changed configuration in force.")
        .sample(&[("result", "success")], reloads.succeeded.get())
        .sample(&[("result", "failure")], reloads.failed.get());
    let help = "0 while the last configuration was wrong and the rules before it stay in force.";
    let successful = u8::from(!reloads.is_failing());
    out.gauge("flowgate_reload_last_successful", help).sample(&[], successful);
    let mut family = out.gauge("flowgate_reload_wrong_file", "The file that failed the last attempt.");
    if let Some(file) = &*reloads.wrong_file.lock() {
        family.sample(&[("file", file)], 1);
    }
    // The start counts as a successful load.
    let last = match reloads.last_success.load(Relaxed) {
        0 => service.started.as_nanos(),
        nanos => nanos,
    };
    out.gauge("flowgate_reload_last_success_timestamp_seconds", "When the rules in force were loaded.")
        .sample(&[], seconds(last));
    out.gauge("flowgate_reload_last_duration_seconds", "How long the last attempt took.")
        .sample(&[], seconds(reloads.last_nanos.load(Relaxed)));
    out.gauge("process_start_time_seconds", "When the server started.")
        .sample(&[], seconds(service.started.as_nanos()));
}
