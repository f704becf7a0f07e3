//! A session: what the server remembers about one client of the Redis protocol between its commands.

use std::sync::Arc;

use flowgate_engine::config::Secret;

use super::counters::Counters;
use super::reply::Version;
use crate::service::Service;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) service: Service,
    /// `None`: nobody needs one.
    pub(crate) password: Option<Secret>,
    /// A command, framing included.
    pub(crate) max_command: usize,
    pub(crate) counters: Counters,
}

/// The longest command of a client that has yet to give the password, so that strangers hold little memory. As in Redis.
const MAX_STRANGERS_COMMAND: usize = 16 * 1024;

/// One client.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    /// Tells clients apart; never used twice.
    pub(crate) id: u64,
    pub(crate) version: Version,
    pub(crate) authenticated: bool,
    pub(crate) name: Vec<u8>,
    /// Whether to go on after the command at hand.
    pub(crate) end: End,
}

/// How a conversation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It does.
    NotYet,
    /// It ends once the replies are sent.
    AfterReplies,
    /// It ends at once, unheard.
    AtOnce,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Session {
        shared.counters.connections.add(1);
        shared.counters.open.add(1);
        let id = shared.counters.connections.get();
        let authenticated = shared.password.is_none();
        Session { shared, id, version: Version::default(), authenticated, name: Vec::new(), end: End::NotYet }
    }

    /// The longest command that this client may send.
    pub(crate) fn max_command(&self) -> usize {
        let max = self.shared.max_command;
        if self.authenticated { max } else { max.min(MAX_STRANGERS_COMMAND) }
    }

    /// Whether these open the door. Takes the same time for every password of the same length.
    pub(crate) fn opens(&self, user: &[u8], password: &[u8]) -> bool {
        let Some(right) = &self.shared.password else { return user == b"default" };
        let right = right.expose().as_bytes();
        let differences = right.iter().zip(password).fold(0, |differences, (a, b)| differences | (a ^ b));
        user == b"default" && right.len() == password.len() && differences == 0
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.counters.open.subtract_one();
    }
}
