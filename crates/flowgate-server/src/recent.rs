//! What has happened lately, kept in bounded memory for people: it decides nothing, and is lost at a restart.
//!
//! ```text
//! tallies of rules ── history    counts per second, ten seconds and minute, by rule
//! samples ── subjects            who asks and who is denied, by rule
//! samples ── denials             the last denials, one by one
//! requests ── sample             a recording to try other rules on, when somebody asks for it
//! ```
//!
//! Rule       Requests never wait for any of it: counts are read by a thread of its own, samples are dropped if another
//!            thread holds the lock.

mod denials;
mod history;
mod recorder;
mod sample;
mod subject;
mod subjects;
mod windows;

use flowgate::Time;
use flowgate_engine::config;

pub(crate) use denials::{DenialEvent, Denials, told_fields};
pub(crate) use history::{History, Latency as StepLatency, Mark, MarkKind, Range, Series, StepCounts, WantedRules};
pub(crate) use recorder::RecorderThread;
pub(crate) use sample::{LEFT_OUT, RecordedTrace, Sample};
pub(crate) use subject::Subject;
pub(crate) use subjects::{RuleSubjects, SubjectKind};
pub(crate) use windows::{SeenCount, Windows};

/// All of it.
#[derive(Debug)]
pub(crate) struct Recent {
    pub(crate) history: History,
    pub(crate) subjects: RuleSubjects,
    pub(crate) denials: Denials,
    pub(crate) sample: Sample,
}

impl Recent {
    pub(crate) fn new(settings: &config::Console, started: Time) -> Recent {
        Recent {
            history: History::new(settings.history_rules, started),
            subjects: RuleSubjects::default(),
            denials: Denials::default(),
            sample: Sample::new(settings),
        }
    }
}
