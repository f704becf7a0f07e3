//! The figures of a run, and the promises that it broke.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use crate::CLIENTS;
use crate::audit::Charged;
use crate::bans;
use crate::bounds::{Bound, Fullest, Grant, Interval};
use crate::exceptions::{Exception, Whose};
use crate::faults::Fault;
use crate::trace::{NodeLife, Outcome, Record};
use crate::workload::{KINDS, Kind};

/// A run that is over.
pub(crate) struct Run {
    pub(crate) name: &'static str,
    pub(crate) stages: Vec<Stage>,
    pub(crate) records: Vec<Record>,
    pub(crate) charged: Vec<Charged>,
    pub(crate) exceptions: Vec<Exception>,
    pub(crate) complaints: Vec<String>,
    /// The directory of the nodes' logs.
    pub(crate) logs: PathBuf,
    /// Whether the run judges times. On a machine with other load it does not.
    pub(crate) times_are_judged: bool,
}

/// A time with one fault, or with none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    /// The fault of the stage; `None`: the quiet time at the start.
    pub(crate) fault: Option<Fault>,
    /// How often the fault loses replies; see [`Fault::losses`].
    pub(crate) losses: Option<usize>,
    pub(crate) from: Duration,
    /// When the fault was healed.
    pub(crate) healed: Duration,
    /// When every node asks the store again.
    pub(crate) recovered: Duration,
    pub(crate) to: Duration,
}

/// Every node must ask the store again within this time after a fault is healed.
const RECOVERY: Duration = Duration::from_secs(2);

/// One in this number of decisions may be degraded although no fault explains it: a busy machine misses deadlines.
const UNNOTICED: usize = 200;

/// Outside of faults, the 99th percentile may be this many times as long as in the quiet time.
const SLOWER: u32 = 2;

impl Run {
    /// The tables of the run, and its violations, one a line.
    pub(crate) fn report(&self) -> (String, Vec<String>) {
        let (mut text, mut wrong) = (String::new(), self.complaints.clone());
        let end = self.stages.last().map_or(Duration::ZERO, |stage| stage.to);
        _ = writeln!(text, "\n{}: {} requests in {:.0} s", self.name, self.records.len(), end.as_secs_f64());
        self.faults(&mut text, &mut wrong);
        self.bounds(&mut text, &mut wrong);
        self.bans(&mut text, &mut wrong);
        self.charges(&mut text, &mut wrong);
        self.latencies(&mut text, &mut wrong);
        let wrong = wrong.into_iter().map(|wrong| format!("{}: {wrong}", self.name)).collect();
        (text, wrong)
    }

    fn faults(&self, text: &mut String, wrong: &mut Vec<String>) {
        _ = writeln!(
            text,
            "\n{:<30} {:>5} {:>8} {:>8} {:>8} {:>10} {:>6} {:>9}",
            "fault", "times", "requests", "allowed", "degraded", "unanswered", "leaks", "back in"
        );
        let mut faults: Vec<Option<Fault>> = Vec::new();
        for stage in &self.stages {
            if !faults.contains(&stage.fault) {
                faults.push(stage.fault);
            }
        }
        for fault in faults {
            let stages: Vec<&Stage> = self.stages.iter().filter(|stage| stage.fault == fault).collect();
            let figures = self.figures(&stages);
            _ = writeln!(text, "{:<30} {:>5} {figures}", name(fault), stages.len());
            if self.times_are_judged {
                let complaints = figures.complaints(fault, &stages);
                wrong.extend(complaints.into_iter().map(|complaint| format!("{}: {complaint}", name(fault))));
            }
        }
    }

    fn figures(&self, stages: &[&Stage]) -> Figures {
        let within = |record: &&Record| stages.iter().any(|stage| stage.holds(record));
        let records: Vec<&Record> = self.records.iter().filter(within).collect();
        let count = |is: &dyn Fn(Outcome) -> bool| records.iter().filter(|record| is(record.outcome)).count();
        let leaks: Vec<&Charged> =
            self.charged.iter().filter(|charged| charged.is_leak() && within(&&charged.record)).collect();
        Figures {
            requests: records.len(),
            allowed: count(&|outcome| outcome == Outcome::Allowed),
            degraded: count(&Outcome::is_degraded),
            unanswered: count(&|outcome| outcome == Outcome::Unanswered),
            leaks: leaks.len(),
            leaks_of_denied: leaks.iter().filter(|leak| leak.record.outcome != Outcome::Unanswered).count(),
            back: stages.iter().map(|stage| stage.recovered - stage.healed).max().unwrap_or_default(),
        }
    }

    fn bounds(&self, text: &mut String, wrong: &mut Vec<String>) {
        _ = writeln!(text, "\n{:<30} {:>8} {:>20} {:>8}", "bound", "admitted", "fullest span", "excess");
        for (number, kind) in KINDS.iter().enumerate() {
            let records = || self.records.iter().filter(move |record| record.asked.kind == number);
            if let Some(bound) = kind.bound {
                let mut by_subject: BTreeMap<u32, Vec<Interval>> = BTreeMap::new();
                for record in records().filter(|record| record.outcome == Outcome::Allowed) {
                    by_subject.entry(record.asked.subject).or_default().push(record.interval);
                }
                let grants = |subject: &u32| {
                    let this = Whose::Subject { kind: number, subject: *subject };
                    Exception::grants(&self.exceptions, &bound, |whose| whose == this || whose == Whose::Everybody)
                };
                line(kind, kind.act, &bound, &by_subject, grants, (text, wrong));
            }
            // A bound on what a node admits by itself holds for each of its processes.
            let alone = records().filter(|record| record.outcome == Outcome::DegradedAllowed);
            let mut by_node: BTreeMap<(u32, NodeLife), Vec<Interval>> = BTreeMap::new();
            for record in alone {
                by_node.entry((record.asked.subject, record.node)).or_default().push(record.interval);
            }
            match kind.share {
                Some(share) => {
                    let title = format!("{} (a node alone)", kind.act);
                    let grants = |(_, node): &(u32, NodeLife)| {
                        Exception::grants(&self.exceptions, &share, |whose| whose == Whose::Node(*node))
                    };
                    line(kind, &title, &share, &by_node, grants, (text, wrong));
                }
                None if by_node.is_empty() => {}
                None => wrong.push(format!("{}: allowed without the store", kind.act)),
            }
        }
    }

    fn bans(&self, text: &mut String, wrong: &mut Vec<String>) {
        let told = self.records.iter().filter(|record| record.banned_until.is_some()).count();
        let broken = bans::broken(&self.records, &self.exceptions);
        _ = writeln!(text, "\n{told} requests denied by a ban, {} allowed during one", broken.len());
        wrong.extend(broken.first().map(|first| format!("allowed during a ban: {first:?}")));
    }

    fn charges(&self, text: &mut String, wrong: &mut Vec<String>) {
        let count = |is: &dyn Fn(&Charged) -> bool| self.charged.iter().filter(|charged| is(charged)).count();
        let doubled = count(&Charged::is_double);
        let is_replaced = |charged: &Charged| {
            let mut replaced = self.exceptions.iter().filter(|exception| exception.whose == Whose::Everybody);
            replaced.any(|Exception { from, to, .. }| charged.record.is_within(*from, *to))
        };
        let lost = count(&|charged| charged.is_lost() && !is_replaced(charged));
        let not_replicated = count(&|charged| charged.is_lost() && is_replaced(charged));
        let leaked = |outcome: Outcome| count(&|charged| charged.is_leak() && charged.record.outcome == outcome);
        _ = writeln!(text, "\n{} requests with a subject of their own: {doubled} charged twice,", self.charged.len());
        _ = writeln!(text, "{lost} allowed and not charged, {not_replicated} more when a replica took over,");
        _ = writeln!(
            text,
            "charged and not allowed: {} of {} denied, {} of {} decided without the store, {} of {} unanswered",
            leaked(Outcome::Denied),
            count(&|charged| charged.record.outcome == Outcome::Denied),
            leaked(Outcome::DegradedDenied),
            count(&|charged| charged.record.outcome == Outcome::DegradedDenied),
            leaked(Outcome::Unanswered),
            count(&|charged| charged.record.outcome == Outcome::Unanswered),
        );
        let mut by_kind: BTreeMap<&str, usize> = BTreeMap::new();
        for leak in self.charged.iter().filter(|charged| charged.is_leak()) {
            *by_kind.entry(KINDS[leak.record.asked.kind].act).or_default() += 1;
        }
        _ = writeln!(text, "by kind: {by_kind:?}");
        for (charges, what) in [(doubled, "charged twice"), (lost, "allowed and not charged")] {
            if charges > 0 {
                wrong.push(format!("{charges} requests were {what}"));
            }
        }
    }

    fn latencies(&self, text: &mut String, wrong: &mut Vec<String>) {
        let of = |is: &dyn Fn(&Stage) -> bool| {
            let stages: Vec<&Stage> = self.stages.iter().filter(|stage| is(stage)).collect();
            let calm = |record: &&Record| stages.iter().any(|stage| record.is_within(stage.recovered, stage.to));
            let records: Vec<&Record> = self.records.iter().filter(calm).collect();
            let degraded = records.iter().filter(|record| record.outcome.is_degraded()).count();
            let mut latencies: Vec<Duration> = records.iter().map(|record| record.latency()).collect();
            latencies.sort_unstable();
            (latencies, degraded)
        };
        let ((quiet, _), (calm, degraded)) = (of(&|stage| stage.fault.is_none()), of(&|stage| stage.fault.is_some()));
        _ = writeln!(text, "\n{:<30} {:>8} {:>9} {:>9}", "latency", "requests", "p50", "p99");
        for (title, latencies) in [(name(None), &quiet), ("between faults", &calm)] {
            let (p50, p99) = (millis(part(latencies, 50)), millis(part(latencies, 99)));
            _ = writeln!(text, "{title:<30} {:>8} {p50:>6.2} ms {p99:>6.2} ms", latencies.len());
        }
        _ = writeln!(text, "{degraded} degraded decisions between faults");
        if self.times_are_judged && part(&calm, 99) > part(&quiet, 99) * SLOWER {
            wrong.push(format!("the p99 between faults is more than {SLOWER} times that of the quiet time"));
        }
    }
}

impl Stage {
    fn holds(&self, record: &Record) -> bool {
        record.interval.sent >= self.from && record.interval.sent < self.to
    }
}

/// The figures of a fault.
struct Figures {
    requests: usize,
    allowed: usize,
    degraded: usize,
    unanswered: usize,
    leaks: usize,
    /// Leaks of denied requests alone. A request without an answer may have been allowed, so its charge is no proof.
    leaks_of_denied: usize,
    /// The longest time until all nodes asked the store again.
    back: Duration,
}

impl Figures {
    /// The contradictions between a fault's figures and the documentation.
    fn complaints(&self, fault: Option<Fault>, stages: &[&Stage]) -> Vec<String> {
        let mut complaints = Vec::new();
        if self.back > RECOVERY {
            complaints.push(format!("nodes were back {:.0} ms after it was healed", millis(self.back)));
        }
        if fault.is_none_or(Fault::goes_unnoticed) && self.degraded * UNNOTICED > self.requests {
            complaints.push(format!("{} of {} decisions were degraded", self.degraded, self.requests));
        }
        // Every client has at most one request under way.
        let most: usize = stages.iter().map(|stage| stage.losses.unwrap_or(0) * CLIENTS).sum();
        if self.leaks_of_denied > most {
            complaints.push(format!("{} charges of denied requests stay, {most} may", self.leaks_of_denied));
        }
        complaints
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { requests, allowed, degraded, unanswered, leaks, back, .. } = self;
        write!(f, "{requests:>8} {allowed:>8} {degraded:>8} {unanswered:>10} {leaks:>6} {:>6.0} ms", millis(*back))
    }
}

fn name(fault: Option<Fault>) -> &'static str {
    fault.map_or("quiet", Fault::name)
}

/// A line for the fullest span of all subjects, or of all nodes and subjects, of a kind.
fn line<K: Ord + std::fmt::Debug>(
    kind: &Kind,
    title: &str,
    bound: &Bound,
    allowed: &BTreeMap<K, Vec<Interval>>,
    grants: impl Fn(&K) -> Vec<Grant>,
    (text, wrong): (&mut String, &mut Vec<String>),
) {
    let mut fullest: Option<Fullest> = None;
    for (key, allowed) in allowed {
        let Some(found) = bound.fullest(allowed, &grants(key)) else { continue };
        if found.excess() > 0 {
            wrong.push(format!("{} {key:?}: {found}", kind.act));
        }
        if fullest.is_none_or(|fullest| fullest.excess() < found.excess() || fullest.room() > found.room()) {
            fullest = Some(found);
        }
    }
    let admitted: usize = allowed.values().map(Vec::len).sum();
    let (span, excess) = match fullest {
        Some(found) => (format!("{} of {}", found.admitted, found.bound), found.excess()),
        None => ("none".to_owned(), 0),
    };
    _ = writeln!(text, "{title:<30} {admitted:>8} {span:>20} {excess:>8}");
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The value below which this percentage of the values lies.
fn part(sorted: &[Duration], hundredths: usize) -> Duration {
    sorted.get(sorted.len() * hundredths / 100).copied().unwrap_or_default()
}
