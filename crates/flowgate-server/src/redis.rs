//! Redis or Valkey as the store that several nodes share: everything but the scripts, which the engine has.
//!
//! ```text
//! shared ── question            what is asked: written for Redis and read back, kind by kind
//!   │
//! deny_cache                    a layer: denied until then, so Redis is not asked
//!   │
//! failover                      a layer: Redis is away, so `on_failure` decides
//!   │
//! store                         Redis: sends now, reads the reply later, rolls back charges of denied requests
//!   │
//! redirect ── servers ── slots  which server has the key; what was not carried out is sent again
//!               │ ├───── sentinel the master, and the one after a failover
//!               │ └───── inspect  settings that deserve a warning
//!               │
//!             pool ── node ── breaker, health     whether the server is asked at all
//!               │
//!             link ── target, wire                one connection, shared and pipelined
//! ```

mod breaker;
mod clock;
mod deny_cache;
mod failover;
mod health;
mod inspect;
mod link;
mod node;
mod pool;
mod question;
mod redirect;
mod sentinel;
mod servers;
mod shared;
mod slots;
mod store;
mod target;
mod wire;

pub(crate) use failover::Local;
pub use health::SharedStats;
pub(crate) use question::{
    KeyQuestion, LocalQuestion, OutcomesQuestion, OwnedQuestion, Question, StoreReply, ThrottleQuestion,
};
pub(crate) use shared::{SentQuestion, SharedStore};

use wire::Reply;

/// The error of a reply, if it says that the server does not serve. An error about the one request is not returned: a
/// redirect, or a script that failed on the data it found.
fn failed(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Error(error) if !is_of_request(error) => Some(error),
        _ => None,
    }
}

fn is_of_request(error: &str) -> bool {
    const OTHERWISE: [&str; 5] = ["NOSCRIPT", "MOVED", "ASK", "TRYAGAIN", "WRONGTYPE"];
    // Errors that a command within a script got. Redis before version 7 wraps them in an error of the script.
    const OF_SERVER: [&str; 6] = ["-OOM ", "-READONLY ", "-MISCONF ", "-NOREPLICAS ", "-CLUSTERDOWN ", "-MASTERDOWN "];
    let of_script = error.starts_with("ERR ") && (error.contains("user_script") || error.contains("running script"));
    OTHERWISE.iter().any(|word| error.starts_with(word))
        || of_script && !OF_SERVER.iter().any(|word| error.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_script_are_not_failures_of_the_server() {
        let fails = |error: &str| failed(&Reply::Error(error.to_owned())).is_some();
        for error in [
            "WRONGTYPE Operation against a key holding the wrong kind of value script: 1f, on @user_script:30.",
            "ERR user_script:30: data string too short script: 1f, on @user_script:30.",
            "ERR Error running script (call to f_1f): @user_script:30: user_script:30: data string too short",
            "NOSCRIPT No matching script. Please use EVAL.",
            "MOVED 3999 127.0.0.1:6381",
        ] {
            assert!(!fails(error), "{error}");
        }
        for error in [
            "OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:30.",
            "ERR Error running script (call to f_1f): @user_script:30: -OOM command not allowed",
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            "LOADING Redis is loading the dataset in memory",
            "CLUSTERDOWN Hash slot not served",
            "ERR unknown command 'EVALSHA'",
        ] {
            assert!(fails(error), "{error}");
        }
    }
}
