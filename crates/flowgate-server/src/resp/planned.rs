//! Commands of a pipeline that are planned together before the first of them is decided.
//!
//! Rule       `FG.TAKE` and `FG.LIMIT` are read, planned and their counters prefetched up to [`MAX_GROUP`] at a time. Then
//!            they are decided one after the other. The answers are the same; the cache misses of the group overlap.
//! Rule       A group ends before any other command, and before one that is not of the usual form (a wrong number of words,
//!            an option). Such a command is answered by its own function.
//! Invariant  No command of a group changes what the session may do, so the session is checked once.

use std::ops::ControlFlow;

use flowgate::{Key, Reading};
use flowgate_engine::{PlannedTake, Request};
use smallvec::SmallVec;

use super::command::{self, Planning};
use super::decode::{Decoder, Words, plain_command};
use super::error::Error;
use super::reply::Reply;
use super::session::Session;
use crate::service::{Answer, KeyDecision, Operation, PrefetchedKey, Snapshot};

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
    Limit { key: &'d [u8], counter: PrefetchedKey, limit: &'d str },
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
    let (words, bytes) = decoder.plain_command(0)?;
    Some(match plan(&words, session, &session.shared.service.load_snapshot(), None)? {
        Question::Take(plan) => FirstCommand::Take { plan, size: bytes.len(), arguments: words.len() - 1 },
        Question::Limit { counter, .. } => FirstCommand::Limit(counter),
    })
}

/// Plans the commands that `decoder` holds, of which the first may be planned already.
pub(super) fn plan_group<'d>(decoder: &'d Decoder, session: &Session, first: Option<FirstCommand>) -> Group<'d> {
    let (mut group, mut from, mut counter) = (Group::new(), 0, None);
    if !may_plan(session) {
        return group;
    }
    match first {
        None => {}
        Some(FirstCommand::Take { plan, size, arguments }) => {
            group.push(PlannedCommand { arguments, bytes: decoder.ahead(size), question: Question::Take(plan) });
            from = size;
        }
        Some(FirstCommand::Limit(prefetched)) => counter = Some(prefetched),
    }
    let snapshot = session.shared.service.load_snapshot();
    while group.len() < MAX_GROUP
        && let Some((words, bytes)) = decoder.plain_command(from)
        && let Some(question) = plan(&words, session, &snapshot, counter.take())
    {
        from += bytes.len();
        group.push(PlannedCommand { arguments: words.len() - 1, bytes, question });
    }
    if group.len() > 1 {
        session.shared.service.prefetch_logs(group.iter().flat_map(PlannedCommand::counters));
    }
    group
}

/// Whether the session may use the commands at all, and they are decided at once.
fn may_plan(session: &Session) -> bool {
    session.authenticated && session.transaction.is_none() && session.shared.service.answers_at_once()
}

/// Reads a command, plans it, and prefetches its counters, unless its counter is prefetched. `None` if it is not of the usual
/// form.
fn plan<'d>(
    words: &Words<'d>,
    session: &Session,
    snapshot: &Snapshot,
    prefetched: Option<PrefetchedKey>,
) -> Option<Question<'d>> {
    let (name, args) = words.split_first()?;
    match command::planning(name)? {
        Planning::Take => Some(Question::Take(session.shared.service.plan_take(snapshot, &command::request(args)?))),
        Planning::Limit => {
            let [key, limit] = *args else { return None };
            let counter = prefetched.or_else(|| session.shared.service.prefetch(session.key(key)))?;
            Some(Question::Limit { key, counter, limit: str::from_utf8(limit).ok()? })
        }
    }
}

impl PlannedCommand<'_> {
    /// The counters that it asks: one for each of its subjects.
    fn counters(&self) -> impl Iterator<Item = Key> {
        let (take, limit) = match &self.question {
            Question::Take(plan) => (Some(plan.subjects()), None),
            Question::Limit { counter, .. } => (None, Some(counter.key())),
        };
        take.into_iter().flatten().chain(limit)
    }

    /// The bytes of the command.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Decides the command and writes its reply. Breaks if its own function must answer it, because other rules came into
    /// force; then nothing has happened.
    #[inline]
    pub(super) fn answer(self, session: &Session, at: Reading, out: &mut Vec<u8>) -> ControlFlow<()> {
        let (service, mut reply) = (&session.shared.service, Reply { out, version: session.version });
        match self.question {
            Question::Take(plan) => match service.take_planned(plan, || request_in(self.bytes), at) {
                Some(decision) => command::write_decision(&decision, &mut reply),
                None => return ControlFlow::Break(()),
            },
            Question::Limit { key, counter, limit } => {
                match command::limit_text(service, Operation::Take, (session.key(key), Some(counter)), limit, 1, at) {
                    Ok(Answer::Now(Ok(KeyDecision { decision, .. }))) => command::write_limit(&decision, &mut reply),
                    Ok(Answer::Now(Err(error))) => reply.error(&Error::from(error).to_string()),
                    Ok(Answer::Later(_)) => unreachable!("`may_plan`: it is decided at once"),
                    Err(error) => reply.error(&Error::from(error).to_string()),
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The request of a planned `FG.TAKE`.
fn request_in(bytes: &[u8]) -> Request<'_> {
    let words = plain_command(bytes).map(|(words, _)| words).unwrap_or_default();
    words.get(1..).and_then(command::request).unwrap_or_default()
}
