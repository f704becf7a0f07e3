//! `flowgate replay`: what would these rules have done to yesterday's traffic?
//!
//! ```text
//! input -> lines -> event (jsonl, access_log; timestamp) -> run: the engine, in virtual time
//!                                                        -> decisions; policy_result, compare, what_if
//!                                                        -> summary, report
//! ```
//!
//! A trace is read once, as a stream, in bounded memory. Time comes from the trace: no code here reads a clock.

mod access_log;
pub mod compare;
pub mod decisions;
pub mod event;
pub mod format;
pub mod input;
mod jsonl;
pub mod lines;
pub mod policy_result;
pub mod report;
pub mod run;
pub mod summary;
pub mod timeline;
pub mod timestamp;
pub mod top;
pub mod trace;
pub mod what_if;
