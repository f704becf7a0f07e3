//! Redis as the store: the same answers as in memory.
#![allow(clippy::unwrap_used)]

mod agree;
mod rollback_order;
mod rollbacks;
#[path = "../script/mod.rs"]
mod script;
mod shared_bans;
mod sharing;
#[path = "../../../flowgate/tests/properties/specs.rs"]
#[allow(dead_code, reason = "the library's own tests use the rest")]
mod specs;
mod unreadable;
mod vectors;
