//! The author of a change of rules or bans, for the log, for the history of the rules and for the list of bans.
//!
//! Rule       Each change that a person or a file makes is one line of the log, with the target `flowgate::changes`:
//!            who (the kind of right that was used, never a secret), from where, and what. Bans that rules impose are
//!            decisions, not changes: metrics count them.

use std::borrow::Cow;
use std::net::IpAddr;

use flowgate_engine::bans::BanAuthor;
use serde::Serialize;

use crate::listener::Peer;

/// The longest name of a client program in the log.
const MAX_AGENT_BYTES: usize = 128;

/// The author of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Author {
    /// The kind of right that the author has used.
    pub(crate) by: Cow<'static, str>,
    /// The address of the client, or that it is on a unix socket.
    pub(crate) from: Option<String>,
    /// The proxy through which the client connected.
    pub(crate) through: Option<IpAddr>,
    /// What the client calls itself, such as `flowgate/0.1.0` for the command line.
    pub(crate) agent: Option<String>,
}

impl Author {
    const fn named(by: &'static str) -> Author {
        Author { by: Cow::Borrowed(by), from: None, through: None, agent: None }
    }

    /// The program that embeds the server makes the change.
    pub const PROGRAM: Author = Author::named("program");

    /// A file has changed.
    pub const FILE: Author = Author::named("file");

    /// The process got the signal to reload.
    pub const SIGHUP: Author = Author::named("SIGHUP");

    /// A pause has reached its end.
    pub(crate) const CLOCK: Author = Author::named("clock");

    /// A client of the Redis protocol.
    pub(crate) fn resp(by: &'static str, peer: Peer) -> Author {
        let from = match peer {
            Peer::Address(address) => address.ip().to_canonical().to_string(),
            Peer::Unix => "unix socket".to_owned(),
        };
        Author { from: Some(from), ..Author::named(by) }
    }

    /// A client with the admin token over HTTP, at `client`; `None`: on a unix socket.
    pub(crate) fn admin_token(client: Option<IpAddr>, through: Option<IpAddr>, agent: Option<&str>) -> Author {
        let from = client.map_or_else(|| "unix socket".to_owned(), |address| address.to_string());
        let shortened = |agent: &str| agent.chars().take(MAX_AGENT_BYTES / 4).collect();
        let agent = agent.map(|agent| if agent.len() > MAX_AGENT_BYTES { shortened(agent) } else { agent.to_owned() });
        Author { from: Some(from), through, agent, ..Author::named("admin token") }
    }

    /// What a ban keeps of its author.
    pub(crate) fn of_ban(&self) -> BanAuthor {
        BanAuthor { by: (&*self.by).into(), from: self.from.as_deref().map(Into::into) }
    }
}

/// Logs a change: `changed!(author, "ban lifted", id = %id)`.
macro_rules! changed {
    ($author:expr, $message:literal $(, $($field:tt)*)?) => {{
        let $crate::author::Author { by, from, through, agent } = $author;
        tracing::info!(
            target: "flowgate::changes",
            by = &**by,
            from = from.as_deref(),
            through = through.map(tracing::field::display),
            agent = agent.as_deref(),
            $($($field)*,)?
            $message
        );
    }};
}
pub(crate) use changed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_agent_is_shortened() {
        let of = |agent: &str| Author::admin_token(None, None, Some(agent)).agent.unwrap();
        assert_eq!(of("curl/8.5.0"), "curl/8.5.0");
        for long in ["x".repeat(5000), "\u{1f600}".repeat(1000)] {
            assert!(of(&long).len() <= MAX_AGENT_BYTES);
        }
    }
}
