//! Asking Redis about a request, and what becomes of what it has taken.
//!
//! Rule       In a cluster each subject of a request is decided where it lives, in parallel; if one denies, what the
//!            others took is taken back.
//! Rule       A request without an answer in time is decided without Redis. If that denies it, what Redis has charged
//!            is taken back: at once in the places that have answered, in the others when their reply comes, which
//!            names the charge. If that lets it pass, the charges stay: it was made.
//! Bound      A charge whose reply is lost with its connection, or whose node ends before it has taken it back,
//!            stays until it ages out: at most what was under way on that connection.

use std::sync::Arc;

use flowgate::Time;
use flowgate_engine::redis::{Conclusion, Prepared, ReplyError, ScriptCall, ScriptTime, take_unreadable};
use flowgate_engine::{Explanation, Request};
use tokio::sync::oneshot;

use super::SharedStore;
use crate::redis::calls::{Command, Late, Sent, Unanswered, WithScript};
use crate::redis::link::Failure;
use crate::redis::wire::Reply;

/// What was asked of Redis for one request.
pub(super) enum Asked {
    /// All of it in one call.
    Whole(Sent),
    /// One call for each of its subjects: the replies of all, and where to say how the request ends without them.
    Groups { replies: oneshot::Receiver<Result<Vec<Vec<i64>>, Failure>>, ending: oneshot::Sender<Ending> },
}

/// How a request ends that Redis has not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Allowed,
    Denied,
}

impl Ending {
    pub(super) fn of(allowed: bool) -> Ending {
        if allowed { Ending::Allowed } else { Ending::Denied }
    }
}

/// A request that Redis has not decided, and what it may have charged.
#[derive(Debug)]
pub(super) struct Undecided {
    pub(super) why: Failure,
    charges: Charges,
}

#[derive(Debug)]
enum Charges {
    None,
    /// What the late reply says.
    Whole(Late),
    /// Whoever awaits the replies of the groups sees to it.
    Groups(oneshot::Sender<Ending>),
}

impl From<Failure> for Undecided {
    fn from(why: Failure) -> Undecided {
        Undecided { why, charges: Charges::None }
    }
}

impl From<Unanswered> for Undecided {
    fn from(unanswered: Unanswered) -> Undecided {
        Undecided { why: unanswered.why, charges: unanswered.late.map_or(Charges::None, Charges::Whole) }
    }
}

impl SharedStore {
    pub(super) fn send_script(&self, call: &ScriptCall) -> Result<Sent, Failure> {
        self.servers.send(first_key(call), call)
    }

    /// Sends the one call that decides a request, or in a cluster one for each of its subjects.
    pub(super) fn send(self: &Arc<Self>, prepared: &Prepared, around: Time) -> Result<Asked, Failure> {
        if !self.servers.is_cluster() || prepared.groups() == 1 {
            let call = prepared.call(&self.prefix, ScriptTime::Redis, around);
            return Ok(Asked::Whole(self.send_script(&call)?));
        }
        let calls: Vec<ScriptCall> = (0..prepared.groups())
            .map(|group| prepared.group_call(group, &self.prefix, ScriptTime::Redis, around))
            .collect();
        // Where one of the servers is known to be away nothing is sent, and nothing has to be taken back.
        for call in &calls {
            self.servers.pool_of(first_key(call))?.link()?;
        }
        let sent = calls.iter().map(|call| self.send_script(call)).collect();
        let (store, prepared) = (Arc::clone(self), prepared.clone());
        let (replied, replies) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        // On its own, since what was taken is to be taken back whether or not the caller still waits for the answer.
        tokio::spawn(async move { store.ask_groups(&prepared, sent, around, replied, ended).await });
        Ok(Asked::Groups { replies, ending })
    }

    /// What follows from the replies.
    pub(super) async fn conclude(
        self: &Arc<Self>,
        prepared: &Prepared,
        asked: Asked,
        now: Time,
    ) -> Result<Conclusion, Undecided> {
        match asked {
            Asked::Whole(sent) => {
                let call = |around| prepared.call(&self.prefix, ScriptTime::Redis, around);
                Ok(self.concluded(sent, now, call, |reply| prepared.conclude(reply)).await?)
            }
            Asked::Groups { replies, ending } => {
                let replies = groups(replies, ending).await?;
                let replies: Vec<&[i64]> = replies.iter().map(Vec::as_slice).collect();
                Ok(prepared.conclude_groups(&replies).map_err(not_understood)?)
            }
        }
    }

    pub(super) async fn explained(
        self: &Arc<Self>,
        prepared: &Prepared,
        request: &Request<'_>,
        asked: Asked,
        now: Time,
    ) -> Result<Explanation, Undecided> {
        match asked {
            Asked::Whole(sent) => {
                let call = |around| prepared.call(&self.prefix, ScriptTime::Redis, around);
                Ok(self.concluded(sent, now, call, |reply| prepared.explain(request, reply)).await?)
            }
            Asked::Groups { replies, ending } => {
                let replies = groups(replies, ending).await?;
                let replies: Vec<&[i64]> = replies.iter().map(Vec::as_slice).collect();
                Ok(prepared.explain_groups(request, &replies).map_err(not_understood)?)
            }
        }
    }

    /// Takes back what a request that was not decided by Redis has taken there, if it is denied in the end.
    pub(super) fn settle(self: &Arc<Self>, undecided: Undecided, prepared: &Prepared, ending: Ending) {
        match undecided.charges {
            Charges::None => {}
            Charges::Groups(ended) => _ = ended.send(ending),
            Charges::Whole(late) => {
                let prepared = prepared.clone();
                self.settle_late(late, ending, move |prefix, reply| {
                    prepared.rollback(prefix, ScriptTime::Redis, reply)
                });
            }
        }
    }

    /// As [`SharedStore::settle`], by what `rollback` makes of the late reply.
    pub(super) fn settle_late(
        self: &Arc<Self>,
        late: Late,
        ending: Ending,
        rollback: impl FnOnce(&str, &[i64]) -> Option<ScriptCall> + Send + 'static,
    ) {
        if ending == Ending::Allowed {
            return;
        }
        let store = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(reply) = store.late_numbers(late).await
                && let Some(call) = rollback(&store.prefix, &reply)
            {
                store.take_back_late(call);
            }
        });
    }

    /// Awaits the replies of all subjects, and sees to what they have charged.
    async fn ask_groups(
        self: &Arc<Self>,
        prepared: &Prepared,
        sent: Vec<Result<Sent, Failure>>,
        now: Time,
        replied: oneshot::Sender<Result<Vec<Vec<i64>>, Failure>>,
        ended: oneshot::Receiver<Ending>,
    ) {
        let mut replies: Vec<Result<Vec<i64>, Unanswered>> = Vec::new();
        for (group, sent) in sent.into_iter().enumerate() {
            let call = |around| prepared.group_call(group, &self.prefix, ScriptTime::Redis, around);
            replies.push(match sent {
                Ok(sent) => self.concluded(sent, now, call, is_decision).await,
                Err(failure) => Err(failure.into()),
            });
        }
        let known: Vec<Option<&[i64]>> = replies.iter().map(|reply| reply.as_deref().ok()).collect();
        let rollbacks = prepared.rollbacks(&self.prefix, ScriptTime::Redis, &known);
        let Some(why) = replies.iter().find_map(|reply| reply.as_ref().err().map(|unanswered| unanswered.why)) else {
            rollbacks.into_iter().for_each(|(_, call)| self.take_back(call));
            // The caller may be gone.
            let _ =
                replied.send(replies.into_iter().collect::<Result<_, _>>().map_err(|failed: Unanswered| failed.why));
            return;
        };
        let _ = replied.send(Err(why));
        // A caller that is gone is as good as denied.
        if ended.await == Ok(Ending::Allowed) {
            return;
        }
        rollbacks.into_iter().for_each(|(_, call)| self.take_back(call));
        let groups = replies.len();
        for (group, reply) in replies.into_iter().enumerate() {
            if let Err(Unanswered { late: Some(late), .. }) = reply {
                let prepared = prepared.clone();
                self.settle_late(late, Ending::Denied, move |prefix, reply| {
                    let mut known = vec![None; groups];
                    known[group] = Some(reply);
                    let rollbacks = prepared.rollbacks(prefix, ScriptTime::Redis, &known);
                    rollbacks.into_iter().next().map(|(_, call)| call)
                });
            }
        }
    }

    /// Awaits a reply and reads it; where Redis's clock is far from ours, asks once more around its time.
    pub(super) async fn concluded<T>(
        &self,
        sent: Sent,
        now: Time,
        call: impl Fn(Time) -> ScriptCall,
        read: impl Fn(&[i64]) -> Result<T, ReplyError>,
    ) -> Result<T, Unanswered> {
        let reply = self.numbers(sent, || call(now)).await?;
        let around = match read(&reply) {
            Ok(concluded) => return Ok(concluded),
            Err(ReplyError::Around(around)) => around,
            Err(error) => return Err(not_understood(error).into()),
        };
        let reply = self.numbers(self.send_script(&call(around))?, || call(around)).await?;
        read(&reply).map_err(|error| not_understood(error).into())
    }

    /// The numbers that a script answers.
    pub(super) async fn numbers(&self, sent: Sent, again: impl Fn() -> ScriptCall) -> Result<Vec<i64>, Unanswered> {
        let reply = self.servers.reply(sent, again).await?;
        self.read(reply).ok_or_else(|| not_understood(ReplyError::Malformed).into())
    }

    /// Those of a reply that comes too late, if it comes.
    async fn late_numbers(&self, late: Late) -> Option<Vec<i64>> {
        self.read(late.reply().await?)
    }

    fn read(&self, reply: Reply) -> Option<Vec<i64>> {
        let mut numbers = numbers(reply)?;
        self.health.unreadable(take_unreadable(&mut numbers));
        Some(numbers)
    }

    /// Sends a rollback to a Redis that has answered in time.
    fn take_back(self: &Arc<Self>, call: ScriptCall) {
        self.send_rollback(&call.clone(), move || call.clone());
    }

    /// Sends a rollback to a Redis that has answered late. If it did not know the script it would say so late again, when
    /// nothing is sent any more: so the rollback brings the script along.
    fn take_back_late(self: &Arc<Self>, call: ScriptCall) {
        self.send_rollback(&call.clone(), move || WithScript(call.clone()));
    }

    /// Sends a rollback, whose answer is not awaited. Where it is not carried out, more stays counted than was taken.
    fn send_rollback<C: Command + Send>(
        self: &Arc<Self>,
        call: &ScriptCall,
        command: impl Fn() -> C + Send + Sync + 'static,
    ) {
        if let Ok(sent) = self.servers.send_even_if_open(first_key(call), &command()) {
            let store = Arc::clone(self);
            tokio::spawn(async move {
                if let Ok(reply) = store.servers.reply(sent, command).await {
                    store.read(reply);
                }
            });
        }
    }
}

/// The replies of all groups.
async fn groups(
    replies: oneshot::Receiver<Result<Vec<Vec<i64>>, Failure>>,
    ending: oneshot::Sender<Ending>,
) -> Result<Vec<Vec<i64>>, Undecided> {
    let replies = replies.await.unwrap_or(Err(Failure::Lost));
    replies.map_err(|why| Undecided { why, charges: Charges::Groups(ending) })
}

/// What is no decision: that other ends of calendar periods are needed, or that a key is in use. Anything else is read
/// when all replies are there.
fn is_decision(reply: &[i64]) -> Result<Vec<i64>, ReplyError> {
    match reply {
        [-1, micros, ..] => Err(ReplyError::Around(Time::from_micros(micros.unsigned_abs()))),
        [-2, ..] => Err(ReplyError::OtherAlgorithm),
        _ => Ok(reply.to_vec()),
    }
}

/// Redis answered, but not what our script says: somebody else's key, or another clock.
pub(super) fn not_understood(error: ReplyError) -> Failure {
    tracing::debug!(%error, "Redis's answer has no decision in it");
    Failure::Refused
}

/// All keys of a call belong together, so the first tells where.
fn first_key(call: &ScriptCall) -> &[u8] {
    call.keys().next().unwrap_or_default()
}

fn numbers(reply: Reply) -> Option<Vec<i64>> {
    let Reply::List(list) = reply else { return None };
    let number = |reply| match reply {
        Reply::Integer(number) => Some(number),
        _ => None,
    };
    list.into_iter().map(number).collect()
}
