//! Redis as the store: what to ask of it, and what its answers mean. Connections are the server's.
//!
//! Rule       One script call decides a request: all its limits and bans, all or nothing, at Redis's own time. The
//!            script counts and answers with the states that it found. From these states this module derives the
//!            decision, with the functions that decide in memory. One call also decides several requests that pass
//!            together or not at all.
//! Invariant  A plan that waits for its reply owns its data and may move to another
//!            thread.
//!
//! ```text
//! OwnedPlan::new(rules, plan, request)
//!     .call(None, prefix, time, around)  -> ScriptCall      to Redis: EVALSHA
//!     .conclude(&[reply])                -> Conclusion      the decision
//! ```
//!
//! See docs/redis.md, "How it counts", for the keys, the values and why the numbers are exact.

mod ad_hoc;
mod bans;
mod decider;
mod decode;
mod encode;
mod keys;
mod owned_plan;
mod question;
mod script;
mod undo;

pub use ad_hoc::{PreparedLimit, PreparedThrottle, ad_hoc_key, lifetime};
pub use bans::{BanCall, BanCopy};
pub use decode::{Numbers, ReplyError, take_unreadable, unpacked};
pub use encode::ScriptTime;
pub use owned_plan::{Conclusion, JointConclusion, OwnedJointPlan, OwnedPlan};
pub use question::RedisQuestion;
pub use script::{BANS, DECIDE, JOINT, Script, ScriptCall, THROTTLE, UNDO};

pub(crate) use keys::{CounterName, ban_name, limit_name};
