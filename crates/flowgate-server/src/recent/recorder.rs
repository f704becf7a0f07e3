//! The recorder: a thread that writes the history once a second, just after a second has begun.
//!
//! Rule       Requests pay nothing: the recorder reads the tallies that they count anyway.
//! Rule       A reader of the history records first, so that the history holds all events until now.

use std::borrow::Cow;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;
use std::{io, thread};

use flowgate::Time;
use flowgate_engine::Rule;
use flowgate_engine::rules::Action;
use hashbrown::HashSet;

use super::history::{Gauges, MarkKind, Tally};
use crate::metrics::{BAN_BY_HAND, KEY_LIMITS, Metrics, NO_RULE};
use crate::service::Service;

/// The names of decisions that no rule makes.
const NOT_OF_RULES: [&str; 3] = [KEY_LIMITS, NO_RULE, BAN_BY_HAND];

const SECOND_NANOS: u64 = 1_000_000_000;

/// Records until it is dropped.
#[derive(Debug)]
pub(crate) struct RecorderThread {
    #[expect(dead_code, reason = "the thread ends when this end of the channel is dropped")]
    running: Sender<()>,
}

impl RecorderThread {
    /// Starts to record.
    pub(crate) fn start(service: Service) -> io::Result<RecorderThread> {
        let (running, stopped) = mpsc::channel::<()>();
        thread::Builder::new().name("history".to_owned()).spawn(move || {
            while stopped.recv_timeout(until_next_second(service.now())) == Err(RecvTimeoutError::Timeout) {
                service.record_history();
            }
        })?;
        Ok(RecorderThread { running })
    }
}

fn until_next_second(now: Time) -> Duration {
    Duration::from_nanos(SECOND_NANOS - now.as_nanos() % SECOND_NANOS)
}

impl Service {
    /// Adds what was counted since the last record to the history.
    pub(crate) fn record_history(&self) {
        let (now, metrics, history) = (self.now(), self.metrics(), &self.recent().history);
        self.recent().sample.tick(now);
        if let Some(shared) = self.shared_stats() {
            history.lock().note_store(now, shared.away > 0);
        }
        let snapshot = self.snapshot();
        let (rules, fronts) = (&snapshot.rules.rules, snapshot.fronts.tallies());
        let tally = |rule: &Rule| Tally::new(rule.counters.read(), rule.action.as_str());
        let by_rules = rules.iter().map(|rule| (Cow::Borrowed(rule.name()), tally(rule)));
        let by_others = NOT_OF_RULES.into_iter().zip([&metrics.keys, &metrics.unruled, &metrics.banned]);
        let by_others =
            by_others.map(|(name, counters)| (Cow::Borrowed(name), Tally::new(counters.read(), Action::Deny.as_str())));
        let by_fronts = fronts.map(|(name, action, counts)| (Cow::Owned(name), Tally::new(counts, action)));
        let all = by_rules.chain(by_others).chain(by_fronts);
        let gauges = gauges(self, metrics);
        history.lock().record(now, all, &gauges);
    }

    /// Marks that the rules of a version are in force.
    pub(crate) fn note_rules(&self, version: Option<u64>) {
        let snapshot = self.snapshot();
        let of_fronts: Vec<String> = snapshot.fronts.tallies().map(|(name, ..)| name).collect();
        let names = snapshot.rules.rules.iter().map(|rule| rule.name());
        let names: HashSet<&str> = names.chain(NOT_OF_RULES).chain(of_fronts.iter().map(String::as_str)).collect();
        self.recent().history.lock().note_rules(self.now(), version, |name| names.contains(name));
    }

    /// Marks an instant in the history.
    pub(crate) fn mark(&self, kind: MarkKind) {
        self.recent().history.lock().marks.note(self.now(), kind);
    }
}

fn gauges(service: &Service, metrics: &Metrics) -> Gauges {
    let Metrics { resp_latency, http_latency, grpc_latency, store_latency, .. } = metrics;
    Gauges {
        degraded: metrics.degraded.get(),
        memory: service.stats().bytes as u64,
        latencies: [resp_latency, http_latency, grpc_latency, store_latency].map(|histogram| histogram.buckets()),
    }
}

#[cfg(test)]
mod tests {
    use flowgate_engine::config::Config;
    use flowgate_engine::{AdHoc, Request};

    use super::*;
    use crate::recent::{Range, WantedRules};
    use crate::service::Operation;

    #[test]
    fn a_reload_counts_nothing_twice() {
        let toml = "console.history_rules = 1\nrule = [{ name = 'all', limits = ['9/60s'] }]";
        let service = Service::start(&Config::from_toml(toml).unwrap()).unwrap();
        assert!(service.decide(Operation::Take, &Request::new()).now().unwrap().allowed());
        service.record_history();
        // The only place is taken, so limits on keys count with the rest.
        let limit = "9/60s".parse().unwrap();
        for _ in 0..5 {
            let call = AdHoc { key: b"k".into(), limit: &limit, cost: 1 };
            assert!(service.limit(Operation::Take, call, service.read()).now().unwrap().is_ok());
        }
        service.record_history();
        service.note_rules(None);
        service.record_history();
        let recorded = service.recent().history.lock().read(Range::Hour, &WantedRules::None);
        assert_eq!(recorded.total.iter().flatten().map(|step| step.allowed).sum::<u32>(), 6);
    }

    #[test]
    fn the_recorder_wakes_when_a_second_begins() {
        let until = |nanos| until_next_second(Time::from_nanos(nanos)).as_nanos();
        assert_eq!((until(0), until(1), until(999_999_999)), (1_000_000_000, 999_999_999, 1));
        assert_eq!(until(1_700_000_000_250_000_000), 750_000_000);
    }
}
