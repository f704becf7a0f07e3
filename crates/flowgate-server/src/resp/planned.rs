//! Commands of a pipeline that are planned together before the first of them is decided.
//!
//! Rule       `FG.TAKE`, `FG.LIMIT` and `CL.THROTTLE` are read, planned and their counters prefetched up to [`MAX_GROUP`] at a
//!            time. Then they are decided one after the other. The answers are the same; the cache misses of the group
//!            overlap.
//! Rule       A group ends before any other command, and before one that is not of the usual form (a wrong number of words,
//!            an option). Such a command is answered by its own function.
//! Rule       An event loop keeps the memory of plans and groups from group to group, so that planning a command
//!            of a remembered form allocates nothing.
//! Invariant  No command of a group changes what the session may do, so the session is checked once.

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use flowgate::{Limit, MemoryStore, PrefetchGroup, Reading, Throttle};
use flowgate_engine::PlannedTake;

use super::command;
use super::decode::{Decoder, PlainCommand};
use super::error::Error;
use super::form::{Forms, Meaning, OpenWords};
use super::reply::Reply;
use super::session::Session;
use super::yield_once;
use crate::service::{HashedKey, Snapshot, TakeWork};

/// The most commands of a group. More gain nothing measurable, and their cache lines would evict each other.
pub(super) const MAX_GROUP: usize = 16;

/// The plans that an event loop uses at a time: those of a group, and of the first commands of connections that wait.
const MAX_SPARE_PLANS: usize = MAX_GROUP + yield_once::MAX_YIELDED;

thread_local! {
    static MEMORY: RefCell<GroupMemory> =
        const { RefCell::new(GroupMemory { forms: Forms::new(), commands: Vec::new(), plans: Vec::new(), subjects: PrefetchGroup::new() }) };
}

/// Hands out the event loop's memory for a group.
#[inline]
pub(super) fn with_memory<T>(plan: impl FnOnce(&mut GroupMemory) -> T) -> T {
    MEMORY.with_borrow_mut(plan)
}

/// The memory of a group.
#[derive(Debug)]
pub(super) struct GroupMemory {
    forms: Forms,
    commands: Vec<PlannedCommand>,
    /// Plans that are not in use. A plan moves from here to a command and back, so it lies in a box.
    #[expect(clippy::vec_box, reason = "a plan is some hundred bytes")]
    plans: Vec<Box<PlannedTake>>,
    subjects: PrefetchGroup,
}

/// A group of commands that follow each other in the decoder.
#[derive(Debug)]
pub(super) struct Group<'d> {
    decoder: &'d Decoder,
    memory: &'d mut GroupMemory,
}

/// A command whose counters the processor is fetching.
#[derive(Debug)]
pub(super) struct PlannedCommand {
    /// The number of the command's arguments.
    pub(super) arguments: usize,
    /// Where it lies among the bytes that are ahead in the decoder.
    place: Range<usize>,
    question: Question,
}

#[derive(Debug)]
enum Question {
    Take(Box<PlannedTake>),
    Limit { counter: HashedKey, limit: Rc<Limit> },
    Throttle { counter: HashedKey, throttle: Throttle },
}

/// What is known of the first command that a client has sent, from its arrival until it is answered.
#[derive(Debug)]
pub(super) enum FirstCommand {
    Take { plan: Box<PlannedTake>, size: usize, arguments: usize },
    Key(HashedKey),
}

/// Plans the first command that `decoder` holds.
pub(super) fn plan_first(decoder: &Decoder, session: &Session) -> Option<FirstCommand> {
    if !may_plan(session) {
        return None;
    }
    let (service, mut open) = (&session.shared.service, OpenWords::new(decoder.ahead()));
    with_memory(|GroupMemory { forms, plans, .. }| {
        let (form, size) = forms.read(0, &mut open).filter(|(_, size)| *size <= decoder.max_command())?;
        match &form.meaning {
            Meaning::Take { cost, names } => {
                let mut plan = plans.pop().unwrap_or_default();
                service.plan_take(&service.load_snapshot(), *cost, names, &open.values, &mut plan);
                plan.subjects().for_each(|(subject, rules)| service.counters().prefetch_several(subject, rules));
                Some(FirstCommand::Take { plan, size, arguments: form.arguments })
            }
            Meaning::Limit(_) | Meaning::Throttle(_) => {
                let key = service.hash_key(session.key(open.key))?;
                service.counters().prefetch(key.key());
                Some(FirstCommand::Key(key))
            }
        }
    })
}

/// True if the session may use the commands, and memory decides them at once.
fn may_plan(session: &Session) -> bool {
    session.authenticated && session.transaction.is_none() && session.shared.service.answers_at_once()
}

impl<'d> Group<'d> {
    /// Plans the commands that `decoder` holds, of which the first may be planned already.
    pub(super) fn plan(
        memory: &'d mut GroupMemory,
        decoder: &'d Decoder,
        session: &Session,
        snapshot: &Snapshot,
        first: Option<FirstCommand>,
    ) -> Group<'d> {
        let mut group = Group { decoder, memory };
        if may_plan(session) {
            group.plan_all(session, snapshot, first);
        }
        group
    }

    #[inline]
    fn plan_all(&mut self, session: &Session, snapshot: &Snapshot, first: Option<FirstCommand>) {
        let (mut from, mut counter) = (0, None);
        match first {
            None => {}
            Some(FirstCommand::Take { plan, size, arguments }) => {
                let question = Question::Take(plan);
                self.memory.commands.push(PlannedCommand { arguments, place: 0..size, question });
                from = size;
            }
            Some(FirstCommand::Key(hashed)) => counter = Some(hashed),
        }
        let ahead = self.decoder.ahead();
        let mut open = OpenWords::new(ahead);
        while self.memory.commands.len() < MAX_GROUP
            && from < ahead.len()
            && let Some(end) = self.plan_next(from, &mut open, session, snapshot, counter.take())
        {
            from = end;
        }
        if self.memory.commands.len() > 1 {
            self.prefetch(session.shared.service.counters());
        }
    }

    /// Plans the command that begins at `from`, and returns its end; its key may be hashed already. `None` if it is not of the
    /// usual form. The counters of `CL.THROTTLE` are few bytes, and planning one takes no longer than fetching them: they are prefetched here.
    #[inline]
    fn plan_next(
        &mut self,
        from: usize,
        open: &mut OpenWords<'_>,
        session: &Session,
        snapshot: &Snapshot,
        hashed: Option<HashedKey>,
    ) -> Option<usize> {
        let service = &session.shared.service;
        let hash = |key| hashed.or_else(|| service.hash_key(session.key(key)));
        let (form, end) = self.memory.forms.read(from, open)?;
        if end - from > self.decoder.max_command() {
            return None;
        }
        let question = match &form.meaning {
            Meaning::Take { cost, names } => {
                let mut plan = self.memory.plans.pop().unwrap_or_default();
                service.plan_take(snapshot, *cost, names, &open.values, &mut plan);
                Question::Take(plan)
            }
            Meaning::Limit(limit) => Question::Limit { counter: hash(open.key)?, limit: Rc::clone(limit) },
            Meaning::Throttle(throttle) => {
                let counter = hash(open.key)?;
                service.counters().prefetch_several(counter.key(), 1);
                Question::Throttle { counter, throttle: *throttle }
            }
        };
        self.memory.commands.push(PlannedCommand { arguments: form.arguments, place: from..end, question });
        Some(end)
    }

    /// Prefetches the counters of limits and their sliding logs, one step after the other for all of them. A prefetch waits
    /// for the translation of its address, so those of a step stand close together: then the processor translates several at
    /// a time.
    fn prefetch(&mut self, counters: &MemoryStore) {
        let GroupMemory { commands, subjects, .. } = &mut *self.memory;
        for command in commands {
            match &command.question {
                Question::Take(plan) => plan.subjects().for_each(|(subject, rules)| subjects.push(subject, rules)),
                Question::Limit { counter, .. } => subjects.push(counter.key(), 1),
                Question::Throttle { .. } => {}
            }
        }
        counters.prefetch_group(subjects);
    }

    /// The commands, in order.
    pub(super) fn commands(&self) -> &[PlannedCommand] {
        &self.memory.commands
    }

    /// Reads a command of the group again.
    fn read(&self, command: &PlannedCommand) -> PlainCommand<'d> {
        PlainCommand::read(&self.decoder.ahead()[command.place.clone()]).unwrap_or_default()
    }

    /// Decides one command of the group and writes the reply. Breaks if the command's own function must answer it,
    /// because other rules came into force. Nothing has changed then.
    #[inline]
    pub(super) fn answer<'r>(
        &self,
        command: &PlannedCommand,
        session: &mut Session,
        work: &mut TakeWork<'r>,
        at: Reading,
        out: &mut Vec<u8>,
    ) -> ControlFlow<()> {
        let (service, mut reply) = (&session.shared.service, Reply { out, version: session.version });
        let key = || self.read(command).word(1).unwrap_or_default();
        match &command.question {
            Question::Take(plan) => {
                let request = || command::request(&self.read(command)).unwrap_or_default();
                let write = |answer: &_| command::write_answer(answer, &mut reply);
                if service.take_planned(work, plan, request, at, write).is_none() {
                    return ControlFlow::Break(());
                }
            }
            Question::Limit { counter, limit } => match service.take_hashed(*counter, limit, at) {
                Ok(decision) => {
                    session.batch.count_key(service, key, decision.allowed(), at);
                    command::write_limit(&decision, &mut reply);
                }
                Err(error) => reply.error(&Error::from(error).to_string()),
            },
            Question::Throttle { counter, throttle } => match service.throttle_hashed(*counter, throttle, at) {
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

/// Keeps the memory for the next group.
impl Drop for Group<'_> {
    fn drop(&mut self) {
        let GroupMemory { commands, plans, .. } = &mut *self.memory;
        for command in commands.drain(..) {
            if let Question::Take(plan) = command.question
                && plans.len() < MAX_SPARE_PLANS
            {
                plans.push(plan);
            }
        }
    }
}

impl PlannedCommand {
    /// The bytes of the command.
    pub(super) fn size(&self) -> usize {
        self.place.len()
    }
}
