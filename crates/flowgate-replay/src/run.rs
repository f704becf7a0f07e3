//! One run over the traces: each line once, in the order of their times, through the engine in virtual time.
//!
//! Rule       A line that cannot be read is skipped and counted; the first few are kept with the reason.
//! Rule       A line waits in [`Reorder`] until no earlier line can come.
//! Rule       [`LOOKAHEAD_LINES`] lines are planned before the first of them is decided. Their counters are prefetched
//!            meanwhile. A plan reads no counter, so the lookahead changes no decision.
//! Bound      Memory is independent of the length of the traces: `store.max_memory` of the configuration bounds the
//!            counters, constants bound everything else.

use std::borrow::Cow;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use flowgate::{MemoryConfig, MemoryStore, Op, Seed, Span, Time};
use flowgate_api::Operation;
use flowgate_engine::config::Config;
use flowgate_engine::{Decision, Engine, Plan, Policy, PolicyError, Request, RuleDef, RuleSet, http::escaped_text};

use super::batch::{Batch, HeldLine, ReadLine};
use super::compare::Changes;
use super::decisions::{DecisionLine, DecisionWriter};
use super::event::{Event, Format, LineError, WantedFields};
use super::fields_seen::FieldsSeen;
use super::input::{InputError, Source};
use super::lines::Line;
use super::policy_result::PolicyResult;
use super::reorder::Reorder;
use super::summary::{Names, Summary};
use super::trace::Trace;
use super::what_if::WhatIf;

/// Lines that are planned before the first of them is decided. The counters of 16 lines stay in the processor's cache.
const LOOKAHEAD_LINES: usize = 16;
/// Lines between two calls of the progress callback.
const PROGRESS_INTERVAL_LINES: u64 = 1 << 13;

/// A replay under way, and its results so far.
pub struct Replay<'a> {
    pub(crate) first: PolicyRun,
    /// The second policy, and the requests on which it differs from the first.
    pub(crate) second: Option<(PolicyRun, Changes)>,
    /// The limits at other counts.
    pub(crate) what_if: Option<WhatIf>,
    decisions: Option<DecisionWriter<'a>>,
    /// The lines read so far, and their times.
    pub(crate) trace: Trace,
    /// The lines that wait for their turn.
    pub(crate) reorder: Reorder,
    /// The fields that lines have had so far.
    pub(crate) fields_seen: FieldsSeen,
    /// The fields that the rules use.
    pub(crate) wanted: WantedFields,
}

/// The settings of a replay.
pub struct Job<'a> {
    /// The policy to try.
    pub config: &'a Config,
    /// A second policy to compare with.
    pub compare: Option<&'a Config>,
    /// Whether every limit is tried at other counts too.
    pub what_if: bool,
    /// The writer that gets every decision.
    pub decisions: Option<DecisionWriter<'a>>,
    /// The window in which lines are put in the order of their times.
    pub reorder: Span,
}

/// The compiled rules of both policies.
struct BothRules {
    first: Arc<RuleSet>,
    second: Option<Arc<RuleSet>>,
}

impl BothRules {
    fn new(first: &PolicyRun, second: Option<&(PolicyRun, Changes)>) -> BothRules {
        BothRules { first: first.engine.rules(), second: second.map(|(second, _)| second.engine.rules()) }
    }

    /// The fields that rules read, each once.
    fn field_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            std::iter::once(&self.first).chain(&self.second).flat_map(|rules| rules.field_names()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn planned_lines(&self) -> Vec<PlannedLine<'_>> {
        let new_line =
            |_| PlannedLine { plan: Plan::empty(&self.first), second_plan: self.second.as_deref().map(Plan::empty) };
        (0..LOOKAHEAD_LINES).map(new_line).collect()
    }
}

/// A policy, its engine and its results.
pub(crate) struct PolicyRun {
    policy: Policy,
    pub(crate) engine: Engine,
    pub(crate) result: PolicyResult,
}

/// A line that is planned and not yet decided. The value is reused for later lines, and with it the memory of its
/// plans.
struct PlannedLine<'r> {
    plan: Plan<'r>,
    /// The plan of the second policy.
    second_plan: Option<Plan<'r>>,
}

/// The progress of a replay.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Lines of all traces so far.
    pub lines: u64,
    /// Bytes of the current trace so far.
    pub read: u64,
    /// The size of the current trace in bytes, if known.
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
        /// The number of the last line that was read.
        line: u64,
        /// The reason.
        error: io::Error,
    },
    /// The caller has ended the replay.
    #[error("the replay was ended")]
    Stopped,
    /// The decisions could not be written.
    #[error("cannot write the decisions: {0}")]
    Decisions(io::Error),
}

impl<'a> Replay<'a> {
    /// A replay that has read no line.
    ///
    /// # Errors
    /// If the rules contradict each other. The rules of a loaded configuration are already checked.
    pub fn new(job: Job<'a>) -> Result<Replay<'a>, PolicyError> {
        let second = match job.compare {
            Some(second) => {
                let changes = Changes::new(&job.config.policy.rules, &second.policy.rules);
                Some((PolicyRun::new(second)?, changes))
            }
            None => None,
        };
        let first = PolicyRun::new(job.config)?;
        let rules = BothRules::new(&first, second.as_ref());
        Ok(Replay {
            wanted: WantedFields::named(&rules.field_names()),
            first,
            second,
            what_if: job.what_if.then(|| WhatIf::new(&job.config.policy.rules)),
            decisions: job.decisions,
            trace: Trace::default(),
            reorder: Reorder::new(job.reorder),
            fields_seen: FieldsSeen::default(),
        })
    }

    /// Replays a trace after the earlier ones. Its last lines wait for the start of the next trace.
    ///
    /// # Errors
    /// If the trace cannot be read to its end, or a decision cannot be written. The lines before the error count.
    pub fn read(
        &mut self,
        source: &Source,
        format: Option<Format>,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(), ReplayError> {
        let mut input = source.open(format)?;
        let number_of_source = self.trace.begin();
        self.fields_seen.begin(input.format);
        if let Some(decisions) = &mut self.decisions {
            decisions.begin(source, input.format).map_err(ReplayError::Decisions)?;
        }
        let keeps_time_text = self.decisions.is_some();
        let (mut event, mut second_event) = self.events();
        let rules = self.rules();
        let mut planned = rules.planned_lines();
        loop {
            let block = match input.lines.block() {
                Ok(Some(block)) => block,
                Ok(None) => return Ok(()),
                Err(error) => {
                    return Err(ReplayError::Broken { name: source.name(), line: input.lines.number, error });
                }
            };
            for (number, line) in block {
                match read(line, input.format, &mut event) {
                    Ok(None) => continue,
                    Ok(Some(text)) => {
                        if let Some(event) = &mut second_event {
                            // The first event was read from the same line, so this read succeeds.
                            let _ = input.format.read(&text, event);
                        }
                        self.fields_seen.note(&event, &text);
                        let time = self.trace.time(event.time, source, number, &self.reorder);
                        self.decide_due(&mut planned)?;
                        self.reorder.add(&ReadLine {
                            time,
                            source: number_of_source,
                            number,
                            text: &text,
                            event: &event,
                            second_event: second_event.as_ref(),
                            keeps_time_text,
                        });
                    }
                    Err(reason) => self.trace.skip(source, number, reason),
                }
                self.trace.lines += 1;
                if self.trace.lines.is_multiple_of(PROGRESS_INTERVAL_LINES) {
                    let read = input.read.load(std::sync::atomic::Ordering::Relaxed);
                    let progress = progress(Progress { lines: self.trace.lines, read, size: input.size });
                    if progress.is_break() {
                        return Err(ReplayError::Stopped);
                    }
                }
            }
        }
    }

    /// Decides the lines that still wait, and sums up. The error is that of writing the last decisions.
    pub fn finish(mut self, names: Names) -> (Summary, Result<(), ReplayError>) {
        let rules = self.rules();
        let mut planned = rules.planned_lines();
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(batch) = self.reorder.take_first()
        {
            outcome = self.decide_batch(&batch, &mut planned);
        }
        (Summary::new(&self, names), outcome)
    }

    /// The rules of both policies.
    fn rules(&self) -> BothRules {
        BothRules::new(&self.first, self.second.as_ref())
    }

    /// Events that read lines for both policies; the second is present when the two policies spell paths differently.
    fn events(&self) -> (Event, Option<Event>) {
        let rules = self.rules();
        let spelling = rules.first.path_spelling;
        let second_spelling = rules.second.as_ref().map(|rules| rules.path_spelling);
        let field_names = rules.field_names();
        // Decision lines show every field. The rules read only the fields that they name.
        let shows_all_fields = self.decisions.is_some();
        let new_event = |spelling| {
            let names = &field_names;
            let event = if shows_all_fields { Event::with_all_fields(names) } else { Event::with_fields(names) };
            event.with_spelling(spelling)
        };
        (new_event(spelling), second_spelling.filter(|second| *second != spelling).map(new_event))
    }

    /// Decides all lines that are due: no line that is still to be read can be earlier.
    #[inline]
    fn decide_due(&mut self, planned: &mut [PlannedLine<'_>]) -> Result<(), ReplayError> {
        while let Some(batch) = self.reorder.due(self.trace.latest) {
            self.decide_batch(&batch, planned)?;
            self.reorder.recycle(batch);
        }
        Ok(())
    }

    /// Decides the lines of a batch, in order.
    fn decide_batch(&mut self, batch: &Batch, planned: &mut [PlannedLine<'_>]) -> Result<(), ReplayError> {
        let wanted = self.wanted.clone();
        for lines in batch.lines.chunks(LOOKAHEAD_LINES) {
            for (line, next) in lines.iter().zip(&mut *planned) {
                self.plan(next, batch, line, &wanted);
            }
            for (line, next) in lines.iter().zip(&mut *planned) {
                self.decide(next, batch, line, &wanted).map_err(ReplayError::Decisions)?;
            }
        }
        Ok(())
    }

    /// Plans a line under each policy.
    #[inline]
    fn plan(&self, next: &mut PlannedLine<'_>, batch: &Batch, line: &HeldLine, wanted: &WantedFields) {
        let request = batch.request(line, wanted);
        self.first.plan(&mut next.plan, line.operation, &request, line.time);
        if let (Some((second, _)), Some(plan)) = (&self.second, &mut next.second_plan) {
            let second_request = batch.second_request(line, wanted);
            second.plan(plan, line.operation, second_request.as_ref().unwrap_or(&request), line.time);
        }
    }

    #[inline]
    fn decide(
        &mut self,
        next: &mut PlannedLine<'_>,
        batch: &Batch,
        line: &HeldLine,
        wanted: &WantedFields,
    ) -> io::Result<()> {
        let PlannedLine { plan, second_plan } = next;
        let &HeldLine { operation, time: now, .. } = line;
        let is_take = operation == Operation::Take;
        let request = || batch.request(line, wanted);
        self.first.apply(operation, plan, request, now);
        self.trace.other_operations += u64::from(!is_take);
        if self.second.is_none() && self.decisions.is_none() && is_take && plan.merely_passes() {
            // The counts need only the verdict, so the decision is not built.
            self.first.result.count(true, plan.matched(), now);
        } else {
            let request = request();
            let decision = self.first.conclude(operation, plan, &request, now);
            if let (Some((second, changes)), Some(plan)) = (&mut self.second, second_plan) {
                let second_request = batch.second_request(line, wanted);
                let second_request = second_request.as_ref().unwrap_or(&request);
                second.apply(operation, plan, || second_request.clone(), now);
                let second_decision = second.conclude(operation, plan, second_request, now);
                if is_take {
                    let decisions = [(&decision, &*self.first.policy.rules), (&second_decision, &*second.policy.rules)];
                    changes.add(decisions, &request, now);
                }
            }
            if let Some(decisions) = &mut self.decisions {
                decisions.write(&DecisionLine { batch, line, wanted, decision: &decision })?;
            }
        }
        if let Some(what_if) = &mut self.what_if {
            let request = request();
            plan.rules().for_each(|rule| what_if.add(rule, operation, &request, now));
        }
        Ok(())
    }

    /// The rules and the results of each policy, the first policy first.
    pub(crate) fn policies(&self) -> impl Iterator<Item = (&[RuleDef], &PolicyResult)> {
        let second = self.second.as_ref().map(|(second, _)| second);
        std::iter::once(&self.first).chain(second).map(|run| (&*run.policy.rules, &run.result))
    }
}

impl PolicyRun {
    fn new(config: &Config) -> Result<PolicyRun, PolicyError> {
        let max_bytes = usize::try_from(config.store.max_memory.bytes()).unwrap_or(usize::MAX);
        let memory = MemoryConfig { max_bytes, when_full: config.store.when_full, seed: Seed::random() };
        let engine = Engine::new(&config.policy, MemoryStore::new(memory))?;
        Ok(PolicyRun { policy: config.policy.clone(), engine, result: PolicyResult::new(&config.policy.rules) })
    }

    /// Plans a request and prefetches its counters.
    #[inline]
    fn plan(&self, plan: &mut Plan<'_>, operation: Operation, request: &Request<'_>, now: Time) {
        let op = match operation {
            Operation::Take => Op::Take,
            // A reset forgets the counters that a peek reads.
            Operation::Peek | Operation::Reset => Op::Peek,
            Operation::Record => Op::Record,
            Operation::Refund => Op::Refund,
        };
        self.engine.plan_into(plan, op, request, now);
        self.engine.prefetch_plan(plan);
    }

    #[inline]
    fn apply<'q>(
        &mut self,
        operation: Operation,
        plan: &mut Plan<'_>,
        request: impl FnOnce() -> Request<'q>,
        now: Time,
    ) {
        self.engine.apply(plan, request, now);
        if operation == Operation::Take {
            plan.rules().for_each(|rule| self.result.rules[rule].seen += 1);
        }
    }

    fn conclude(&mut self, operation: Operation, plan: &Plan<'_>, request: &Request<'_>, now: Time) -> Decision {
        if operation == Operation::Reset {
            return self.engine.reset(request, now);
        }
        let decision = plan.conclude(now);
        if operation == Operation::Take {
            self.result.add(&decision, request, now);
        }
        decision
    }
}

/// Reads a line into `event`; `None` is an empty line.
#[inline]
fn read<'t>(line: Line<'t>, format: Format, event: &mut Event) -> Result<Option<Cow<'t, str>>, LineError> {
    let Line::Whole(line) = line else { return Err(LineError::TooLong) };
    let line = text(line, format)?;
    if line.is_empty() {
        return Ok(None);
    }
    format.read(&line, event)?;
    Ok(Some(line))
}

/// A line as text. JSON must be UTF-8. An access log holds the bytes that clients sent, so bytes outside UTF-8 are
/// escaped there.
#[inline]
fn text(line: &[u8], format: Format) -> Result<Cow<'_, str>, LineError> {
    // Some editors write a byte order mark at the start of a file.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok(text) => Ok(Cow::Borrowed(text.trim_ascii_end())),
        Err(_) if format == Format::Jsonl => Err(LineError::NotText),
        Err(_) => Ok(Cow::Owned(escaped_text(line).trim_ascii_end().to_owned())),
    }
}
