//! Commands that this server does not have. They are refused in Redis's words or, where users of Redis expect them,
//! with what to use instead.

use super::Command;
use crate::resp::error::{Error, QuotedText};

/// Families of commands, as names separated by blanks, each with what to use instead.
const FAMILIES: &[(&str, &str)] = &[
    (
        "get set getex getset getdel setex psetex setnx mget mset append strlen incr incrby incrbyfloat decr decrby \
         expire pexpire expireat pexpireat persist type object dump restore copy rename renamenx hget hset hgetall hdel \
         hincrby lpush rpush lrange sadd smembers zadd zcard zrange zremrangebyscore",
        "Flowgate counts and keeps no values: FG.LIMIT and CL.THROTTLE count; values need a second client, to Redis \
         itself.",
    ),
    (
        "eval eval_ro evalsha evalsha_ro script fcall fcall_ro function watch unwatch",
        "Flowgate runs no scripts: send CL.THROTTLE or FG.LIMIT from the client, several of them in one pipeline or \
         between MULTI and EXEC; FG.TAKE decides by several limits at once.",
    ),
    (
        "keys scan randomkey",
        "Flowgate keeps counters by the hashes of their keys and cannot list them: DBSIZE counts them, EXISTS and TTL \
         ask about one key, and the console or GET /v1/stats over HTTP tells who asks most.",
    ),
    (
        "flushall flushdb unlink swapdb",
        "Flowgate forgets counters by name: DEL for keys, `flowgate reset` or POST /v1/reset for the subjects of a \
         request. A restart forgets all that is in memory, unless store.durable keeps it.",
    ),
    (
        "monitor slowlog latency memory subscribe psubscribe ssubscribe publish",
        "Flowgate has no channels and sends no events: log.denials logs who is denied, GET /v1/denials lists it, and \
         GET /metrics has counts and times.",
    ),
    (
        "save bgsave bgrewriteaof lastsave shutdown replicaof slaveof wait acl",
        "Flowgate is run by its configuration: store.durable keeps counters on disk, store.type = \"redis\" shares \
         them, auth.resp_password guards the port, and SIGTERM stops the server.",
    ),
];

/// Why a command that is not in the table is refused.
pub(super) fn refuse(command: &Command<'_>) -> Error {
    let name = command.name();
    let is_among = |names: &str| names.split(' ').any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    let quoted = QuotedText::new(name);
    match FAMILIES.iter().find(|(names, _)| is_among(names)) {
        Some((_, instead)) => Error::UseInstead { name: quoted, instead },
        None => Error::UnknownCommand { name: quoted, args: QuotedText::list(command.args()) },
    }
}
