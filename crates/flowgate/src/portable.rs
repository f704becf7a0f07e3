//! Portable counters: for a store whose arithmetic happens elsewhere, such as in a script that runs in Redis.
//!
//! Embedders do not need this module. It exists for the Redis store of `flowgate-engine`, and its types change when that
//! store does.
//!
//! Rule       [`Limit::terms`] gives the numbers with which the other side adds and compares. The other side hands back
//!            the states that it **found**. [`Hit::restore`] puts them into the hits, and [`decide`] derives the answers
//!            with the functions that decide in memory. So both stores give the same answers as long as the other side
//!            counts alike.
//! Invariant  Times are whole microseconds. Every number of a term, and every sum that the other side makes of two
//!            numbers, is below 2^53 until the year 2155: a double holds it exactly.
//!
//! Only `bucket` and `pace` divide a microsecond further. Their instants are whole microseconds and *ticks*. A
//! microsecond has less than 10^15 ticks, as many as make the interval of the limit a whole number of them.
//!
//! [`Limit::terms`]: crate::Limit::terms
//! [`Hit::restore`]: crate::Hit::restore

mod scale;
mod state;
mod terms;
mod undo;

pub use scale::Exact;
pub use state::{AlgorithmState, BanState, WindowState};
pub use terms::{AfterTerms, AlgorithmTerms, BanTerms, Terms, WindowTerms};
pub use undo::{AlgorithmUndo, Undo};

use crate::plan::joint::{self, Shared};
use crate::plan::{self, Plan, PlanPart};

/// Decides a plan whose hits were restored, as of the other side's `now`, and fills in the outcomes. Hits that name the
/// same counter share the state of the first.
pub fn decide(plan: &mut Plan<'_, '_>) {
    match &mut *plan.parts {
        [PlanPart { op, cost, hits, bans }] => {
            plan::decide_banning(crate::Ask::new(*op, *cost, plan.now), hits, bans);
        }
        parts => {
            let mut shared = Shared::new(parts).with_copies();
            joint::decide(plan.now, parts, &mut shared);
        }
    }
}
