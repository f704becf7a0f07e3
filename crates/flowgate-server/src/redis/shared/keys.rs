//! Ad hoc keys in the shared store: `DEL`, `PTTL`, and the reset of a limit that the caller brings.

use std::sync::Arc;

use flowgate::{Op, OtherAlgorithm, Reading, Span};
use flowgate_engine::redis::{ad_hoc_key, lifetime};
use flowgate_engine::{AdHoc, AdHocKey};

use super::{SharedStore, answer};
use crate::answer::Answer;
use crate::redis::question::KeyQuestion;
use crate::redis::redirect::Plain;
use crate::redis::wire::Reply;
use crate::service::{KeyDecision, Reset, StoreAway};

impl SharedStore {
    /// Resets a key, then peeks at its fresh state.
    pub(crate) fn limit_reset(
        self: &Arc<Self>,
        call: AdHoc<'_>,
        at: Reading,
    ) -> Answer<Reset<Result<KeyDecision, OtherAlgorithm>>> {
        let reset = self.key_reset(call.key);
        let peek = answer(self.ask(&KeyQuestion { op: Op::Peek, call: AdHoc { cost: 0, ..call } }, at));
        reset.with(peek, |reset, peek| {
            let is_done = reset.is_ok();
            let decision = peek.map(|peek| KeyDecision { degraded: peek.degraded || !is_done, ..peek });
            Reset { decision, is_done }
        })
    }

    /// The time until an ad hoc key is as if it had never been used.
    pub(crate) fn key_lifetime(self: &Arc<Self>, key: AdHocKey<'_>) -> Answer<Result<Option<Span>, StoreAway>> {
        let key = ad_hoc_key(&self.redis.prefix, key);
        let command = move || Plain(vec![b"PTTL".to_vec(), key.clone()]);
        self.plain(command).map(|reply| match reply? {
            Reply::Integer(pttl) => Ok(lifetime(pttl)),
            _ => Err(StoreAway),
        })
    }

    /// Resets an ad hoc key; true if it existed.
    pub(crate) fn key_reset(self: &Arc<Self>, key: AdHocKey<'_>) -> Answer<Result<bool, StoreAway>> {
        let deny = self.store.key_reset(key);
        if let Some(deny) = &deny {
            self.store.forget(deny);
        }
        let key = ad_hoc_key(&self.redis.prefix, key);
        let command = move || Plain(vec![b"DEL".to_vec(), key.clone()]);
        let store = Arc::clone(self);
        self.plain(command).map(move |reply| {
            if let Some(deny) = &deny {
                store.store.forget(deny);
            }
            Ok(reply? == Reply::Integer(1))
        })
    }
}
