//! Recent events in bounded memory, for people to read. They have no part in decisions, and a restart loses them.
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
mod tries;
mod windows;

use std::sync::atomic::Ordering::Relaxed;

use flowgate::Time;
use flowgate_engine::config;

use crate::lock::Lock;
use crate::metrics::Exposition;

pub(crate) use denials::{DenialEvent, Denials, told_fields};
pub(crate) use history::{
    BanMark, History, Latency as StepLatency, Mark, MarkKind, Range, Series, StepCounts, WantedRules,
};
pub(crate) use recorder::RecorderThread;
pub(crate) use sample::{RecordedTrace, Sample};
pub(crate) use subject::{Subject, one_line};
pub(crate) use subjects::{RuleSubjects, SubjectKind};
use tries::TRY_ENDS;
pub(crate) use tries::{Tries, TryEnd};
pub(crate) use windows::{SeenCount, Windows};

/// The recent events of a service.
#[derive(Debug)]
pub(crate) struct Recent {
    pub(crate) history: Lock<History>,
    pub(crate) subjects: RuleSubjects,
    pub(crate) denials: Denials,
    pub(crate) sample: Sample,
    pub(crate) tries: Tries,
}

impl Recent {
    pub(crate) fn new(settings: &config::Console, started: Time) -> Recent {
        Recent {
            history: Lock::new(History::new(settings.history_rules, started)),
            subjects: RuleSubjects::default(),
            denials: Denials::default(),
            sample: Sample::new(settings),
            tries: Tries::default(),
        }
    }

    /// Writes how full each bounded part is, and how many entries did not fit.
    pub(crate) fn render(&self, out: &mut Exposition, now: Time) {
        let (own, shared) = self.history.lock().number_of_rules();
        out.gauge("flowgate_history_rules", "Rules that have decided, by whether they have a history of their own.")
            .sample(&[("place", "own")], own)
            .sample(&[("place", "shared")], shared);
        let help = "Samples of subjects that were not kept: the lists were in use, or all of them were taken.";
        out.counter("flowgate_subjects_dropped_total", help)
            .sample(&[("reason", "in_use")], self.subjects.in_use.get())
            .sample(&[("reason", "full")], self.subjects.full.get());
        let help = "Denials that left the list of the last ones, or never came there because it was in use.";
        out.counter("flowgate_denials_dropped_total", help)
            .sample(&[("reason", "in_use")], self.denials.in_use.get())
            .sample(&[("reason", "full")], self.denials.full.get());
        let sample = self.sample.status(now);
        let recording = u8::from(sample.state == "recording");
        out.gauge("flowgate_sample_recording", "1 while traffic is recorded.").sample(&[], recording);
        out.gauge("flowgate_sample_bytes", "Bytes of recorded traffic.").sample(&[], sample.bytes);
        let help = "Of so many subjects one is recorded; above 1 the traffic is more than fits.";
        out.gauge("flowgate_sample_one_in", help).sample(&[], sample.one_in);
        let help = "1 while a draft is tried on the recorded traffic.";
        out.gauge("flowgate_try_under_way", help).sample(&[], u8::from(self.tries.is_under_way.load(Relaxed)));
        let mut family = out.counter("flowgate_tries_total", "Tries of drafts, by how they ended.");
        for (end, name) in TRY_ENDS {
            family.sample(&[("result", name)], self.tries.ends[end as usize].get());
        }
    }
}
