//! Redis as a store: a question is sent at once and its reply awaited later, and what it has taken may be taken back.
//!
//! Rule       One call of a script decides a question, at Redis's time. In a cluster each subject of a question is
//!            decided where it lives, in parallel; if one denies, what the others took is taken back.
//! Rule       A question without an answer in time is decided without Redis. If that denies it, what Redis has charged
//!            is taken back: at once in the places that have answered, in the others when their reply comes, which
//!            names the charge. If that lets it pass, the charges stay: the request is made.
//! Invariant  Everything has been sent when [`RedisStore::send`] returns.
//! Bound      A charge whose reply is lost with its connection, or whose node ends before it has taken it back,
//!            stays until it ages out: at most what was under way on that connection.

use std::sync::Arc;

use flowgate::Time;
use flowgate_engine::Decider;
use flowgate_engine::redis::{Numbers, ReplyError, ScriptCall, ScriptTime, take_unreadable, unpacked};
use tokio::sync::oneshot;

use super::health::Health;
use super::link::Failure;
use super::question::OwnedQuestion;
use super::redirect::{Command, CommandFailure, Late, SentCommand, WithScript};
use super::servers::Servers;
use super::wire::Reply;

/// Redis, and the prefix of the keys in it.
#[derive(Debug)]
pub(crate) struct RedisStore {
    pub(crate) servers: Servers,
    pub(super) prefix: String,
    pub(crate) health: Arc<Health>,
    /// Lists the bans that rules impose.
    pub(super) decider: Arc<Decider>,
}

/// A question that was sent.
pub(crate) enum InFlight {
    /// A question that is sent in one call.
    Whole(SentCommand),
    /// A question that is sent in one call for each of its subjects: the replies of all, and a channel that tells how
    /// the question ends without them.
    Groups { replies: oneshot::Receiver<Result<Vec<Numbers>, Failure>>, ending: Option<oneshot::Sender<Ending>> },
}

/// The end of a request that Redis has not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Allowed,
    Denied,
}

impl Ending {
    pub(crate) fn new(allowed: bool) -> Ending {
        if allowed { Ending::Allowed } else { Ending::Denied }
    }
}

/// A question that Redis has not decided, and what it may have charged.
#[derive(Debug)]
pub(crate) struct QuestionFailure {
    pub(crate) why: Failure,
    charges: Charges,
}

#[derive(Debug)]
enum Charges {
    None,
    /// The whole question, with its late reply.
    Whole(Late),
    /// Groups: the task that awaits their replies takes the charges back.
    Groups(oneshot::Sender<Ending>),
}

impl From<Failure> for QuestionFailure {
    fn from(why: Failure) -> QuestionFailure {
        QuestionFailure { why, charges: Charges::None }
    }
}

impl From<CommandFailure> for QuestionFailure {
    fn from(unanswered: CommandFailure) -> QuestionFailure {
        QuestionFailure { why: unanswered.why, charges: unanswered.late.map_or(Charges::None, Charges::Whole) }
    }
}

impl RedisStore {
    pub(super) fn send_script(&self, call: &ScriptCall) -> Result<SentCommand, Failure> {
        self.servers.send(first_key(call), call)
    }

    /// As [`RedisStore::send_script`], with the script itself: Redis carries the call out even if it does not know the
    /// script.
    pub(super) fn send_with_script(&self, call: &ScriptCall) -> Result<SentCommand, Failure> {
        self.servers.send(first_key(call), &WithScript(call.clone()))
    }

    fn call<Q: OwnedQuestion>(&self, question: &Q, group: Option<usize>, around: Time) -> ScriptCall {
        question.asked().call(group, &self.prefix, ScriptTime::Redis, around)
    }

    fn undo_calls<Q: OwnedQuestion>(&self, question: &Q, answers: &[Option<&[i64]>]) -> Vec<ScriptCall> {
        question.asked().undo_calls(&self.prefix, ScriptTime::Redis, answers)
    }

    /// Sends the one call that decides a question, or in a cluster one for each of its subjects.
    pub(crate) fn send<Q: OwnedQuestion>(
        self: &Arc<Self>,
        question: &Arc<Q>,
        around: Time,
    ) -> Result<InFlight, Failure> {
        let groups = question.asked().groups();
        if !self.servers.is_cluster || groups == 1 {
            return Ok(InFlight::Whole(self.send_script(&self.call(&**question, None, around))?));
        }
        let calls: Vec<ScriptCall> = (0..groups).map(|group| self.call(&**question, Some(group), around)).collect();
        // If the breaker of one of the servers is open, nothing is sent, and nothing has to be taken back.
        for call in &calls {
            self.servers.pool_of(first_key(call))?.link()?;
        }
        let sent = calls.iter().map(|call| self.send_script(call)).collect();
        let (store, question) = (Arc::clone(self), Arc::clone(question));
        let (replied, replies) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        // A task of its own takes charges back, whether or not the caller still waits for the answer.
        tokio::spawn(async move { store.ask_groups(&question, sent, around, replied, ended).await });
        Ok(InFlight::Groups { replies, ending: Some(ending) })
    }

    /// Awaits the reply to a question.
    pub(crate) async fn receive<Q: OwnedQuestion>(
        &self,
        question: &Q,
        sent: &mut InFlight,
        now: Time,
    ) -> Result<Q::Reply, QuestionFailure> {
        match sent {
            InFlight::Whole(sent) => {
                let call = |around| self.call(question, None, around);
                Ok(self.read_reply(sent, now, call, |answer| question.conclude(&self.decider, &[answer])).await?)
            }
            InFlight::Groups { replies, ending } => {
                let replies = replies.await.unwrap_or(Err(Failure::Lost));
                let replies = replies.map_err(|why| QuestionFailure {
                    why,
                    charges: ending.take().map_or(Charges::None, Charges::Groups),
                })?;
                let answers: Vec<&[i64]> = replies.iter().map(Numbers::as_slice).collect();
                Ok(question.conclude(&self.decider, &answers).map_err(not_understood)?)
            }
        }
    }

    /// Takes back what Redis has charged for a question that it has not decided, if the question is denied in the end.
    pub(crate) fn settle<Q: OwnedQuestion>(
        self: &Arc<Self>,
        undecided: QuestionFailure,
        question: &Arc<Q>,
        ending: Ending,
    ) {
        match undecided.charges {
            Charges::None => {}
            Charges::Groups(ended) => _ = ended.send(ending),
            Charges::Whole(late) if ending == Ending::Denied => {
                let question = Arc::clone(question);
                self.settle_late(late, move |store, reply| store.undo_calls(&*question, &[Some(reply)]));
            }
            Charges::Whole(_) => {}
        }
    }

    /// Counts a question that may have been carried out without an answer.
    pub(crate) fn note_failure(&self, failure: Failure) {
        if matches!(failure, Failure::Timeout | Failure::Lost) {
            self.health.unanswered.add(1);
        }
    }

    /// Takes back what Redis has charged, by its late reply.
    fn settle_late(
        self: &Arc<Self>,
        late: Late,
        rollbacks: impl FnOnce(&RedisStore, &[i64]) -> Vec<ScriptCall> + Send + 'static,
    ) {
        let store = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(reply) = late.reply().await
                && let Some(answer) = store.numbers(reply)
            {
                rollbacks(&store, &answer).into_iter().for_each(|call| store.take_back_late(call));
            }
        });
    }

    /// Awaits the replies of all subjects, and takes back what they have charged if the question is denied.
    async fn ask_groups<Q: OwnedQuestion>(
        self: &Arc<Self>,
        question: &Arc<Q>,
        sent: Vec<Result<SentCommand, Failure>>,
        now: Time,
        replied: oneshot::Sender<Result<Vec<Numbers>, Failure>>,
        ended: oneshot::Receiver<Ending>,
    ) {
        let mut replies: Vec<Result<Numbers, CommandFailure>> = Vec::new();
        for (group, sent) in sent.into_iter().enumerate() {
            let call = |around| self.call(&**question, Some(group), around);
            replies.push(match sent {
                Ok(mut sent) => self.read_reply(&mut sent, now, call, is_decision).await,
                Err(failure) => Err(failure.into()),
            });
        }
        let known: Vec<Option<&[i64]>> = replies.iter().map(|reply| reply.as_deref().ok()).collect();
        let rollbacks = self.undo_calls(&**question, &known);
        let Some(why) = replies.iter().find_map(|reply| reply.as_ref().err().map(|unanswered| unanswered.why)) else {
            rollbacks.into_iter().for_each(|call| self.take_back(call));
            // The send fails if the caller has left.
            let _ = replied
                .send(replies.into_iter().collect::<Result<_, _>>().map_err(|failed: CommandFailure| failed.why));
            return;
        };
        let _ = replied.send(Err(why));
        // A request whose caller has left counts as denied.
        if ended.await == Ok(Ending::Allowed) {
            return;
        }
        rollbacks.into_iter().for_each(|call| self.take_back(call));
        let groups = replies.len();
        for (group, reply) in replies.into_iter().enumerate() {
            if let Err(CommandFailure { late: Some(late), .. }) = reply {
                let question = Arc::clone(question);
                self.settle_late(late, move |store, reply| {
                    let mut known = vec![None; groups];
                    known[group] = Some(reply);
                    store.undo_calls(&*question, &known)
                });
            }
        }
    }

    /// Awaits a reply and reads it. If Redis's clock is far from this node's, asks once more with calendars around
    /// Redis's time.
    async fn read_reply<T>(
        &self,
        sent: &mut SentCommand,
        now: Time,
        call: impl Fn(Time) -> ScriptCall,
        read: impl Fn(&[i64]) -> Result<T, ReplyError>,
    ) -> Result<T, CommandFailure> {
        let reply = self.answer(sent, || call(now)).await?;
        let around = match read(&reply) {
            Ok(concluded) => return Ok(concluded),
            Err(ReplyError::Around(around)) => around,
            Err(error) => return Err(not_understood(error).into()),
        };
        let mut sent = self.send_script(&call(around))?;
        let reply = Box::pin(self.answer(&mut sent, || call(around))).await?;
        read(&reply).map_err(|error| not_understood(error).into())
    }

    /// The numbers that a script answers.
    async fn answer(&self, sent: &mut SentCommand, again: impl Fn() -> ScriptCall) -> Result<Numbers, CommandFailure> {
        let reply = self.servers.reply(sent, again).await?;
        self.numbers(reply).ok_or_else(|| not_understood(ReplyError::Malformed).into())
    }

    /// The numbers of a reply. Counts the values that the script could not read.
    fn numbers(&self, reply: Reply) -> Option<Numbers> {
        let list = match reply {
            Reply::Text(packed) => return unpacked(&packed),
            Reply::List(list) => list,
            _ => return None,
        };
        let number = |reply| match reply {
            Reply::Integer(number) => Some(number),
            _ => None,
        };
        let mut numbers = list.into_iter().map(number).collect::<Option<Vec<i64>>>()?;
        let unreadable = take_unreadable(&mut numbers);
        if unreadable > 0 {
            self.health.unreadable.add(unreadable as u64);
        }
        Some(numbers.into())
    }

    /// Sends a rollback to a Redis that has answered in time.
    fn take_back(self: &Arc<Self>, call: ScriptCall) {
        self.send_rollback(&call.clone(), move || call.clone());
    }

    /// Sends a rollback to a Redis that has answered late. The rollback brings the script along: an answer that Redis
    /// does not know the script would come late, too, when nothing more is sent.
    fn take_back_late(self: &Arc<Self>, call: ScriptCall) {
        self.send_rollback(&call.clone(), move || WithScript(call.clone()));
    }

    /// Sends a rollback without waiting for its answer. If Redis does not carry it out, the counters stay too high.
    fn send_rollback<C: Command + Send>(
        self: &Arc<Self>,
        call: &ScriptCall,
        command: impl Fn() -> C + Send + Sync + 'static,
    ) {
        if let Ok(mut sent) = self.servers.send_even_if_open(first_key(call), &command()) {
            let store = Arc::clone(self);
            tokio::spawn(async move {
                if let Ok(reply) = store.servers.reply(&mut sent, command).await {
                    store.numbers(reply);
                }
            });
        }
    }
}

/// Checks an answer: `[-1, micros]` asks for calendar ends around another time, and `[-2]` says that the key is in use.
/// Any other answer is a decision, which is read when the answers of all groups have arrived.
fn is_decision(answer: &[i64]) -> Result<Numbers, ReplyError> {
    match answer {
        [-1, micros, ..] => Err(ReplyError::Around(Time::from_micros(micros.unsigned_abs()))),
        [-2, ..] => Err(ReplyError::OtherAlgorithm),
        _ => Ok(Numbers::from_slice(answer)),
    }
}

/// The failure when an answer is not one of our scripts': another program uses the key, or the clock differs.
fn not_understood(error: ReplyError) -> Failure {
    tracing::debug!(%error, "Redis's answer has no decision in it");
    Failure::Refused
}

/// The first key. All keys of a call have the same slot, so it tells the server.
fn first_key(call: &ScriptCall) -> &[u8] {
    call.keys().next().unwrap_or_default()
}
