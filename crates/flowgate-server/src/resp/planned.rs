//! Commands of a pipeline that are planned together before the first of them is decided.
//!
//! Rule       `FG.TAKE`, `FG.LIMIT` and `CL.THROTTLE` are read, planned and their counters prefetched up to [`MAX_GROUP`] at a
//!            time. Then they are decided one after the other. The answers are the same; the cache misses of the group
//!            overlap.
//! Rule       A group ends before any other command, and before one that is not of the usual form (a wrong number of words,
//!            an option). Such a command is answered by its own function.
//! Rule       An event loop keeps the memory of plans and groups from group to group, so that planning allocates nothing.
//! Invariant  No command of a group changes what the session may do, so the session is checked once.

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use flowgate::{Key, Limit, MemoryStore, Reading, Throttle};
use flowgate_engine::{HitBuffer, PlannedTake};

use super::command::{self, Planning};
use super::decode::{Decoder, PlainCommand};
use super::error::Error;
use super::reply::Reply;
use super::session::Session;
use super::yield_once;
use crate::limit_cache;
use crate::observer::PassCounts;
use crate::service::{HashedKey, Snapshot};

/// The most commands of a group. More gain nothing measurable, and their cache lines would evict each other.
pub(super) const MAX_GROUP: usize = 16;

/// The plans that an event loop uses at a time: those of a group, and of the first commands of connections that wait.
const MAX_SPARE_PLANS: usize = MAX_GROUP + yield_once::MAX_YIELDED;

thread_local! {
    static MEMORY: RefCell<GroupMemory> =
        const { RefCell::new(GroupMemory { commands: Vec::new(), plans: Vec::new(), subjects: Vec::new() }) };
}

/// Hands out the event loop's memory for a group.
#[inline]
pub(super) fn with_memory<T>(plan: impl FnOnce(&mut GroupMemory) -> T) -> T {
    MEMORY.with_borrow_mut(plan)
}

/// The memory of a group.
#[derive(Debug, Default)]
pub(super) struct GroupMemory {
    commands: Vec<PlannedCommand>,
    /// Plans that are not in use. A plan moves from here to a command and back, so it lies in a box.
    #[expect(clippy::vec_box, reason = "a plan is some hundred bytes")]
    plans: Vec<Box<PlannedTake>>,
    /// A key of each subject, and at least how many counters the subject has.
    subjects: Vec<(Key, usize)>,
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
    let (mut command, service) = (PlainCommand::default(), &session.shared.service);
    decoder.read_plain_command(0, &mut command)?;
    match command::planning(command.word(0)?)? {
        Planning::Take => {
            let fields = command::take_fields(&command)?;
            let mut plan = with_memory(|memory| memory.plans.pop()).unwrap_or_default();
            service.plan_take(&service.load_snapshot(), fields, &mut plan);
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
        let (mut command, mut last) = (PlainCommand::default(), LastCommand::default());
        while self.memory.commands.len() < MAX_GROUP
            && self.decoder.read_plain_command(from, &mut command).is_some()
            && let Some(question) = self.plan_next(&command, &mut last, session, snapshot, counter.take())
        {
            let place = from..from + command.bytes.len();
            from = place.end;
            self.memory.commands.push(PlannedCommand { arguments: command.arguments(), place, question });
        }
        if self.memory.commands.len() > 1 {
            self.prefetch(session.shared.service.counters());
        }
    }

    /// Reads a command and plans it; its key may be hashed already. `None` if it is not of the usual form. The counters of
    /// `CL.THROTTLE` are few bytes, and planning one takes no longer than fetching them: they are prefetched here.
    #[inline]
    fn plan_next(
        &mut self,
        command: &PlainCommand<'d>,
        last: &mut LastCommand<'d>,
        session: &Session,
        snapshot: &Snapshot,
        hashed: Option<HashedKey>,
    ) -> Option<Question> {
        let service = &session.shared.service;
        let hash = |key| hashed.or_else(|| service.hash_key(session.key(key)));
        match last.planning(command)? {
            Planning::Take => {
                let fields = command::take_fields(command)?;
                let mut plan = self.memory.plans.pop().unwrap_or_default();
                service.plan_take(snapshot, fields, &mut plan);
                Some(Question::Take(plan))
            }
            Planning::Limit => {
                let (key, limit) = (command.word(1)?, last.limit(command)?);
                Some(Question::Limit { counter: hash(key)?, limit })
            }
            Planning::Throttle => {
                let (key, throttle) = (command.word(1)?, last.throttle(command)?);
                let counter = hash(key)?;
                service.counters().prefetch_several(counter.key(), 1);
                Some(Question::Throttle { counter, throttle })
            }
        }
    }

    /// Prefetches the counters of limits and their sliding logs, one step after the other for all of them. A prefetch waits
    /// for the translation of its address, so those of a step stand close together: then the processor translates several at
    /// a time.
    fn prefetch(&mut self, counters: &MemoryStore) {
        let GroupMemory { commands, subjects, .. } = &mut *self.memory;
        subjects.clear();
        for command in commands {
            match &command.question {
                Question::Take(plan) => subjects.extend(plan.subjects()),
                Question::Limit { counter, .. } => subjects.push((counter.key(), 1)),
                Question::Throttle { .. } => {}
            }
        }
        subjects.iter().for_each(|(subject, several)| counters.prefetch_several(*subject, *several));
        subjects.retain(|(subject, _)| counters.prefetch_logs(*subject));
        subjects.iter().for_each(|(subject, _)| counters.prefetch_entries(*subject));
    }

    /// The commands, in order.
    pub(super) fn commands(&self) -> &[PlannedCommand] {
        &self.memory.commands
    }

    /// Reads a command of the group again.
    fn read(&self, command: &PlannedCommand) -> PlainCommand<'d> {
        PlainCommand::read(self.decoder.ahead(command.place.clone())).unwrap_or_default()
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
                let TakeWork { snapshot, hits, counts } = work;
                let request = || command::request(&self.read(command)).unwrap_or_default();
                match &service.take_planned(snapshot, plan, hits, counts, request, at) {
                    Some(answer) => command::write_answer(answer, &mut reply),
                    None => return ControlFlow::Break(()),
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

/// What the last command of a group said. The next one mostly says the same, but for its key: to compare is cheaper than to
/// read.
#[derive(Debug, Default)]
struct LastCommand<'d> {
    name: &'d [u8],
    planning: Option<Planning>,
    /// What stands behind a key, and the limit or the numbers that it says.
    limit: (&'d [u8], Option<Rc<Limit>>),
    throttle: (&'d [u8], Option<Throttle>),
}

impl<'d> LastCommand<'d> {
    #[inline]
    fn planning(&mut self, command: &PlainCommand<'d>) -> Option<Planning> {
        let name = command.word(0)?;
        if name != self.name {
            (self.name, self.planning) = (name, command::planning(name));
        }
        self.planning
    }

    #[inline]
    fn limit(&mut self, command: &PlainCommand<'d>) -> Option<Rc<Limit>> {
        let text = command.behind(1)?;
        if text != self.limit.0 {
            self.limit = (text, limit_of(command));
        }
        self.limit.1.clone()
    }

    #[inline]
    fn throttle(&mut self, command: &PlainCommand<'d>) -> Option<Throttle> {
        let text = command.behind(1)?;
        if text != self.throttle.0 {
            self.throttle = (text, throttle_of(command));
        }
        self.throttle.1
    }
}

/// The limit of an `FG.LIMIT` that takes one unit.
fn limit_of(command: &PlainCommand<'_>) -> Option<Rc<Limit>> {
    let (2, limit) = (command.arguments(), command.word(2)?) else { return None };
    limit_cache::parse(str::from_utf8(limit).ok()?).ok()
}

fn throttle_of(command: &PlainCommand<'_>) -> Option<Throttle> {
    command::throttle_numbers(command.arguments(), |index| command.word(index + 1)).ok()
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
