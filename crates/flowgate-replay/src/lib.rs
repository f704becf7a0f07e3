//! Recorded traffic through the engine: what would these rules have done to yesterday's traffic?
//!
//! ```text
//! input -> lines -> event (jsonl, access_log; timestamp) -> reorder (batch): in the order of their times
//!                                                        -> run: the engine, in virtual time
//!                                                        -> decisions; policy_result, compare, what_if
//!                                                        -> summary, report
//! ```
//!
//! A trace is read once, as a stream, in bounded memory. Time comes from the trace: no code here reads a clock.

mod access_log;
mod batch;
mod compare;
mod decisions;
pub mod event;
mod fields_seen;
pub mod format;
mod input;
mod jsonl;
pub mod lines;
mod policy_result;
mod reorder;
pub mod report;
mod run;
mod subject_counts;
pub mod summary;
mod timeline;
pub mod timestamp;
mod trace;
pub mod what_if;

pub use decisions::DecisionWriter;
pub use event::Format;
pub use input::{InputError, Source};
pub use reorder::DEFAULT_WINDOW;
pub use run::{Job, Progress, Replay, ReplayError};
pub use summary::{Names, Summary};
