//! A limit that the caller brings, on an ad hoc key.

use flowgate::{Op, OtherAlgorithm, Reading};
use flowgate_engine::redis::{PreparedLimit, RedisQuestion, ReplyError};
use flowgate_engine::{AdHoc, Decider};

use super::{LocalQuestion, OwnedQuestion, Question};
use crate::redis::deny_cache::{Denial, DenyQuestion, DenyTable};
use crate::redis::failover::Local;
use crate::service::KeyDecision;

/// A key, its limit, and the operation on it.
pub(crate) struct KeyQuestion<'a> {
    pub(crate) op: Op,
    pub(crate) call: AdHoc<'a>,
}

/// A key that awaits its decision.
pub(crate) struct OwnedKeyQuestion {
    pub(crate) limit: PreparedLimit,
}

impl Question for KeyQuestion<'_> {
    type Owned = OwnedKeyQuestion;

    fn to_owned(&self) -> OwnedKeyQuestion {
        OwnedKeyQuestion { limit: PreparedLimit::new(self.op, self.call) }
    }

    fn deny_question(&self, table: &DenyTable) -> Option<DenyQuestion> {
        let counter = table.key_counter(self.call.key);
        match self.op {
            Op::Refund => Some(DenyQuestion::giving_back([counter].into_iter())),
            Op::Take | Op::Peek => {
                let asked = u128::from(table.hash((3_u8, self.call.limit))) << 64 | u128::from(self.call.cost);
                Some(DenyQuestion::about(table, [counter].into_iter(), asked))
            }
            _ => None,
        }
    }

    fn recall(&self, denied: Denial) -> Option<Result<KeyDecision, OtherAlgorithm>> {
        match denied {
            Denial::Key(decision) => Some(Ok(KeyDecision { decision, degraded: false })),
            Denial::Request(_) | Denial::Throttle(..) => None,
        }
    }
}

impl OwnedQuestion for OwnedKeyQuestion {
    type Reply = Result<KeyDecision, OtherAlgorithm>;

    fn asked(&self) -> &dyn RedisQuestion {
        &self.limit
    }

    fn conclude(&self, _: &Decider, answers: &[&[i64]]) -> Result<Self::Reply, ReplyError> {
        let [answer] = answers else { return Err(ReplyError::Malformed) };
        let decided = self.limit.conclude(answer)?;
        Ok(decided.map(|decision| KeyDecision { decision, degraded: false }))
    }
}

impl LocalQuestion for OwnedKeyQuestion {
    fn decide(&self, local: &Local, at: Reading) -> Self::Reply {
        let decided = local.limit(self.limit.op, self.limit.ad_hoc(), at);
        decided.map(|decision| KeyDecision { decision, degraded: true })
    }

    fn keeps_charge(reply: &Self::Reply) -> bool {
        reply.as_ref().is_ok_and(|decided| decided.decision.allowed())
    }

    fn denied(&self, reply: &Self::Reply) -> Option<Denial> {
        let decision = reply.as_ref().ok()?.decision;
        Some(Denial::Key(decision)).filter(|_| !decision.allowed())
    }
}
