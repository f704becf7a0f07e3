//! A call of `CL.THROTTLE`.

use flowgate::{Reading, Throttle, ThrottleError, ThrottleReply};
use flowgate_engine::redis::{PreparedThrottle, RedisQuestion, ReplyError};
use flowgate_engine::{AdHocKey, Decider};

use super::{LocalQuestion, OwnedQuestion, Question};
use crate::redis::deny_cache::{Denial, DenyQuestion, DenyTable};
use crate::redis::failover::Local;

/// A key and the call on it.
pub(crate) struct ThrottleQuestion<'a> {
    pub(crate) key: AdHocKey<'a>,
    pub(crate) throttle: Throttle,
}

/// A key that awaits its reply.
pub(crate) struct OwnedThrottleQuestion {
    pub(crate) prepared: PreparedThrottle,
}

impl Question for ThrottleQuestion<'_> {
    type Owned = OwnedThrottleQuestion;

    fn to_owned(&self) -> OwnedThrottleQuestion {
        OwnedThrottleQuestion { prepared: PreparedThrottle::new(self.key, self.throttle) }
    }

    fn deny_question(&self, table: &DenyTable) -> Option<DenyQuestion> {
        let counter = [table.key_counter(self.key)].into_iter();
        let (increment, tolerance) = self.throttle.nanos();
        match increment {
            0 => None,
            ..0 => Some(DenyQuestion::giving_back(counter)),
            _ => Some(DenyQuestion::about(table, counter, table.hash((4_u8, increment, tolerance)).into())),
        }
    }

    fn recall(&self, denied: Denial) -> Option<Result<ThrottleReply, ThrottleError>> {
        match denied {
            Denial::Throttle(throttle, reply) if throttle == self.throttle => Some(Ok(reply)),
            _ => None,
        }
    }
}

impl OwnedQuestion for OwnedThrottleQuestion {
    type Reply = Result<ThrottleReply, ThrottleError>;

    fn asked(&self) -> &dyn RedisQuestion {
        &self.prepared
    }

    fn conclude(&self, _: &Decider, answers: &[&[i64]]) -> Result<Self::Reply, ReplyError> {
        let [answer] = answers else { return Err(ReplyError::Malformed) };
        self.prepared.conclude(answer)
    }
}

impl LocalQuestion for OwnedThrottleQuestion {
    fn decide(&self, local: &Local, at: Reading) -> Self::Reply {
        local.throttle(self.prepared.key(), self.prepared.throttle, at)
    }

    fn keeps_charge(reply: &Self::Reply) -> bool {
        reply.as_ref().is_ok_and(|reply| !reply.limited)
    }

    fn denied(&self, reply: &Self::Reply) -> Option<Denial> {
        let reply = *reply.as_ref().ok()?;
        Some(Denial::Throttle(self.prepared.throttle, reply)).filter(|_| reply.limited)
    }
}
