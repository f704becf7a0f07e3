//! A sample of the traffic, to try other rules on: takes by the rules, as lines of a trace that `flowgate replay` reads.
//!
//! Rule       Nothing is recorded until an administrator asks for it (`console.sample`). A recording ends by itself and is
//!            forgotten [`KEPT_AFTER`] later; `always` keeps the last `sample_for`.
//! Rule       Whole subjects are recorded, never single requests: the requests whose value of one field falls into one of
//!            `one_in` parts, by a keyed hash. `one_in` doubles when [`MAX_PER_SECOND`] or the memory is exceeded, and
//!            what falls out leaves the sample, too. A request without that field belongs to a part by all its fields.
//! Rule       Headers and queries may hold secrets, so they are left out.
//! Cost       While nothing is recorded, a request pays one relaxed load.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use flowgate::{Span, Time};
use flowgate_api::Fields;
use flowgate_engine::Request;
use flowgate_engine::config::{self, Sampling};

use crate::lock::Lock;

/// How long a recording that has ended is kept.
const KEPT_AFTER: Span = Span::from_secs(30 * 60);

/// The most requests that are recorded in a second, before a part of the subjects is left out.
const MAX_PER_SECOND: u32 = 1_000;

/// The bytes of a line besides its text.
const LINE_BYTES: usize = size_of::<Line>();

/// The fields that are left out.
const LEFT_OUT: [&str; 2] = ["header.*", "query.*"];

#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) mode: Sampling,
    pub(crate) longest: Span,
    max_bytes: usize,
    is_on: AtomicBool,
    hasher: RandomState,
    recording: Lock<Option<Recording>>,
}

#[derive(Debug)]
struct Recording {
    since: Time,
    /// When the recording ends; `None`: it has no end, and only the last requests are kept.
    until: Option<Time>,
    /// The field by whose values requests are kept or left out; empty: all requests are kept or left out together.
    by: String,
    one_in: u64,
    lines: VecDeque<Line>,
    bytes: usize,
    second: u64,
    in_second: u32,
}

#[derive(Debug)]
struct Line {
    at: Time,
    part: u64,
    text: Box<str>,
}

impl Line {
    fn second(&self) -> u64 {
        self.at.as_nanos() / 1_000_000_000
    }
}

/// A recorded trace.
#[derive(Clone, Debug)]
pub(crate) struct RecordedTrace {
    /// The lines of the trace, as JSON.
    pub(crate) text: Vec<u8>,
    /// The time from the first request to the last.
    pub(crate) length: Span,
    pub(crate) one_in: u64,
    pub(crate) by: String,
}

impl Sample {
    pub(crate) fn new(settings: &config::Console) -> Sample {
        Sample {
            mode: settings.sample,
            longest: settings.sample_for.into(),
            max_bytes: usize::try_from(settings.sample_memory.bytes()).unwrap_or(usize::MAX),
            is_on: AtomicBool::new(false),
            hasher: RandomState::new(),
            recording: Lock::default(),
        }
    }

    /// Whether requests are recorded.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Begins a recording in place of an earlier one. `by` is the field by whose values requests are kept or left out.
    pub(crate) fn start(&self, now: Time, length: Option<Span>, by: String) {
        let until = length.map(|length| now + length.min(self.longest));
        let (lines, bytes, one_in) = (VecDeque::new(), 0, 1);
        *self.recording.lock() =
            Some(Recording { since: now, until, by, one_in, lines, bytes, second: 0, in_second: 0 });
        self.is_on.store(true, Relaxed);
    }

    /// Ends a recording now and keeps it. A recording without an end (`console.sample = "always"`) goes on.
    pub(crate) fn stop(&self, now: Time) {
        let mut recording = self.recording.lock();
        if let Some(Recording { until: Some(until), .. }) = &mut *recording {
            *until = now.min(*until);
            self.is_on.store(false, Relaxed);
        }
    }

    /// Forgets the recording. A recording without an end begins anew.
    pub(crate) fn forget(&self, now: Time) {
        let mut recording = self.recording.lock();
        match recording.take().filter(|recording| recording.until.is_none()) {
            Some(Recording { by, .. }) => {
                drop(recording);
                self.start(now, None, by);
            }
            None => self.is_on.store(false, Relaxed),
        }
    }

    /// Ends a recording whose time is over, and forgets one that ended long ago.
    pub(crate) fn tick(&self, now: Time) {
        let mut recording = self.recording.lock();
        let Some(Recording { until, .. }) = &*recording else { return };
        match *until {
            Some(until) if now >= until + KEPT_AFTER => *recording = None,
            Some(until) if now >= until => self.is_on.store(false, Relaxed),
            _ => {}
        }
    }

    /// Records a take.
    #[cold]
    pub(crate) fn note(&self, request: &Request<'_>, now: Time) {
        let fields: Fields<'_> =
            request.fields().filter(|(name, _)| !name.starts_with("header.") && !name.starts_with("query.")).collect();
        let mut guard = self.recording.lock();
        let Some(recording) = &mut *guard else { return };
        if recording.until.is_some_and(|until| now >= until) {
            self.is_on.store(false, Relaxed);
            return;
        }
        let part = match request.counted(&recording.by) {
            Some(value) => self.hasher.hash_one(value),
            None => self.hasher.hash_one(request.fields().collect::<Vec<_>>()),
        };
        if part % recording.one_in != 0 {
            return;
        }
        recording.add(Line { at: now, part, text: line(now, &fields, request.cost).into() });
        let oldest = now.as_nanos().saturating_sub(self.longest.as_nanos());
        while recording.lines.front().is_some_and(|line| line.at.as_nanos() < oldest) {
            recording.remove_first();
        }
        while recording.in_second > MAX_PER_SECOND || recording.bytes > self.max_bytes {
            recording.halve();
        }
    }

    /// The state of the recording, as `/v1/sample` shows it.
    pub(crate) fn status(&self, now: Time) -> flowgate_api::Sample<'static> {
        self.tick(now);
        let recording = self.recording.lock();
        let recording = recording.as_ref();
        let state = match (recording, self.mode) {
            (Some(_), _) if self.is_on() => "recording",
            (Some(_), _) => "recorded",
            (None, Sampling::Off) => "off",
            (None, _) => "empty",
        };
        flowgate_api::Sample {
            now: now.into(),
            state: state.into(),
            since: recording.map(|recording| recording.since.into()),
            until: recording.and_then(|recording| recording.until).map(Into::into),
            requests: recording.map_or(0, |recording| recording.lines.len() as u64),
            bytes: recording.map_or(0, |recording| recording.bytes as u64),
            max_bytes: self.max_bytes as u64,
            longest: self.longest.into(),
            one_in: recording.map_or(1, |recording| recording.one_in),
            by: recording.map(|recording| recording.by.clone().into()),
            left_out: LEFT_OUT.map(Into::into).into(),
        }
    }

    /// The recorded trace so far; `None`: nothing was recorded.
    pub(crate) fn trace(&self) -> Option<RecordedTrace> {
        let recording = self.recording.lock();
        let Recording { lines, by, one_in, .. } = recording.as_ref()?;
        let (first, last) = (lines.front()?, lines.back()?);
        let mut text = Vec::with_capacity(lines.iter().map(|line| line.text.len() + 1).sum());
        for line in lines {
            text.extend_from_slice(line.text.as_bytes());
            text.push(b'\n');
        }
        Some(RecordedTrace { text, length: last.at.since(first.at), one_in: *one_in, by: by.clone() })
    }
}

impl Recording {
    fn add(&mut self, line: Line) {
        let second = line.second();
        if second != self.second {
            (self.second, self.in_second) = (second, 0);
        }
        self.in_second += 1;
        self.bytes += line.text.len() + LINE_BYTES;
        self.lines.push_back(line);
    }

    fn remove_first(&mut self) {
        if let Some(line) = self.lines.pop_front() {
            self.bytes -= line.text.len() + LINE_BYTES;
        }
    }

    /// Leaves out half of the subjects.
    fn halve(&mut self) {
        self.one_in *= 2;
        let one_in = self.one_in;
        self.lines.retain(|line| line.part % one_in == 0);
        self.bytes = self.lines.iter().map(|line| line.text.len() + LINE_BYTES).sum();
        self.in_second = self.lines.iter().rev().take_while(|line| line.second() == self.second).count() as u32;
        if self.one_in >= 1 << 40 {
            // One subject alone exceeds the bound, so the oldest requests are dropped.
            self.in_second = 0;
            self.lines.drain(..self.lines.len() / 2);
            self.bytes = self.lines.iter().map(|line| line.text.len() + LINE_BYTES).sum();
        }
    }
}

/// A line of a trace.
fn line(at: Time, fields: &Fields<'_>, cost: u64) -> String {
    let (secs, nanos) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
    // Writing texts as JSON cannot fail.
    let fields = serde_json::to_string(fields).unwrap_or_default();
    format!(r#"{{"ts":{secs}.{nanos:09},"fields":{fields},"cost":{cost}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_secs(1_700_000_000);

    fn sample(memory: u64) -> Sample {
        let sample_memory = config::ByteSize::new(memory);
        Sample::new(&config::Console { sample_memory, ..config::Console::default() })
    }

    fn after(secs: u64) -> Time {
        START + Span::from_secs(secs)
    }

    #[test]
    fn a_recording_ends_by_itself_and_is_forgotten() {
        let sample = sample(16_000_000);
        assert!(!sample.is_on() && sample.status(START).state == "empty");
        sample.start(START, Some(Span::from_secs(60)), "user".to_owned());
        let request = Request::new().field("user", "42\n").field("header.cookie", "secret").cost(3);
        sample.note(&request, after(1));
        sample.note(&request, after(60));
        let status = sample.status(after(60));
        assert_eq!((&*status.state, status.requests, status.one_in), ("recorded", 1, 1));
        let trace = sample.trace().unwrap();
        let expected = "{\"ts\":1700000001.000000000,\"fields\":{\"user\":\"42\\n\"},\"cost\":3}\n";
        assert_eq!(String::from_utf8(trace.text).unwrap(), expected);
        assert_eq!(sample.status(after(60 + 1_799)).state, "recorded");
        assert_eq!(sample.status(after(60 + 1_800)).state, "empty");
        sample.start(START, Some(Span::from_secs(100_000)), String::new());
        assert_eq!(sample.status(START).until, Some(after(600).into()), "no longer than console.sample_for");
        sample.forget(START);
        assert!(!sample.is_on() && sample.status(START).state == "empty");
    }

    #[test]
    fn a_recording_that_is_stopped_is_kept() {
        let sample = sample(16_000_000);
        sample.stop(START);
        sample.start(START, Some(Span::from_secs(60)), "user".to_owned());
        sample.note(&Request::new().field("user", "42"), after(1));
        sample.stop(after(2));
        assert!(!sample.is_on());
        let status = sample.status(after(3));
        assert_eq!((&*status.state, status.requests, status.until), ("recorded", 1, Some(after(2).into())));
        sample.stop(after(9));
        assert_eq!(sample.status(after(9)).until, Some(after(2).into()), "it has ended already");
        sample.start(START, None, String::new());
        sample.stop(after(1));
        assert!(sample.is_on(), "one without an end goes on");
    }

    #[test]
    fn beyond_a_bound_whole_subjects_leave() {
        let sample = sample(16_000_000);
        sample.start(START, None, "user".to_owned());
        let users: Vec<String> = (0..4_000).map(|number| number.to_string()).collect();
        for round in 0..2 {
            for user in &users {
                sample.note(&Request::new().field("user", user), after(round));
            }
        }
        let status = sample.status(after(1));
        assert!(status.one_in >= 4 && status.requests <= 2 * 1_000, "{status:?}");
        let text = String::from_utf8(sample.trace().unwrap().text).unwrap();
        for user in &users {
            let times = text.matches(&format!("\"user\":\"{user}\"")).count();
            assert!(times == 0 || times == 2, "{user} {times}");
        }
    }

    #[test]
    fn requests_without_the_field_are_sampled_too() {
        for by in ["", "ip"] {
            let sample = sample(16_000_000);
            sample.start(START, None, by.to_owned());
            for user in 0..8_000 {
                sample.note(&Request::new().field("user", &user.to_string()), after(0));
            }
            let status = sample.status(after(1));
            assert!((200..=1_000).contains(&status.requests), "{status:?}");
        }
    }

    #[test]
    fn memory_is_bounded_even_for_one_subject() {
        let sample = sample(1_000_000);
        sample.start(START, None, "user".to_owned());
        let long = "x".repeat(1_000);
        for number in 0..5_000 {
            sample.note(&Request::new().field("user", "42").field("text", &long), after(number / 10));
        }
        let status = sample.status(after(500));
        assert!(status.bytes <= 1_000_000, "{status:?}");
    }
}
