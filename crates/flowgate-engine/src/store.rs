//! Where counters live: the one step between a plan and its conclusion.
//!
//! Rule       A store decides all of a plan in one atomic step and fills in the outcomes. It adds no policy: what
//!            must be atomic is in the plan.
//!
//! In memory that happens at once. A store across the network does the same between [`Decider::plan`] and
//! [`Plan::conclude`], which are pure: it awaits its answer there, and nothing else differs.
//!
//! [`Decider::plan`]: crate::Decider::plan

#[cfg(feature = "redis")]
pub mod redis;

use flowgate::{Ask, MemoryStore, Time};

use crate::plan::{JointPlan, Plan};

/// A store that answers at once.
pub trait Store {
    /// Applies the plan's operation to all its counters and fills in the outcomes.
    fn apply_plan(&self, plan: &mut Plan<'_>, now: Time);

    /// Applies the operations of all parts to their counters, all or nothing, and fills in the outcomes.
    fn apply_joint(&self, plan: &mut JointPlan<'_>, now: Time);
}

impl Store for MemoryStore {
    #[inline]
    fn apply_plan(&self, plan: &mut Plan<'_>, now: Time) {
        let ask = Ask::new(plan.op(), plan.cost(), now);
        self.apply(&mut flowgate::Plan::banning(ask, &mut plan.hits, &mut plan.bans));
    }

    fn apply_joint(&self, plan: &mut JointPlan<'_>, now: Time) {
        self.apply(&mut plan.for_store(now));
    }
}
