//! The pass over the traces: each line once, in order, through the engine in virtual time.
//!
//! Rule       The time of a request is what its line says, but never before the latest time seen: logs are written
//!            when requests end, so times run back a little. How many did is counted.
//! Rule       A line that cannot be read is skipped and counted; the first few are kept with the reason.
//! Bound      Memory does not depend on the length of the traces: counters are bounded by the configuration's
//!            `store.max_memory`, everything else by a constant.

use std::borrow::Cow;
use std::io::{self, Write};

use flowgate::{Memory, MemoryConfig, Op, Seed, Time};
use flowgate_engine::config::Config;
use flowgate_engine::{Decision, Engine, Policy, PolicyError, Request};
use flowgate_server::{Operation, decision_json};

use super::compare::Changes;
use super::event::{Event, Format, Unreadable};
use super::input::{InputError, Place};
use super::lines::Line;
use super::tally::Tally;
use super::what_if::WhatIf;

/// So many lines that cannot be read are shown.
const SHOWN_SKIPPED: usize = 5;
/// How often whoever waits is told, in lines.
const TOLD_EVERY: u64 = 1 << 13;

/// A replay under way, and what it has found.
pub struct Replay<'a> {
    side: Side,
    other: Option<(Side, Changes)>,
    what_if: Option<WhatIf>,
    decisions: Option<&'a mut dyn Write>,
    /// What was read.
    pub trace: Trace,
    /// The rules that the request at hand matched.
    matched: Vec<usize>,
    line: Vec<u8>,
}

/// What a replay is to do.
pub struct Job<'a> {
    /// The policy to try.
    pub config: &'a Config,
    /// Another, to compare with.
    pub compare: Option<&'a Config>,
    /// Whether to try other counts, too.
    pub what_if: bool,
    /// Where to write every decision.
    pub decisions: Option<&'a mut dyn Write>,
}

/// A policy and what it did.
struct Side {
    policy: Policy,
    engine: Engine,
    tally: Tally,
}

/// What was read of the traces.
#[derive(Debug, Default)]
pub struct Trace {
    /// Lines, empty ones aside.
    pub lines: u64,
    /// Lines that could not be read.
    pub skipped: u64,
    /// The first of them.
    pub shown: Vec<Skipped>,
    /// Lines older than one before them.
    pub late: u64,
    /// Lines that asked for something else than to take.
    pub other_operations: u64,
    /// The time of the first request that was decided.
    pub first: Option<Time>,
    /// The latest time.
    pub latest: Time,
}

/// A line that could not be read.
#[derive(Debug)]
pub struct Skipped {
    /// Of this trace.
    pub trace: String,
    /// Its number, from 1.
    pub line: u64,
    /// Why.
    pub reason: Unreadable,
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Lines of all traces so far.
    pub lines: u64,
    /// Bytes of the present trace.
    pub read: u64,
    /// All its bytes, where that is known.
    pub size: Option<u64>,
}

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A trace could not be opened.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A trace could not be read to its end.
    #[error("{name}, behind line {line}: {error}")]
    Broken {
        /// The trace.
        name: String,
        /// The last line that was read.
        line: u64,
        /// The reason.
        error: io::Error,
    },
    /// The decisions could not be written.
    #[error("cannot write the decisions: {0}")]
    Decisions(io::Error),
}

impl<'a> Replay<'a> {
    /// Ready to start.
    ///
    /// # Errors
    /// When rules do not fit together, which those of a configuration that was loaded do.
    pub fn new(job: Job<'a>) -> Result<Replay<'a>, PolicyError> {
        let other = match job.compare {
            Some(other) => {
                let changes = Changes::new(&job.config.policy.rules, &other.policy.rules);
                Some((Side::new(other)?, changes))
            }
            None => None,
        };
        Ok(Replay {
            side: Side::new(job.config)?,
            other,
            what_if: job.what_if.then(|| WhatIf::new(&job.config.policy.rules)),
            decisions: job.decisions,
            trace: Trace::default(),
            matched: Vec::new(),
            line: Vec::new(),
        })
    }

    /// Replays a trace behind those before it.
    ///
    /// # Errors
    /// When it cannot be read to its end, or a decision cannot be written. What was read until then counts.
    pub fn read(
        &mut self,
        place: &Place,
        format: Option<Format>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), ReplayError> {
        let mut input = place.open(format)?;
        // Rules see no difference between a field that they do not look at and one that is not there.
        let sides = [Some(&self.side), self.other.as_ref().map(|(other, _)| other)];
        let rules: Vec<_> = sides.into_iter().flatten().map(|side| side.engine.rules()).collect();
        let mut event = Event::with_fields(&rules.iter().flat_map(|rules| rules.field_names()).collect::<Vec<_>>());
        loop {
            let line = match input.lines.read() {
                Ok(Some(Line::Whole(line))) => Ok(line),
                Ok(Some(Line::TooLong)) => Err(Unreadable::TooLong),
                Ok(None) => return Ok(()),
                Err(error) => {
                    return Err(ReplayError::Broken { name: place.name(), line: input.lines.number(), error });
                }
            };
            let outcome = match line.and_then(|line| text(line, input.format)) {
                Ok(line) if line.is_empty() => continue,
                Ok(line) => match input.format.read(&line, &mut event) {
                    Ok(()) => {
                        self.decide(&event, &line, input.format).map_err(ReplayError::Decisions)?;
                        Ok(())
                    }
                    Err(reason) => Err(reason),
                },
                Err(reason) => Err(reason),
            };
            self.trace.lines += 1;
            if let Err(reason) = outcome {
                self.trace.skip(place, input.lines.number(), reason);
            }
            if self.trace.lines.is_multiple_of(TOLD_EVERY) {
                let read = input.read.load(std::sync::atomic::Ordering::Relaxed);
                progress(Progress { lines: self.trace.lines, read, size: input.size });
            }
        }
    }

    fn decide(&mut self, event: &Event, line: &str, format: Format) -> io::Result<()> {
        let now = self.trace.time(event.time);
        let request = event.request(line);
        let op = op(event.operation);
        self.matched.clear();
        let decision = self.side.decide(op, &request, now, |rule| self.matched.push(rule));
        if op != Some(Op::Take) {
            self.trace.other_operations += 1;
        }
        if let Some((other, changes)) = &mut self.other {
            let second = other.decide(op, &request, now, |_| ());
            if op == Some(Op::Take) {
                let decided = [(&decision, &*self.side.policy.rules), (&second, &*other.policy.rules)];
                changes.add(decided, &request, now);
            }
        }
        if let Some(what_if) = &mut self.what_if {
            for &rule in &self.matched {
                what_if.add(rule, op, &request, now);
            }
        }
        match &mut self.decisions {
            Some(out) => {
                write_line(&mut self.line, &line[event.given.clone()], format, &decision);
                out.write_all(&self.line)
            }
            None => Ok(()),
        }
    }

    /// What the policy did.
    pub fn tally(&self) -> &Tally {
        &self.side.tally
    }

    /// What the other policy did, and what it would change.
    pub fn compared(&self) -> Option<(&Tally, &Changes)> {
        self.other.as_ref().map(|(other, changes)| (&other.tally, changes))
    }

    /// What other counts would have done.
    pub fn what_if(&self) -> Option<&WhatIf> {
        self.what_if.as_ref()
    }

    /// The counters that the policy holds at the end, and what it had to do to stay within its bounds.
    pub fn memory(&self) -> flowgate::MemoryStats {
        self.side.engine.memory().stats()
    }
}

impl Side {
    fn new(config: &Config) -> Result<Side, PolicyError> {
        let max_bytes = usize::try_from(config.store.max_memory.bytes()).unwrap_or(usize::MAX);
        let memory = MemoryConfig { max_bytes, when_full: config.store.when_full, seed: Seed::random() };
        let engine = Engine::new(&config.policy, Memory::new(memory))?;
        Ok(Side { policy: config.policy.clone(), engine, tally: Tally::new(&config.policy.rules) })
    }

    #[inline]
    fn decide(&mut self, op: Option<Op>, request: &Request<'_>, now: Time, mut matched: impl FnMut(usize)) -> Decision {
        let Side { engine, tally, .. } = self;
        let Some(op) = op else {
            // What a reset forgets is what a peek would ask.
            engine.decide_watched(Op::Peek, request, now, |plan| plan.rules().for_each(&mut matched));
            return engine.reset(request, now);
        };
        let decision = engine.decide_watched(op, request, now, |plan| {
            for rule in plan.rules() {
                tally.rules[rule].seen += u64::from(op == Op::Take);
                matched(rule);
            }
        });
        if op == Op::Take {
            tally.add(&decision, request, now);
        }
        decision
    }
}

impl Trace {
    /// The time at which a request is decided.
    #[inline]
    fn time(&mut self, written: Time) -> Time {
        self.late += u64::from(written < self.latest);
        self.latest = self.latest.max(written);
        self.first.get_or_insert(self.latest);
        self.latest
    }

    #[cold]
    fn skip(&mut self, place: &Place, line: u64, reason: Unreadable) {
        self.skipped += 1;
        if self.shown.len() < SHOWN_SKIPPED {
            self.shown.push(Skipped { trace: place.name(), line, reason });
        }
    }
}

/// `None` is a reset, which is no operation on counters.
fn op(operation: Operation) -> Option<Op> {
    match operation {
        Operation::Take => Some(Op::Take),
        Operation::Peek => Some(Op::Peek),
        Operation::Record => Some(Op::Record),
        Operation::Refund => Some(Op::Refund),
        Operation::Reset => None,
    }
}

/// A line as text. JSON must be UTF-8; whatever bytes clients had servers log are shown as well as they can be.
#[inline]
fn text(line: &[u8], format: Format) -> Result<Cow<'_, str>, Unreadable> {
    // Some editors begin a file with a mark.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok(text) => Ok(Cow::Borrowed(text.trim_ascii_end())),
        Err(_) if format == Format::Jsonl => Err(Unreadable::NotText),
        Err(_) => Ok(Cow::Owned(String::from_utf8_lossy(line).trim_ascii_end().to_owned())),
    }
}

/// A decision line: the time as it was given, then the decision.
fn write_line(out: &mut Vec<u8>, given: &str, format: Format, decision: &Decision) {
    out.clear();
    out.extend_from_slice(b"{\"ts\":");
    match format {
        Format::Jsonl => out.extend_from_slice(given.as_bytes()),
        Format::Combined | Format::Common => decision_json::write_text(out, given),
    }
    out.push(b',');
    decision_json::write_members(out, decision);
    out.extend_from_slice(b"}\n");
}
