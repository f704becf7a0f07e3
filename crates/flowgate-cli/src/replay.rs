//! `flowgate replay`: what would these rules have done to yesterday's traffic?
//!
//! ```text
//! input -> lines -> event (jsonl, access_log; timestamp) -> pass: the engine, in virtual time
//!                                                        -> decisions; tally, compare, what_if -> summary, report
//! ```
//!
//! Everything streams: a trace is read once, in bounded memory, and nothing reads a clock.

mod access_log;
pub mod civil;
pub mod compare;
pub mod decisions;
pub mod event;
pub mod figures;
pub mod input;
mod jsonl;
pub mod lines;
pub mod pass;
pub mod report;
pub mod summary;
pub mod tally;
pub mod timeline;
pub mod timestamp;
pub mod top;
pub mod trace;
pub mod what_if;
