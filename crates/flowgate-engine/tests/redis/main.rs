//! Redis as the store: the same answers as in memory.
#![allow(clippy::unwrap_used)]

#[path = "../redis_server/mod.rs"]
mod redis_server;
#[path = "../script/mod.rs"]
mod script;
mod store;
mod vectors;
