//! Commands of a pipeline that are planned together before the first of them is decided.
//!
//! Rule       `FG.TAKE` and `FG.LIMIT` are read, planned and their counters prefetched up to [`MAX_GROUP`] at a time. Then
//!            they are decided one after the other. The answers are the same; the cache misses of the group overlap.
//! Rule       A group ends before any other command, and before one that is not of the usual form (a wrong number of words,
//!            an option). Such a command is answered by its own function.
//! Invariant  No command of a group changes what the session may do, so the session is checked once.

use std::ops::ControlFlow;
use std::rc::Rc;

use flowgate::{Key, Limit, MemoryStore, Reading};
use flowgate_engine::{HitBuffer, PlannedTake, Request};
use smallvec::SmallVec;

use super::command::{self, Planning};
use super::decode::{Decoder, PlainCommand};
use super::error::Error;
use super::reply::Reply;
use super::session::Session;
use crate::limit_cache;
use crate::service::{PrefetchedKey, Snapshot};

/// More commands gain nothing measurable, and their cache lines would push out each other.
pub(super) const MAX_GROUP: usize = 16;

/// Commands that stand one behind the other in the decoder.
pub(super) type Group<'d> = SmallVec<[PlannedCommand<'d>; MAX_GROUP]>;

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
    Take(PlannedTake),
    Limit { key: &'d [u8], counter: PrefetchedKey, limit: Rc<Limit> },
}

/// The plan of the first command that a client has sent, from its arrival until it is answered.
#[derive(Debug)]
pub(super) enum FirstCommand {
    Take { plan: PlannedTake, size: usize, arguments: usize },
    Limit(PrefetchedKey),
}

/// Plans the first command that `decoder` holds.
pub(super) fn plan_first(decoder: &Decoder, session: &Session) -> Option<FirstCommand> {
    if !may_plan(session) {
        return None;
    }
    let command = decoder.plain_command(0)?;
    Some(match plan(&command, session, &session.shared.service.load_snapshot(), None)? {
        Question::Take(plan) => FirstCommand::Take { plan, size: command.bytes.len(), arguments: command.arguments() },
        Question::Limit { counter, .. } => FirstCommand::Limit(counter),
    })
}

/// Plans the commands that `decoder` holds, of which the first may be planned already, and adds them to `group`.
pub(super) fn plan_group<'d>(
    group: &mut Group<'d>,
    decoder: &'d Decoder,
    session: &Session,
    snapshot: &Snapshot,
    first: Option<FirstCommand>,
) {
    let (mut from, mut counter) = (0, None);
    if !may_plan(session) {
        return;
    }
    match first {
        None => {}
        Some(FirstCommand::Take { plan, size, arguments }) => {
            group.push(PlannedCommand { arguments, bytes: decoder.ahead(size), question: Question::Take(plan) });
            from = size;
        }
        Some(FirstCommand::Limit(prefetched)) => counter = Some(prefetched),
    }
    while group.len() < MAX_GROUP
        && let Some(command) = decoder.plain_command(from)
        && let Some(question) = plan(&command, session, snapshot, counter.take())
    {
        from += command.bytes.len();
        group.push(PlannedCommand { arguments: command.arguments(), bytes: command.bytes, question });
    }
    if group.len() > 1 {
        prefetch_logs(group, session.shared.service.counters());
    }
}

/// Prefetches the sliding logs of the counters, one step after the other for all of them.
fn prefetch_logs(group: &Group<'_>, memory: &MemoryStore) {
    let mut with_logs: SmallVec<[Key; 2 * MAX_GROUP]> = SmallVec::new();
    let mut look = |counter: Key| {
        if memory.prefetch_logs(counter) {
            with_logs.push(counter);
        }
    };
    for command in group {
        match &command.question {
            Question::Take(plan) => plan.subjects().for_each(&mut look),
            Question::Limit { counter, .. } => look(counter.key()),
        }
    }
    with_logs.into_iter().for_each(|counter| memory.prefetch_entries(counter));
}

/// Whether the session may use the commands at all, and they are decided at once.
fn may_plan(session: &Session) -> bool {
    session.authenticated && session.transaction.is_none() && session.shared.service.answers_at_once()
}

/// Reads a command, plans it, and prefetches its counters, unless its counter is prefetched. `None` if it is not of the usual
/// form.
#[inline]
fn plan<'d>(
    command: &PlainCommand<'d>,
    session: &Session,
    snapshot: &Snapshot,
    prefetched: Option<PrefetchedKey>,
) -> Option<Question<'d>> {
    match command::planning(command.word(0)?)? {
        Planning::Take => Some(Question::Take(session.shared.service.plan_take(snapshot, &command::request(command)?))),
        Planning::Limit => {
            let (2, key, limit) = (command.arguments(), command.word(1)?, command.word(2)?) else { return None };
            let limit = limit_cache::parse(str::from_utf8(limit).ok()?).ok()?;
            let counter = prefetched.or_else(|| session.shared.service.prefetch(session.key(key)))?;
            Some(Question::Limit { key, counter, limit })
        }
    }
}

impl PlannedCommand<'_> {
    /// The bytes of the command.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Decides the command and writes its reply. Breaks if its own function must answer it, because other rules came into
    /// force; then nothing has happened.
    #[inline]
    pub(super) fn answer<'r>(
        &self,
        session: &mut Session,
        snapshot: &'r Snapshot,
        buffer: &mut HitBuffer<'r>,
        at: Reading,
        out: &mut Vec<u8>,
    ) -> ControlFlow<()> {
        let (service, mut reply) = (&session.shared.service, Reply { out, version: session.version });
        match &self.question {
            Question::Take(plan) => match service.take_planned(snapshot, plan, buffer, || request_in(self.bytes), at) {
                Some(decision) => command::write_decision(&decision, &mut reply),
                None => return ControlFlow::Break(()),
            },
            Question::Limit { key, counter, limit } => match service.take_prefetched(*counter, limit, at) {
                Ok(decision) => {
                    session.batch.count_key(service, key, decision.allowed(), at);
                    command::write_limit(&decision, &mut reply);
                }
                Err(error) => reply.error(&Error::from(error).to_string()),
            },
        }
        ControlFlow::Continue(())
    }
}

/// The request of a planned `FG.TAKE`.
fn request_in(bytes: &[u8]) -> Request<'_> {
    PlainCommand::read(bytes).and_then(|command| command::request(&command)).unwrap_or_default()
}
