//! The engine in virtual time. Tests that are scripts run in memory and on Redis.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod bans;
mod evaluation;
mod joint;
mod policies;
#[cfg(feature = "redis")]
mod redis_engine;
#[cfg(feature = "redis")]
mod redis_store;
mod replacing;
mod script;
mod threads;
mod vectors;
mod waiting;
mod watching;
