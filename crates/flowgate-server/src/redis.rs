//! Redis or Valkey as the store that several nodes share: everything but the scripts, which the engine has.
//!
//! ```text
//! store ── deny_cache          denied until then: nobody is asked
//!   │ └─── fallback            Redis is away: on_failure decides
//! calls ── servers ── slots    which server has the key; what was not carried out is sent again
//!            │
//!          pool ── node ── breaker, health     whether it is asked at all
//!            │
//!          link ── target, wire                one connection, shared and pipelined
//! ```

mod breaker;
mod calls;
mod deny_cache;
mod fallback;
mod health;
mod link;
mod memo;
mod node;
mod pool;
mod servers;
mod slots;
mod store;
mod target;
mod wire;

pub use health::SharedStats;
pub(crate) use store::SharedStore;

use wire::Reply;

/// What is wrong, where a reply says that the server does not serve. That it wants to be asked otherwise, or that a
/// script failed on what it found, is not.
fn failed(reply: &Reply) -> Option<&str> {
    const OTHERWISE: [&str; 5] = ["NOSCRIPT", "MOVED", "ASK", "TRYAGAIN", "WRONGTYPE"];
    match reply {
        Reply::Error(error) if !OTHERWISE.iter().any(|word| error.starts_with(word)) => Some(error),
        _ => None,
    }
}
