//! Redis as the store: the same answers as in memory.
#![allow(clippy::unwrap_used)]

mod agree;
mod rollback_order;
mod rollbacks;
#[path = "../script/mod.rs"]
mod script;
mod shared_bans;
mod sharing;
mod unreadable;
mod vectors;
