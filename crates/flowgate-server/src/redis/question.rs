//! What is asked of the shared store. Each kind of question is written for Redis, and read back, in one place.
//!
//! Rule       A question borrows what the caller has. A store that answers later makes an owned question of it, once:
//!            that is the only copy of the request, and it comes back with the reply.

mod joint;
mod key;
mod outcomes;
mod rules;
mod throttle;

use std::sync::Arc;

use flowgate::Reading;
use flowgate_engine::Decider;
use flowgate_engine::redis::{RedisQuestion, ReplyError};

use super::deny_cache::{Denial, DenyQuestion, DenyTable};
use super::failover::Local;
use crate::answer::Pending;
pub(crate) use joint::{JointQuestion, OwnedJointQuestion};
pub(crate) use key::KeyQuestion;
pub(crate) use outcomes::OutcomesQuestion;
pub(crate) use rules::{ExplainQuestion, OwnedRuleQuestion, RuleQuestion};
pub(crate) use throttle::ThrottleQuestion;

/// A question that borrows from its caller, until it is sent.
pub(crate) trait Question {
    type Owned: LocalQuestion;

    /// The same question without borrows.
    fn to_owned(&self) -> Self::Owned;

    /// What the deny cache needs to know about the question; `None`: no denial of it can be remembered.
    fn deny_question(&self, _: &DenyTable) -> Option<DenyQuestion> {
        None
    }

    /// The reply that follows from a remembered denial of this question.
    fn recall(&self, _: Denial) -> Option<<Self::Owned as OwnedQuestion>::Reply> {
        None
    }
}

/// A question that awaits the reply of Redis.
pub(crate) trait OwnedQuestion: Send + Sync + 'static {
    type Reply: Send + 'static;

    /// The question as the engine writes it for Redis.
    fn asked(&self) -> &dyn RedisQuestion;

    /// The reply that follows from what Redis answers to the one call, or to the calls of all groups. `decider` lists
    /// the bans that the answers start.
    fn conclude(&self, decider: &Decider, answers: &[&[i64]]) -> Result<Self::Reply, ReplyError>;
}

/// A question that this node can answer itself while Redis is away.
pub(crate) trait LocalQuestion: OwnedQuestion {
    /// The reply by this node's own counters and by `on_failure`.
    fn decide(&self, local: &Local, at: Reading) -> Self::Reply;

    /// True if a charge in Redis stands after this node has given `reply` without Redis: the request passes.
    fn keeps_charge(reply: &Self::Reply) -> bool;

    /// The denial in a reply that may be remembered; `None`: the reply is not such a denial.
    fn denied(&self, _: &Self::Reply) -> Option<Denial> {
        None
    }
}

/// A reply, and whether this node has made it without Redis.
pub(crate) struct StoreReply<R> {
    pub(crate) reply: R,
    pub(crate) degraded: bool,
}

/// A question under way.
pub(crate) trait InFlightQuestion<Q>: Send {
    /// The question.
    fn question(&self) -> &Arc<Q>;
}

/// A store that answers at once or later. Stores are composed in layers.
pub(crate) trait Store: Send + Sync {
    /// A question under way.
    type Sent<Q: LocalQuestion>: InFlightQuestion<Q>;

    /// Sends a question, unless the layer knows the reply.
    fn send<Q: Question>(
        &self,
        question: &Q,
        at: Reading,
    ) -> Pending<<Q::Owned as OwnedQuestion>::Reply, Self::Sent<Q::Owned>>;

    /// Awaits the reply. The question under way is borrowed, so that a layer adds little to the size of a waiting
    /// answer.
    fn receive<Q: LocalQuestion>(
        &self,
        sent: &mut Self::Sent<Q>,
        at: Reading,
    ) -> impl Future<Output = StoreReply<Q::Reply>> + Send;
}
