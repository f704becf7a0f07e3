//! Commands of a pipeline that are planned together before the first of them is decided.
//!
//! Rule       `FG.TAKE`, `FG.LIMIT` and `CL.THROTTLE` are read, planned and their counters prefetched up to [`MAX_GROUP`] at a
//!            time. Then they are decided one after the other. The answers are the same; the cache misses of the group
//!            overlap.
//! Rule       A group ends before any other command, and before one that is not of the usual form (a wrong number of words,
//!            an option). Such a command is answered by its own function.
//! Rule       The plans of takes are made in place, in memory that the event loop keeps from group to group.
//! Invariant  No command of a group changes what the session may do, so the session is checked once.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;

use flowgate::{Key, Limit, MemoryStore, Reading, Throttle};
use flowgate_engine::{HitBuffer, PlannedTake, Request};
use smallvec::SmallVec;

use super::command::{self, Planning};
use super::decode::{Decoder, PlainCommand};
use super::error::Error;
use super::reply::Reply;
use super::session::Session;
use crate::limit_cache;
use crate::observer::PassCounts;
use crate::service::{HashedKey, Snapshot};

/// More commands gain nothing measurable, and their cache lines would push out each other.
pub(super) const MAX_GROUP: usize = 16;

thread_local! {
    static TAKES: Cell<Vec<PlannedTake>> = const { Cell::new(Vec::new()) };
}

/// Commands that stand one behind the other in the decoder.
#[derive(Debug)]
pub(super) struct Group<'d> {
    commands: SmallVec<[PlannedCommand<'d>; MAX_GROUP]>,
    /// The plans of the takes among them, and older plans behind those.
    takes: Vec<PlannedTake>,
    planned_takes: usize,
}

/// A command whose counters the processor is fetching.
#[derive(Debug)]
pub(super) struct PlannedCommand<'d> {
    /// The number of its arguments.
    pub(super) arguments: usize,
    /// The bytes of the command.
    bytes: &'d [u8],
    question: Question<'d>,
}

#[derive(Debug)]
enum Question<'d> {
    /// The number of its plan.
    Take(usize),
    Limit {
        key: &'d [u8],
        counter: HashedKey,
        limit: Rc<Limit>,
    },
    Throttle {
        key: &'d [u8],
        counter: HashedKey,
        throttle: Throttle,
    },
}

/// What is known of the first command that a client has sent, from its arrival until it is answered.
#[derive(Debug)]
pub(super) enum FirstCommand {
    Take { plan: PlannedTake, size: usize, arguments: usize },
    Key(HashedKey),
}

/// Plans the first command that `decoder` holds.
pub(super) fn plan_first(decoder: &Decoder, session: &Session) -> Option<FirstCommand> {
    if !may_plan(session) {
        return None;
    }
    let (command, service) = (decoder.plain_command(0)?, &session.shared.service);
    match command::planning(command.word(0)?)? {
        Planning::Take => {
            let mut plan = PlannedTake::default();
            service.plan_take(&service.load_snapshot(), command::take_fields(&command)?, &mut plan);
            plan.subjects().for_each(|(subject, rules)| service.counters().prefetch_several(subject, rules));
            Some(FirstCommand::Take { plan, size: command.bytes.len(), arguments: command.arguments() })
        }
        Planning::Limit | Planning::Throttle => {
            let key = service.hash_key(session.key(command.word(1)?))?;
            service.counters().prefetch(key.key());
            Some(FirstCommand::Key(key))
        }
    }
}

/// Whether the session may use the commands at all, and they are decided at once.
fn may_plan(session: &Session) -> bool {
    session.authenticated && session.transaction.is_none() && session.shared.service.answers_at_once()
}

impl<'d> Group<'d> {
    /// Plans the commands that `decoder` holds, of which the first may be planned already.
    pub(super) fn plan(
        decoder: &'d Decoder,
        session: &Session,
        snapshot: &Snapshot,
        first: Option<FirstCommand>,
    ) -> Group<'d> {
        let mut group = Group { commands: SmallVec::new(), takes: TAKES.take(), planned_takes: 0 };
        group.takes.resize_with(MAX_GROUP, PlannedTake::default);
        if may_plan(session) {
            group.plan_all(decoder, session, snapshot, first);
        }
        group
    }

    #[inline]
    fn plan_all(&mut self, decoder: &'d Decoder, session: &Session, snapshot: &Snapshot, first: Option<FirstCommand>) {
        let (mut from, mut counter) = (0, None);
        match first {
            None => {}
            Some(FirstCommand::Take { plan, size, arguments }) => {
                self.takes[0] = plan;
                let question = self.next_take();
                self.commands.push(PlannedCommand { arguments, bytes: decoder.ahead(size), question });
                from = size;
            }
            Some(FirstCommand::Key(hashed)) => counter = Some(hashed),
        }
        let mut command = PlainCommand::default();
        while self.commands.len() < MAX_GROUP
            && decoder.read_plain_command(from, &mut command).is_some()
            && let Some(question) = self.plan_next(&command, session, snapshot, counter.take())
        {
            from += command.bytes.len();
            self.commands.push(PlannedCommand { arguments: command.arguments(), bytes: command.bytes, question });
        }
        if self.commands.len() > 1 {
            self.prefetch(session.shared.service.counters());
        }
    }

    /// Reads a command and plans it; its key may be hashed already. `None` if it is not of the usual form. The counters of
    /// `CL.THROTTLE` are few bytes, and planning one takes no longer than fetching them: they are prefetched here.
    #[inline]
    fn plan_next(
        &mut self,
        command: &PlainCommand<'d>,
        session: &Session,
        snapshot: &Snapshot,
        hashed: Option<HashedKey>,
    ) -> Option<Question<'d>> {
        let service = &session.shared.service;
        let hash = |key| hashed.or_else(|| service.hash_key(session.key(key)));
        match command::planning(command.word(0)?)? {
            Planning::Take => {
                let plan = &mut self.takes[self.planned_takes];
                service.plan_take(snapshot, command::take_fields(command)?, plan);
                Some(self.next_take())
            }
            Planning::Limit => {
                let (2, key, limit) = (command.arguments(), command.word(1)?, command.word(2)?) else { return None };
                let limit = limit_cache::parse(str::from_utf8(limit).ok()?).ok()?;
                Some(Question::Limit { key, counter: hash(key)?, limit })
            }
            Planning::Throttle => {
                let key = command.word(1)?;
                let throttle = command::throttle_numbers(command.arguments(), |index| command.word(index + 1)).ok()?;
                let counter = hash(key)?;
                service.counters().prefetch_several(counter.key(), 1);
                Some(Question::Throttle { key, counter, throttle })
            }
        }
    }

    /// The take whose plan was just made.
    #[inline]
    fn next_take(&mut self) -> Question<'d> {
        self.planned_takes += 1;
        Question::Take(self.planned_takes - 1)
    }

    /// Prefetches the counters of limits and their sliding logs, one step after the other for all of them. A prefetch waits
    /// for the translation of its address, so those of a step stand close together: then the processor translates several at
    /// a time.
    fn prefetch(&self, memory: &MemoryStore) {
        // A key of each subject, and at least how many counters the subject has.
        let mut subjects: SmallVec<[(Key, usize); 2 * MAX_GROUP]> = SmallVec::new();
        for command in &self.commands {
            match &command.question {
                Question::Take(number) => subjects.extend(self.takes[*number].subjects()),
                Question::Limit { counter, .. } => subjects.push((counter.key(), 1)),
                Question::Throttle { .. } => {}
            }
        }
        subjects.iter().for_each(|(subject, counters)| memory.prefetch_several(*subject, *counters));
        subjects.retain(|(subject, _)| memory.prefetch_logs(*subject));
        subjects.iter().for_each(|(subject, _)| memory.prefetch_entries(*subject));
    }

    /// The commands, in order.
    pub(super) fn commands(&self) -> &[PlannedCommand<'d>] {
        &self.commands
    }

    /// Decides one of its commands and writes the reply. Breaks if the command's own function must answer it, because other
    /// rules came into force; then nothing has happened.
    #[inline]
    pub(super) fn answer<'r>(
        &self,
        command: &PlannedCommand<'_>,
        session: &mut Session,
        work: &mut TakeWork<'r>,
        at: Reading,
        out: &mut Vec<u8>,
    ) -> ControlFlow<()> {
        let (service, mut reply) = (&session.shared.service, Reply { out, version: session.version });
        match &command.question {
            Question::Take(number) => {
                let TakeWork { snapshot, hits, counts } = work;
                let request = || request_in(command.bytes);
                match service.take_planned(snapshot, &self.takes[*number], hits, counts, request, at) {
                    Some(answer) => command::write_answer(&answer, &mut reply),
                    None => return ControlFlow::Break(()),
                }
            }
            Question::Limit { key, counter, limit } => match service.take_hashed(*counter, limit, at) {
                Ok(decision) => {
                    session.batch.count_key(service, key, decision.allowed(), at);
                    command::write_limit(&decision, &mut reply);
                }
                Err(error) => reply.error(&Error::from(error).to_string()),
            },
            Question::Throttle { key, counter, throttle } => match service.throttle_hashed(*counter, throttle, at) {
                Ok(answer) => {
                    session.batch.count_key(service, key, !answer.limited, at);
                    reply.integers(answer.numbers());
                }
                Err(error) => reply.error(&Error::from(error).to_string()),
            },
        }
        ControlFlow::Continue(())
    }
}

/// Keeps the memory of the plans for the next group.
impl Drop for Group<'_> {
    fn drop(&mut self) {
        TAKES.set(std::mem::take(&mut self.takes));
    }
}

impl PlannedCommand<'_> {
    /// The bytes of the command.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// What the takes of a group share: the rules, the memory of their hits, and their counts, which are reported once.
#[derive(Debug)]
pub(super) struct TakeWork<'r> {
    snapshot: &'r Snapshot,
    hits: HitBuffer<'r>,
    counts: PassCounts<'r>,
}

impl<'r> TakeWork<'r> {
    pub(super) fn new(snapshot: &'r Snapshot) -> TakeWork<'r> {
        TakeWork { snapshot, hits: HitBuffer::default(), counts: PassCounts::default() }
    }
}

/// The request of a planned `FG.TAKE`.
fn request_in(bytes: &[u8]) -> Request<'_> {
    PlainCommand::read(bytes).and_then(|command| command::request(&command)).unwrap_or_default()
}
