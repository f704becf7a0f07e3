//! A session: what the server remembers about one client of the Redis protocol between its commands.

use std::sync::Arc;

use flowgate::Database;
use flowgate_engine::AdHocKey;
use flowgate_engine::config::Secret;
use subtle::ConstantTimeEq;

use super::batch_metrics::BatchMetrics;
use super::counters::Counters;
use super::memory_bound::{HeldBytes, MemoryBound};
use super::reply::Version;
use super::transaction::Transaction;
use crate::author::Author;
use crate::http::auth::Tokens;
use crate::listener::Peer;
use crate::service::Service;
use crate::wrong_secrets::{ReplyTime, Source, WrongSecrets};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) service: Service,
    /// The password of clients; `None`: they need none.
    pub(crate) password: Option<Secret>,
    /// True if the configuration has an admin token. Without one, every client may ban.
    pub(crate) has_admin_token: bool,
    /// The tokens of the server. The admin token is the password of the user `admin`, also one that the server has
    /// made.
    pub(crate) tokens: Arc<Tokens>,
    /// The longest command in bytes, framing included.
    pub(crate) max_command: usize,
    pub(crate) memory_bound: MemoryBound,
    pub(crate) wrong_passwords: WrongSecrets,
    pub(crate) counters: Arc<Counters>,
}

/// The longest command of a client before `AUTH`, so that strangers hold little memory. As in Redis.
const MAX_STRANGER_COMMAND_BYTES: usize = 16 * 1024;

/// One client.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    /// Tells clients apart; never used twice.
    pub(crate) id: u64,
    pub(crate) version: Version,
    pub(crate) authenticated: bool,
    /// True if the client may ban.
    pub(crate) admin: bool,
    pub(crate) name: Vec<u8>,
    /// The user that the client has logged in as.
    user: Option<User>,
    pub(super) peer: Peer,
    /// The database of the client's keys.
    pub(crate) database: Database,
    /// The address by which the client's wrong passwords are counted.
    source: Source,
    held: HeldBytes,
    pub(crate) end: End,
    pub(super) batch: BatchMetrics,
    /// The commands since `MULTI`.
    pub(crate) transaction: Option<Box<Transaction>>,
}

/// A user that clients log in as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Default,
    Admin,
}

/// When the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection goes on.
    NotYet,
    /// The connection ends once the replies are sent.
    AfterReplies,
    /// The connection ends once the replies are sent, after [`REPLY_PAUSE`](crate::wrong_secrets::REPLY_PAUSE).
    AfterPause,
    /// The connection ends at once. Replies and commands are dropped.
    AtOnce,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, peer: Peer) -> Session {
        shared.counters.listener.begin_connection();
        let id = shared.counters.listener.connections.get();
        let (authenticated, admin) = shared.rights_of_strangers();
        Session {
            shared,
            id,
            version: Version::default(),
            authenticated,
            admin,
            name: Vec::new(),
            user: None,
            peer,
            database: Database::default(),
            source: peer.into(),
            held: HeldBytes::default(),
            end: End::NotYet,
            batch: BatchMetrics::default(),
            transaction: None,
        }
    }

    /// The key of these bytes in the client's database.
    #[inline]
    pub(crate) fn key<'k>(&self, bytes: &'k [u8]) -> AdHocKey<'k> {
        AdHocKey { bytes, database: self.database }
    }

    /// Notes how many bytes this client holds. False if it must be disconnected.
    #[inline]
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        self.held.update(bytes, self.shared.memory_bound, &self.shared.counters.occupied)
    }

    /// Notes a command that is wrong: an open transaction is then refused as a whole.
    pub(crate) fn refuse(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.refuse();
        }
    }

    /// The bytes of the commands since `MULTI`.
    #[inline]
    pub(crate) fn transaction_bytes(&self) -> usize {
        self.transaction.as_ref().map_or(0, |transaction| transaction.bytes())
    }

    /// The longest command that this client may send, in bytes.
    pub(crate) fn max_command(&self) -> usize {
        let max = self.shared.max_command;
        if self.authenticated { max } else { max.min(MAX_STRANGER_COMMAND_BYTES) }
    }

    /// Logs the client in as `user`; false if the password is wrong. Takes the same time for every password of the
    /// same length.
    pub(crate) fn log_in(&mut self, user: &[u8], password: &[u8]) -> bool {
        let is_right = |right: &Secret| bool::from(right.expose().as_bytes().ct_eq(password));
        let (user, is_known) = match user {
            b"default" => (User::Default, self.shared.password.as_ref().is_none_or(is_right)),
            b"admin" => (User::Admin, self.shared.tokens.admin.get().is_some_and(is_right)),
            _ => return false,
        };
        if is_known {
            self.authenticated = true;
            self.admin = user == User::Admin || !self.shared.has_admin_token;
            self.user = Some(user);
        }
        is_known
    }

    /// Counts a wrong password. After too many from its address, the client gets a late reply, which is its last.
    #[cold]
    pub(crate) fn note_wrong_password(&mut self) {
        let shared = &self.shared;
        shared.counters.listener.unauthorized.add(1);
        if shared.wrong_passwords.count(self.source, shared.service.monotonic()) == ReplyTime::AfterPause {
            shared.counters.held_up.add(1);
            self.end = End::AfterPause;
        }
    }

    /// Gives the client the rights that it had before `AUTH`.
    pub(crate) fn log_out(&mut self) {
        (self.authenticated, self.admin) = self.shared.rights_of_strangers();
        self.user = None;
    }

    /// The client as the author of a change.
    pub(crate) fn author(&self) -> Author {
        let by = match self.user {
            None => "client of the Redis protocol",
            Some(User::Default) => "user default of the Redis protocol",
            Some(User::Admin) => "user admin of the Redis protocol",
        };
        Author::resp(by, self.peer)
    }
}

impl Shared {
    /// Whether a client before `AUTH` is authenticated, and whether it may ban.
    fn rights_of_strangers(&self) -> (bool, bool) {
        (self.password.is_none(), !self.has_admin_token)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.counters.listener.open.subtract(1);
        self.held.release(&self.shared.counters.occupied);
    }
}
