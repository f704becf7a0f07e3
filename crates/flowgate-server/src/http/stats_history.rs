//! `GET /v1/stats/history`: what was decided in the last five minutes, hour or day, in all and by rule.

use flowgate_api::{Counts, Latencies, Latency, Mark, MarkedBan, RuleHistory, StatsHistory, Steps, TotalCounts};

use hashbrown::{HashMap, HashSet};

use super::Call;
use super::error::Error;
use super::query::Query;
use super::reply::{self, Reply};
use crate::recent::{self, BanMark, MarkKind, Range, Series, StepLatency, WantedRules};
use crate::service::Service;

/// The most rules of `rules=top`.
const TOP_RULES: usize = 10;

/// The most names in `rules=`.
const MAX_NAMED_RULES: usize = 100;

/// `?range=5m|1h|24h&rules=reply,address`, or `rules=top`.
pub(super) async fn history(call: &Call<'_>) -> Result<Reply, Error> {
    let query = Query::read(call, &["range", "rules"])?;
    let range = match query.get("range") {
        None | Some("5m") => Range::FiveMinutes,
        Some("1h") => Range::Hour,
        Some("24h") => Range::Day,
        Some(_) => return Err(Error::invalid("range", "expected 5m, 1h or 24h")),
    };
    let wanted = match query.get("rules") {
        None | Some("") => WantedRules::None,
        Some("top") => WantedRules::Top(TOP_RULES),
        Some(names) => {
            let names: Vec<String> = names.split(',').map(str::to_owned).collect();
            if names.len() > MAX_NAMED_RULES {
                return Err(Error::invalid("rules", format!("more than {MAX_NAMED_RULES} names")));
            }
            WantedRules::Named(names)
        }
    };
    let service = call.shared.service.clone();
    // A day of a hundred rules is a long text, so it is not written on the event loop.
    let written = tokio::task::spawn_blocking(move || document(&service, range, &wanted)).await;
    Ok(reply::json_text(written.map_err(|_| Error::Overloaded)?))
}

fn document(service: &Service, range: Range, wanted: &WantedRules) -> Vec<u8> {
    service.record_history();
    let recorded = service.recent().history.lock().read(range, wanted);
    let actions = actions(service, recorded.rules.iter().map(|(rule, _)| rule.as_str()).collect());
    let [resp, http, grpc, store] = recorded.latencies.each_ref().map(|series| latency(series));
    reply::written(&StatsHistory {
        now: service.now().into(),
        started: service.started.into(),
        step: recorded.step,
        end: recorded.end,
        total: TotalCounts {
            counts: counts(&recorded.total),
            own_action: recorded.own_action,
            degraded: recorded.degraded,
        },
        latency: Latencies { resp, http, grpc, store },
        memory: recorded.memory,
        rules: recorded
            .rules
            .iter()
            .map(|(rule, series)| RuleHistory {
                rule: rule.into(),
                action: actions.get(rule.as_str()).map(|action| action.into()),
                counts: counts(series),
            })
            .collect(),
        other: counts(&recorded.other),
        marks: recorded.marks.iter().map(mark).collect(),
    })
}

/// What each of these rules asks of the caller on a denial, if it is in force.
fn actions<'r>(service: &Service, wanted: HashSet<&'r str>) -> HashMap<&'r str, String> {
    let snapshot = service.snapshot();
    let rules = snapshot.rules.rules.iter();
    let of_rules = rules.filter_map(|rule| Some((*wanted.get(rule.name())?, rule.action.as_str().to_owned())));
    let of_fronts = snapshot.fronts.tallies();
    of_rules.chain(of_fronts.filter_map(|(name, action, _)| Some((*wanted.get(&*name)?, action.to_owned())))).collect()
}

fn counts(series: &Series) -> Counts {
    let of = |count: fn(&recent::StepCounts) -> u32| -> Steps<u32> {
        series.iter().map(|step| step.as_ref().map(count)).collect()
    };
    Counts { allowed: of(|step| step.allowed), denied: of(|step| step.denied), shadow: of(|step| step.shadow) }
}

fn latency(series: &[StepLatency]) -> Latency {
    Latency { p50: series.iter().map(|step| step.p50).collect(), p99: series.iter().map(|step| step.p99).collect() }
}

fn mark(recent::Mark { at, kind }: &recent::Mark) -> Mark<'_> {
    let (kind, version, ban) = match kind {
        MarkKind::Start => ("start", None, None),
        MarkKind::Rules { version } => ("rules", *version, None),
        MarkKind::Away => ("away", None, None),
        MarkKind::Back => ("back", None, None),
        MarkKind::Pause => ("pause", None, None),
        MarkKind::Resume => ("resume", None, None),
        MarkKind::Ban(ban) => ("ban", None, Some(ban)),
        MarkKind::Lift(ban) => ("lift", None, Some(ban)),
    };
    let ban = ban.map(|BanMark { field, value, author }| MarkedBan {
        field: (&**field).into(),
        value: (&**value).into(),
        author: author.into(),
    });
    Mark { at: (*at).into(), kind: kind.into(), version, ban }
}
