//! Commands that there are not: refused in Redis's words or, where users of Redis expect them, with what to use
//! instead.

use super::Command;
use crate::resp::error::{Error, QuotedText};

/// Commands on values.
const VALUES: &[&str] = &[
    "get", "set", "getex", "getset", "getdel", "setex", "psetex", "setnx", "mget", "mset", "incr", "incrby", "decr",
    "decrby", "expire", "pexpire", "hget", "hset", "hincrby", "zadd",
];
const INSTEAD_OF_VALUES: &str = "Flowgate counts and keeps no values: FG.LIMIT and CL.THROTTLE count; values need a second \
                                 client, to Redis itself.";

/// Commands that run scripts.
const SCRIPTS: &[&str] = &["eval", "eval_ro", "evalsha", "evalsha_ro", "script", "fcall", "fcall_ro", "function"];
const INSTEAD_OF_SCRIPTS: &str = "Flowgate runs no scripts: send CL.THROTTLE or FG.LIMIT from the client, several of them in \
                                  one pipeline or between MULTI and EXEC; FG.TAKE decides by several limits at once.";

/// Why a command that is not in the table is refused.
pub(super) fn refuse(command: &Command<'_>) -> Error {
    let name = command.name();
    let is_among = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    let quoted = QuotedText::new(name);
    if is_among(VALUES) {
        Error::UseInstead { name: quoted, instead: INSTEAD_OF_VALUES }
    } else if is_among(SCRIPTS) {
        Error::UseInstead { name: quoted, instead: INSTEAD_OF_SCRIPTS }
    } else {
        Error::UnknownCommand { name: quoted, args: QuotedText::list(command.args()) }
    }
}
