//! A session: what the server remembers about one client of the Redis protocol between its commands.

use std::sync::Arc;

use flowgate::{Reading, ThrottleError, ThrottleReply};
use flowgate_engine::RuleOutcome;
use flowgate_engine::config::Secret;
use subtle::ConstantTimeEq;

use super::counters::Counters;
use super::reply::Version;
use super::transaction::Transaction;
use crate::answer::Answer;
use crate::listener::Peer;
use crate::metrics::sampling::{self, Kind};
use crate::service::Service;
use crate::wrong_secrets::{ReplyTime, Source, WrongSecrets};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) service: Service,
    /// `None`: nobody needs one.
    pub(crate) password: Option<Secret>,
    /// The password of the user `admin`; `None`: there is no such user, and every client may ban.
    pub(crate) admin_token: Option<Secret>,
    /// A command, framing included.
    pub(crate) max_command: usize,
    pub(crate) room: Room,
    pub(crate) wrong_passwords: WrongSecrets,
    pub(crate) counters: Arc<Counters>,
}

/// What clients may hold of half-received commands, transactions and unread replies.
///
/// Above `all`, a client over its share is disconnected when it grows. The shares add up to as much again, so all clients
/// together hold at most twice `all`, and a client that holds little is never disconnected for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    all: u64,
    share: u64,
}

impl Room {
    pub(crate) fn new(all: u64, max_connections: usize) -> Room {
        Room { all, share: all / max_connections.max(1) as u64 }
    }
}

/// The longest command of a client that has yet to give the password, so that strangers hold little memory. As in Redis.
const MAX_STRANGER_COMMAND_BYTES: usize = 16 * 1024;

/// One client.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    /// Tells clients apart; never used twice.
    pub(crate) id: u64,
    pub(crate) version: Version,
    pub(crate) authenticated: bool,
    /// Whether it may ban.
    pub(crate) admin: bool,
    pub(crate) name: Vec<u8>,
    /// Where it comes from, to count its wrong passwords.
    source: Source,
    /// What it holds of commands and replies, as last noted.
    occupied: u64,
    /// Whether to go on after the command at hand.
    pub(crate) end: End,
    /// What `CL.THROTTLE` has answered since it was last told to the metrics.
    throttled: Throttled,
    /// What it has said since `MULTI`.
    pub(crate) transaction: Option<Box<Transaction>>,
}

/// Answers of `CL.THROTTLE`, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Throttled {
    allowed: u64,
    limited: u64,
}

/// How a conversation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It does.
    NotYet,
    /// It ends once the replies are sent.
    AfterReplies,
    /// The same, and the replies are held back for [`PAUSE`](crate::wrong_secrets::REPLY_PAUSE).
    AfterPause,
    /// It ends at once, unheard.
    AtOnce,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, peer: Peer) -> Session {
        shared.counters.connections.add(1);
        shared.counters.open.add(1);
        let id = shared.counters.connections.get();
        let (authenticated, admin) = shared.rights_of_strangers();
        Session {
            shared,
            id,
            version: Version::default(),
            authenticated,
            admin,
            name: Vec::new(),
            source: peer.into(),
            occupied: 0,
            end: End::NotYet,
            throttled: Throttled::default(),
            transaction: None,
        }
    }

    /// Takes note of how much this client holds; false when that is too much.
    #[inline]
    pub(crate) fn occupy(&mut self, bytes: usize) -> bool {
        // Nearly always both are nothing.
        bytes as u64 == self.occupied || self.occupy_other(bytes as u64)
    }

    #[cold]
    fn occupy_other(&mut self, bytes: u64) -> bool {
        let all = &self.shared.counters.occupied;
        let less = std::mem::replace(&mut self.occupied, bytes);
        if bytes < less {
            all.subtract(less - bytes);
            return true;
        }
        all.add(bytes - less);
        bytes <= self.shared.room.share || all.get() <= self.shared.room.all
    }

    /// Notes that a command is not understood: of a transaction nothing is done then.
    pub(crate) fn refuse(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.refuse();
        }
    }

    /// What it has said since `MULTI`, in bytes.
    #[inline]
    pub(crate) fn kept_bytes(&self) -> usize {
        self.transaction.as_ref().map_or(0, |transaction| transaction.bytes())
    }

    /// Notes an answer of `CL.THROTTLE`: of a batch all are counted at once, by [`Session::end_batch`].
    #[inline]
    pub(crate) fn throttled(
        &mut self,
        key: &[u8],
        at: Reading,
        answer: Answer<Result<ThrottleReply, ThrottleError>>,
    ) -> Answer<Result<ThrottleReply, ThrottleError>> {
        match &answer {
            Answer::Now(Ok(reply)) => {
                let Throttled { allowed, limited } = &mut self.throttled;
                *(if reply.limited { limited } else { allowed }) += 1;
                self.shared.service.observer().key_seen(key, !reply.limited, at.now);
                answer
            }
            Answer::Now(Err(_)) => answer,
            Answer::Later(_) => self.shared.service.observer().throttle_to_come(key, at, answer),
        }
    }

    /// Tells the metrics what a batch of commands came to.
    #[inline]
    pub(crate) fn end_batch(&mut self, commands: u64) {
        let metrics = self.shared.service.metrics();
        self.shared.counters.commands.add(commands);
        let Throttled { allowed, limited } = std::mem::take(&mut self.throttled);
        if allowed > 0 {
            metrics.keys.add(RuleOutcome::Allowed, allowed);
        }
        if limited > 0 {
            metrics.keys.add(RuleOutcome::Denied, limited);
        }
    }

    /// Tells the metrics how long a batch took that began at `began` and has all its answers. One batch of many is worth
    /// a second look at the clock.
    #[inline]
    pub(crate) fn note_latency(&self, commands: u64, began: Reading) {
        if commands > 0
            && let Some(weight) = sampling::weight(Kind::Latency, began.now)
        {
            let took = began.real_wait(self.shared.service.now().since(began.now));
            self.shared.service.metrics().resp_latency.note(took, commands * u64::from(weight));
        }
    }

    /// The longest command that this client may send.
    pub(crate) fn max_command(&self) -> usize {
        let max = self.shared.max_command;
        if self.authenticated { max } else { max.min(MAX_STRANGER_COMMAND_BYTES) }
    }

    /// Lets the client in as this user; false when it may not. Takes the same time for every password of the same
    /// length.
    pub(crate) fn log_in(&mut self, user: &[u8], password: &[u8]) -> bool {
        let is_right = |right: &Secret| bool::from(right.expose().as_bytes().ct_eq(password));
        let is_known = match user {
            b"default" => self.shared.password.as_ref().is_none_or(is_right),
            b"admin" => self.shared.admin_token.as_ref().is_some_and(is_right),
            _ => false,
        };
        if is_known {
            self.authenticated = true;
            self.admin = user == b"admin" || self.shared.admin_token.is_none();
        }
        is_known
    }

    /// Counts a wrong password. A client whose address gave too many of them waits for its answer, which is the last.
    #[cold]
    pub(crate) fn note_wrong_password(&mut self) {
        let shared = &self.shared;
        shared.counters.wrong_passwords.add(1);
        if shared.wrong_passwords.count(self.source, shared.service.monotonic()) == ReplyTime::AfterPause {
            shared.counters.held_up.add(1);
            self.end = End::AfterPause;
        }
    }

    /// Takes back what the client was let in for.
    pub(crate) fn log_out(&mut self) {
        (self.authenticated, self.admin) = self.shared.rights_of_strangers();
    }
}

impl Shared {
    /// Whether a client that has said nothing yet may ask, and may ban.
    fn rights_of_strangers(&self) -> (bool, bool) {
        (self.password.is_none(), self.admin_token.is_none())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.counters.open.subtract(1);
        self.shared.counters.occupied.subtract(self.occupied);
    }
}
