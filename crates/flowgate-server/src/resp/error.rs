//! Errors to clients: the one table from a mistake to its text in the Redis protocol.
//!
//! Where Redis or redis-cell has a text, this is that text, word for word: clients compare it.

use flowgate::{LimitError, OtherAlgorithm, ThrottleError};
use flowgate_engine::bans::BanOrderError;

use super::decode::ProtocolError;
use crate::service::{BanError, StoreAway};

/// Why a command fails. Displayed as on the wire, after the `-`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("ERR Protocol error: {0}")]
    Protocol(#[from] ProtocolError),
    #[error("ERR unknown command '{name}', with args beginning with: {args}")]
    UnknownCommand { name: QuotedText, args: QuotedText },
    /// A command of Redis that this server does not have. The error names what to use instead.
    #[error("ERR unknown command '{name}'. {instead}")]
    UseInstead { name: QuotedText, instead: &'static str },
    #[error("ERR unknown subcommand '{subcommand}'. {command} knows {known}.")]
    UnknownSubcommand { command: &'static str, subcommand: QuotedText, known: &'static str },
    #[error("ERR wrong number of arguments for '{0}' command")]
    Arity(&'static str),
    #[error("ERR syntax error")]
    Syntax,
    /// A command that Redis does not have: the error shows its usage.
    #[error("{error}; usage: {usage}")]
    Misused { error: Box<Error>, usage: &'static str },
    #[error("ERR value is not an integer or out of range")]
    NotInteger,
    #[error("ERR {0}: expected UTF-8")]
    NotText(&'static str),
    #[error("ERR DB index is out of range")]
    NoSuchDatabase,
    #[error("ERR Client names cannot contain spaces, newlines or special characters.")]
    ClientName,
    #[error("ERR Client names have at most {} bytes.", super::command::MAX_CLIENT_NAME_BYTES)]
    LongClientName,
    #[error("ERR This instance has cluster support disabled")]
    NoCluster,

    #[error("ERR MULTI calls can not be nested")]
    NestedMulti,
    #[error("ERR {0} without MULTI")]
    WithoutMulti(&'static str),
    #[error(
        "ERR the transaction exceeds {commands} commands or {bytes} bytes",
        commands = super::transaction::MAX_COMMANDS,
        bytes = super::transaction::MAX_TRANSACTION_BYTES
    )]
    TooMuchKept,
    #[error("EXECABORT Transaction discarded because of previous errors.")]
    Refused,

    #[error("NOAUTH Authentication required.")]
    Unauthenticated,
    #[error("NOPERM '{0}' needs the admin token: AUTH admin TOKEN")]
    NotAdmin(&'static str),
    #[error("WRONGPASS invalid username-password pair or user is disabled.")]
    WrongPassword,
    #[error(
        "ERR AUTH <password> called without any password configured for the default user. \
         Are you sure your configuration is correct?"
    )]
    NoPassword,
    #[error("NOPROTO unsupported protocol version")]
    NoSuchVersion,
    #[error("ERR Protocol version is not an integer or out of range")]
    VersionNotInteger,
    #[error("ERR Syntax error in HELLO option '{0}'")]
    HelloOption(QuotedText),
    #[error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
         <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
    )]
    UnauthenticatedHello,

    #[error("Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]")]
    CellUsage,
    #[error("Cell error: Store error: Couldn't parse as integer: {0}")]
    CellNotInteger(QuotedText),
    #[error("Cell error: Store error: Zero rates are not supported")]
    CellZeroRate,

    #[error("ERR value is out of range")]
    OutOfRange,
    #[error("WRONGTYPE the key is in use by a limit of another algorithm: use another key, or DEL it")]
    WrongType(#[from] OtherAlgorithm),
    #[error("ERR {0}")]
    Limit(#[from] LimitError),
    #[error("ERR {0}")]
    Ban(#[from] BanOrderError),
    #[error("UNAVAILABLE {0}")]
    Away(#[from] StoreAway),
}

impl Error {
    /// Adds the usage of the command, where the usage was wrong.
    pub(crate) fn with_usage(self, usage: &'static str) -> Error {
        match self {
            Error::Arity(_) | Error::Syntax | Error::NotInteger if !usage.is_empty() => {
                Error::Misused { error: Box::new(self), usage }
            }
            other => other,
        }
    }
}

impl From<BanError> for Error {
    fn from(error: BanError) -> Error {
        match error {
            BanError::Order(error) => Error::Ban(error),
            BanError::Away(error) => Error::Away(error),
        }
    }
}

impl From<ThrottleError> for Error {
    fn from(error: ThrottleError) -> Error {
        match error {
            ThrottleError::OutOfRange => Error::OutOfRange,
            ThrottleError::ZeroRate => Error::CellZeroRate,
            ThrottleError::OtherAlgorithm(other) => Error::WrongType(other),
        }
    }
}

/// The beginning of a client's text, to quote it.
#[derive(Debug)]
pub(crate) struct QuotedText(String);

/// The number of bytes that Redis quotes.
const MAX_QUOTED_BYTES: usize = 128;

impl QuotedText {
    pub(crate) fn new(bytes: &[u8]) -> QuotedText {
        QuotedText(String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_QUOTED_BYTES)]).into_owned())
    }

    /// The beginnings of several texts, each in quotes, as Redis lists them.
    pub(crate) fn list<'a>(texts: impl Iterator<Item = &'a [u8]>) -> QuotedText {
        let mut list = Vec::new();
        for text in texts {
            let Some(room) = MAX_QUOTED_BYTES.checked_sub(list.len()).filter(|room| *room > 0) else { break };
            list.push(b'\'');
            list.extend_from_slice(&text[..text.len().min(room)]);
            list.extend_from_slice(b"' ");
        }
        QuotedText(String::from_utf8_lossy(&list).into_owned())
    }
}

impl std::fmt::Display for QuotedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
