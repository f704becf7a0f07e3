//! Which commands there are and what they answer.

use super::decode::Command;
use super::reply::Reply;

/// Answers one command.
pub(crate) fn execute<'a>(command: &Command<'a>) -> Reply<'a> {
    let mut args = command.args();
    if command.name().eq_ignore_ascii_case(b"PING") {
        match (args.next(), args.next()) {
            (None, _) => Reply::Simple("PONG"),
            (Some(text), None) => Reply::Bulk(text),
            (Some(_), Some(_)) => Reply::WrongArity { command: "ping" },
        }
    } else {
        Reply::UnknownCommand { name: command.name() }
    }
}
