//! Rate limits that keep their promise.
//!
//! *Five replies a minute for a user. 300 requests a minute but no more than 100 in 5 seconds for an address. 500
//! calls a second, evenly paced, towards a weak backend.* This crate decides, for any event, whether it may happen
//! now: exactly, under any number of threads, in bounded memory, in tens of nanoseconds. It needs no async runtime
//! and does no I/O.
//!
//! ```
//! use flowgate::Limiter;
//!
//! let replies = Limiter::new("5/60s")?;
//! if replies.take("user:42").allowed() {
//!     // post the reply
//! }
//! # Ok::<(), flowgate::LimitError>(())
//! ```
//!
//! # Which limit for which wish
//!
//! A limit is a short text; [`Limit`] also has a typed builder.
//!
//! | wish | limit | promise |
//! |---|---|---|
//! | at most N in **any** minute | `5/60s` (the default, `sliding`) | no span of a minute ever holds more than 5 |
//! | a quota a day | `fixed 100/day tz=Asia/Shanghai` | 100 from midnight to midnight of that zone, daylight saving included |
//! | N per window, cheapest to explain | `fixed 100/60s` | 100 in a window that opens with the first request; up to 200 across an edge |
//! | a steady rate with some burst | `bucket 30/60s burst=15` | at most 15 + half a unit a second in any span |
//! | an even flow towards something weak | `pace 500/s max_wait=1s` | requests leave 2 ms apart; each is told how long to wait |
//! | N in any minute, huge N, millions of keys | `approx 100000/60s` | two counters a key; an estimate, below 2N at worst |
//! | free at first, strict later | `fixed 1/10s after=30/day tz=UTC` | 30 a day as fast as one likes, then one every ten seconds |
//! | both at once | `["300/60s", "100/5s"]` | all or nothing: what one denies, none counts |
//!
//! If in doubt, take the default. `N/P` then means what people think it means.
//!
//! # The answer
//!
//! [`Limiter::take`] gives a [`Decision`]: whether it passes, how much is left, and when to come back. Waits are
//! honest: after exactly [`retry_after`](Decision::retry_after) the same request passes if nothing else happened, and
//! a nanosecond earlier it does not. They are rounded up, what is left is rounded down.
//!
//! ```
//! # use flowgate::{Limiter, ManualClock, Span, Time};
//! let clock = ManualClock::new(Time::from_secs(1_700_000_000));
//! let limiter = Limiter::builder("bucket 30/60s burst=15").clock(clock.clone()).build()?;
//! limiter.take_n("user:42", 15);
//!
//! let wait = limiter.take("user:42").retry_after().expect("the funnel is full");
//! assert_eq!(wait, Span::from_secs(2));
//! clock.advance(wait);
//! assert!(limiter.take("user:42").allowed());
//! # Ok::<(), flowgate::LimitError>(())
//! ```
//!
//! Besides `take` there are [`peek`](Limiter::peek) (would it pass?), [`record`](Limiter::record) (it happened
//! anyway), [`refund`](Limiter::refund) (it failed, give it back), [`reset`](Limiter::reset) and
//! [`wait`](Limiter::wait) (sleep until it is my turn; `wait_async` with the `tokio` feature).
//!
//! # Which type
//!
//! * [`Limiter`]: the same limits for any number of keys. Start here.
//! * [`Single`]: one counter without a key, for a backend or a worker; about ten nanoseconds a decision.
//! * [`MemoryStore`]: the store under a limiter, for callers that bring their own limits to each call or decide several
//!   subjects in one atomic step (a user *and* an address), as a rule engine does. A [`Plan`] is such a step; its parts
//!   are requests that pass together or not at all.
//!
//! # Pitfalls
//!
//! * **A window has an edge.** `fixed 100/60s` passes 200 within a second if they come around the end of a window.
//!   If that hurts, say `100/60s`.
//! * **A delay must be obeyed.** With `pace`, an allowed request carries a [`delay`](Decision::delay): hold it that
//!   long, or call [`wait`](Limiter::wait), which does.
//! * **A cost above the limit never passes.** [`Decision::never`] tells it from "come back later".
//! * **Read the clock once per batch**: [`Limiter::take_each`], or [`Limiter::take_at`] with one reading. The cache misses
//!   of several decisions then overlap; a reading of the clock between two of them prevents that.
//! * **Denied requests count nothing**, unless [`count_denied`](LimiterBuilder::count_denied) says so.
//! * **Memory is capped** (64 MiB by default, about 1.5 million keys of a `bucket`; [`LimiterBuilder::max_bytes`]).
//!   When it is full, the counters with the least use are forgotten first, and [`MemoryStats`] counts them; a forgotten
//!   subject has its full allowance again. [`WhenFull::Deny`] denies new subjects instead.
//! * **A `sliding` log** keeps a time per unit, up to 1024 of them (8 KiB); above, it rounds times up to a grid and
//!   needs 16 KiB at the most. Where even that is too much, `approx` is 16 bytes.
//! * **Counters live in the process.** Another process counts for itself.
//!
//! # What is promised
//!
//! Each algorithm states its bound, and no interleaving of threads exceeds it. All arithmetic is on whole numbers:
//! `7/s` admits exactly seven billion in a billion seconds. Time never runs back while the process lives, and a wall
//! clock that is put back holds callers up by no more than that step: until it has caught up, time runs at half speed,
//! and waits are told in real seconds. What may exceed a bound is what you ask for: a refund, an eviction when memory
//! is full.

// Rates are exact rationals: nothing that decides may round.
#![deny(clippy::float_arithmetic)]

mod algorithm;
mod ask;
mod ban;
mod calendar;
mod class;
mod clock;
mod decision;
#[doc(hidden)]
pub mod durable;
mod key_bytes;
mod limit;
mod limiter;
mod memory;
mod plan;
#[cfg(feature = "portable")]
pub mod portable;
mod queue;
mod redis_cell;
mod share;
mod single;
mod time;
#[cfg(test)]
mod vectors;
mod wait;

pub use ask::{Ask, Op};
pub use ban::{Ban, BanError, BanHit, Standing};
pub use calendar::TimeZone;
pub use clock::{Clock, ClockStatus, ManualClock, Reading, Steps};
pub use decision::{Decision, Retry, Verdict};
pub use key_bytes::KeyBytes;
pub use limit::{Algorithm, Limit, LimitBuilder, LimitError, MAX_COUNT, MaxWait, Part, Period, Rate, Unit};
pub use limiter::{IntoLimits, Limiter, LimiterBuilder};
pub use memory::{
    CounterId, Database, Key, MemoryConfig, MemoryStats, MemoryStore, OtherAlgorithm, PrefetchGroup, Seed, Subject,
    SubjectHasher, WhenFull,
};
pub use plan::{Hit, Plan, PlanPart, RuleFlags};
pub use redis_cell::{Throttle, ThrottleError, ThrottleReply};
pub use share::{Share, ShareError};
pub use single::Single;
pub use time::{Span, Time};
pub use wait::WaitError;
