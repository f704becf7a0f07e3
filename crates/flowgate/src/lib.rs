//! Rate limits that keep their promise.

mod algorithm;
mod ban;
mod calendar;
mod clock;
mod decision;
mod limit;
mod limiter;
mod memory;
mod plan;
mod queue;
mod single;
mod time;
#[cfg(test)]
mod vectors;
mod wait;

pub use ban::{Ban, BanError, BanHit, Standing};
pub use clock::{Clock, ManualClock};
pub use decision::{Decision, Retry, Verdict};
pub use limit::{Algorithm, Limit, LimitBuilder, LimitError, MAX_COUNT, MaxWait, Part, Period, Rate, Unit};
pub use limiter::{IntoLimits, Limiter, LimiterBuilder};
pub use memory::{CounterId, Key, Memory, MemoryConfig, MemoryStats, OtherAlgorithm, Seed, Subject, WhenFull};
pub use plan::{Hit, Op, Rule};
pub use single::Single;
pub use time::{Span, Time};
pub use wait::WaitError;
