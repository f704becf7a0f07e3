//! Rate limits that keep their promise.

mod algorithm;
mod calendar;
mod decision;
mod limit;
mod memory;
mod plan;
mod time;
#[cfg(test)]
mod vectors;

pub use decision::{Decision, Retry, Verdict};
pub use limit::{Algorithm, Limit, LimitBuilder, LimitError, MAX_COUNT, MaxWait, Part, Period, Rate, Unit};
pub use memory::{CounterId, Key, Memory, MemoryConfig, MemoryStats, Seed, Subject, WhenFull};
pub use plan::{Hit, Op, Rule};
pub use time::{Span, Time};
