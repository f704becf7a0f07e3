//! The pass over the traces: each line once, in order, through the engine in virtual time.
//!
//! Rule       A line that cannot be read is skipped and counted; the first few are kept with the reason.
//! Rule       A few lines are read and planned before the first of them is decided, so that the counters which they ask
//!            for are on their way into the cache meanwhile. A plan looks at no counter, so no answer depends on that.
//! Bound      Memory does not depend on the length of the traces: counters are bounded by the configuration's
//!            `store.max_memory`, everything else by a constant.

use std::borrow::Cow;
use std::io;

use flowgate::{Memory, MemoryConfig, Op, Seed, Time};
use flowgate_engine::config::Config;
use flowgate_engine::{Decision, Engine, Plan, Policy, PolicyError, Request, escaped_text};
use flowgate_server::Operation;

use super::compare::Changes;
use super::decisions::{Decided, Decisions};
use super::event::{Event, Format, Unreadable};
use super::input::{InputError, Place};
use super::lines::Line;
use super::tally::Tally;
use super::trace::Trace;
use super::what_if::WhatIf;

/// So many lines are read before the first of them is decided: to read one takes longer than to fetch a counter, and
/// what is fetched for so few stays in the cache.
const AHEAD: usize = 16;
/// How often whoever waits is told, in lines.
const TOLD_EVERY: u64 = 1 << 13;

/// A replay under way, and what it has found.
pub struct Replay<'a> {
    side: Side,
    other: Option<(Side, Changes)>,
    what_if: Option<WhatIf>,
    decisions: Option<Decisions<'a>>,
    /// What was read.
    pub trace: Trace,
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
    pub decisions: Option<Decisions<'a>>,
}

/// A policy and what it did.
struct Side {
    policy: Policy,
    engine: Engine,
    tally: Tally,
}

/// A line that was read and is yet to be decided. It keeps its place, and with it the memory of its plan.
struct Ahead<'r> {
    number: u64,
    event: Event,
    /// The same line as the other policy sees it, where that spells paths differently.
    other_event: Option<Event>,
    /// `None` is a reset, which is no operation on counters.
    op: Option<Op>,
    now: Time,
    plan: Plan<'r>,
    /// What the other policy makes of it.
    other: Option<Plan<'r>>,
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
        self.trace.begin();
        if let Some(decisions) = &mut self.decisions {
            decisions.begin(place);
        }
        let rules = self.side.engine.rules();
        let other_rules = self.other.as_ref().map(|(other, _)| other.engine.rules());
        // Rules see no difference between a field that they do not look at and one that is not there; people do.
        let shows_fields = self.decisions.is_some();
        let both = std::iter::once(&rules).chain(&other_rules);
        let names: Vec<&str> = both.flat_map(|rules| rules.field_names()).collect();
        let spelling = rules.path_spelling();
        let other_spelling = other_rules.as_ref().map(|rules| rules.path_spelling()).filter(|other| *other != spelling);
        let blank = || if shows_fields { Event::default() } else { Event::with_fields(&names) };
        let place_ahead = |_| Ahead {
            number: 0,
            event: blank().spelled(spelling),
            other_event: other_spelling.map(|other| blank().spelled(other)),
            op: None,
            now: Time::EPOCH,
            plan: Plan::empty(&rules),
            other: other_rules.as_deref().map(Plan::empty),
        };
        let mut ahead: Vec<Ahead<'_>> = (0..AHEAD).map(place_ahead).collect();
        loop {
            let block = match input.lines.block() {
                Ok(Some(block)) => block,
                Ok(None) => return Ok(()),
                Err(error) => {
                    return Err(ReplayError::Broken { name: place.name(), line: input.lines.number(), error });
                }
            };
            let mut lines = Vec::with_capacity(AHEAD);
            for (number, line) in block {
                let next = &mut ahead[lines.len()];
                match read(line, input.format, &mut next.event) {
                    Ok(None) => continue,
                    Ok(Some(line)) => {
                        next.number = number;
                        if let Some(event) = &mut next.other_event {
                            // The line was read a moment ago, so this does not fail.
                            let _ = input.format.read(&line, event);
                        }
                        next.now = self.trace.time(next.event.time, place, number);
                        self.plan(next, &line);
                        lines.push(line);
                    }
                    Err(reason) => self.trace.skip(place, number, reason),
                }
                self.trace.lines += 1;
                if lines.len() == AHEAD {
                    self.decide_all(&mut ahead, &mut lines, input.format)?;
                }
                if self.trace.lines.is_multiple_of(TOLD_EVERY) {
                    let read = input.read.load(std::sync::atomic::Ordering::Relaxed);
                    progress(Progress { lines: self.trace.lines, read, size: input.size });
                }
            }
            self.decide_all(&mut ahead, &mut lines, input.format)?;
        }
    }

    /// Plans a line that was read.
    #[inline]
    fn plan(&self, next: &mut Ahead<'_>, line: &str) {
        let Ahead { event, other_event, op, now, plan, other, .. } = next;
        *op = operation(event.operation);
        let request = event.request(line);
        self.side.plan(plan, *op, &request, *now);
        if let Some(((side, _), plan)) = self.other.as_ref().zip(other.as_mut()) {
            let other_request = other_event.as_ref().map(|event| event.request(line));
            side.plan(plan, *op, other_request.as_ref().unwrap_or(&request), *now);
        }
    }

    /// Decides the lines that were read, of which each has its place.
    fn decide_all(
        &mut self,
        ahead: &mut [Ahead<'_>],
        lines: &mut Vec<Cow<'_, str>>,
        format: Format,
    ) -> Result<(), ReplayError> {
        for (line, next) in lines.drain(..).zip(ahead) {
            self.decide(next, &line, format).map_err(ReplayError::Decisions)?;
        }
        Ok(())
    }

    #[inline]
    fn decide(&mut self, next: &mut Ahead<'_>, line: &str, format: Format) -> io::Result<()> {
        let Ahead { number, event, other_event, op, now, plan, other } = next;
        let (number, op, now) = (*number, *op, *now);
        let request = || event.request(line);
        self.side.apply(op, plan, request, now);
        self.trace.other_operations += u64::from(op != Some(Op::Take));
        if self.other.is_none() && self.decisions.is_none() && op == Some(Op::Take) && plan.merely_passes() {
            // Nobody asks for more than that it passed.
            self.side.tally.add_passed(plan.matched(), now);
        } else {
            let request = request();
            let decision = self.side.conclude(op, plan, &request, now);
            if let Some(((side, changes), plan)) = self.other.as_mut().zip(other.as_mut()) {
                let other_request = other_event.as_ref().map(|event| event.request(line));
                let asked = other_request.as_ref().unwrap_or(&request);
                side.apply(op, plan, || asked.clone(), now);
                let second = side.conclude(op, plan, asked, now);
                if op == Some(Op::Take) {
                    let decided = [(&decision, &*self.side.policy.rules), (&second, &*side.policy.rules)];
                    changes.add(decided, &request, now);
                }
            }
            if let Some(decisions) = &mut self.decisions {
                let time = &line[event.given.clone()];
                decisions.write(Decided { number, time, format, request: &request, decision: &decision })?;
            }
        }
        if let Some(what_if) = &mut self.what_if {
            let request = request();
            plan.rules().for_each(|rule| what_if.add(rule, op, &request, now));
        }
        Ok(())
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

    /// Works out what a request asks of the counters, which are fetched meanwhile.
    #[inline]
    fn plan(&self, plan: &mut Plan<'_>, op: Option<Op>, request: &Request<'_>, now: Time) {
        // What a reset forgets is what a peek would ask.
        self.engine.plan_into(plan, op.unwrap_or(Op::Peek), request, now);
        self.engine.expect_plan(plan);
    }

    #[inline]
    fn apply<'q>(&mut self, op: Option<Op>, plan: &mut Plan<'_>, request: impl FnOnce() -> Request<'q>, now: Time) {
        self.engine.apply(plan, request, now);
        if op == Some(Op::Take) {
            plan.rules().for_each(|rule| self.tally.rules[rule].seen += 1);
        }
    }

    fn conclude(&mut self, op: Option<Op>, plan: &Plan<'_>, request: &Request<'_>, now: Time) -> Decision {
        if op.is_none() {
            return self.engine.reset(request, now);
        }
        let decision = plan.conclude(now);
        if op == Some(Op::Take) {
            self.tally.add(&decision, request, now);
        }
        decision
    }
}

/// `None` is a reset, which is no operation on counters.
fn operation(operation: Operation) -> Option<Op> {
    match operation {
        Operation::Take => Some(Op::Take),
        Operation::Peek => Some(Op::Peek),
        Operation::Record => Some(Op::Record),
        Operation::Refund => Some(Op::Refund),
        Operation::Reset => None,
    }
}

/// Reads a line into `event`; `None` where it is empty.
#[inline]
fn read<'t>(line: Line<'t>, format: Format, event: &mut Event) -> Result<Option<Cow<'t, str>>, Unreadable> {
    let Line::Whole(line) = line else { return Err(Unreadable::TooLong) };
    let line = text(line, format)?;
    if line.is_empty() {
        return Ok(None);
    }
    format.read(&line, event)?;
    Ok(Some(line))
}

/// A line as text. JSON must be UTF-8; whatever bytes clients had servers log are shown as well as they can be.
#[inline]
fn text(line: &[u8], format: Format) -> Result<Cow<'_, str>, Unreadable> {
    // Some editors begin a file with a mark.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok(text) => Ok(Cow::Borrowed(text.trim_ascii_end())),
        Err(_) if format == Format::Jsonl => Err(Unreadable::NotText),
        Err(_) => Ok(Cow::Owned(escaped_text(line).trim_ascii_end().to_owned())),
    }
}
