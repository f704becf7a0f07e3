//! Bans in the shared store: those by hand, of which every node has a copy, and those that rules have imposed.
//!
//! Rule       Bans end by [Redis's clock](SharedStore::redis_time).
//! Bound      A ban by hand is in force at once on the node through which it was imposed or lifted, and within
//!            [`BAN_REFRESH_PERIOD`](super::BAN_REFRESH_PERIOD) on the others.

use std::sync::Arc;

use flowgate_engine::bans::{BanId, BanKind, BanOrder, ManualBan};
use flowgate_engine::redis::{BanCall, BanCopy, ReplyError, ScriptCall, ScriptTime};

use super::SharedStore;
use crate::answer::Answer;
use crate::redis::redirect::SentCommand;
use crate::redis::wire::Reply;
use crate::service::{BanError, StoreAway};

impl SharedStore {
    /// Bans a value of a field, on all nodes.
    pub(crate) fn ban(self: &Arc<Self>, order: BanOrder<'_>) -> Answer<Result<Arc<ManualBan>, BanError>> {
        let id = self.decider.next_manual_ban_id();
        let call = match self.ban_call().impose(order, id) {
            Ok(call) => call,
            Err(error) => return Answer::Now(Err(error.into())),
        };
        let Ok(sent) = self.redis.send_script(&call) else { return Answer::Now(Err(StoreAway.into())) };
        let (store, length, author) = (Arc::clone(self), order.length, order.author.cloned());
        let [field, value, reason] = [order.field, order.value, order.reason].map(str::to_owned);
        Answer::later(async move {
            let reply = store.ban_reply(sent, call).await?;
            let order = BanOrder { field: &field, value: &value, length, reason: &reason, author: author.as_ref() };
            let imposed = store.with_bans(|bans| bans.take_imposed(&store.decider, order, id, &reply))?;
            Ok(imposed?)
        })
    }

    /// Lifts a ban by its id, whether by hand or by a rule; false if there is none.
    pub(crate) fn unban(self: &Arc<Self>, id: BanId) -> Answer<Result<bool, StoreAway>> {
        match (id.kind(), self.decider.manual_ban(id, self.redis_time())) {
            (BanKind::Rule, _) => self.unban_rule(id),
            (BanKind::Hand, Some(ban)) => self.lift(&ban.field, &ban.value, Some(id)),
            (BanKind::Hand, None) => {
                // Another node may have imposed the ban since the last refresh.
                let store = Arc::clone(self);
                Answer::later(async move {
                    store.refresh_bans().await?;
                    match store.decider.manual_ban(id, store.redis_time()) {
                        Some(ban) => store.lift(&ban.field, &ban.value, Some(id)).await,
                        None => Ok(false),
                    }
                })
            }
        }
    }

    /// Lifts the ban by hand of a field's value; false if there is none.
    pub(crate) fn unban_value(self: &Arc<Self>, field: &str, value: &str) -> Answer<Result<bool, StoreAway>> {
        self.lift(field, value, None)
    }

    /// Lifts a ban by hand, on all nodes.
    fn lift(self: &Arc<Self>, field: &str, value: &str, id: Option<BanId>) -> Answer<Result<bool, StoreAway>> {
        // A value that cannot be banned is not banned.
        let Ok(call) = self.ban_call().lift(field, value, id) else { return Answer::Now(Ok(false)) };
        let Ok(sent) = self.redis.send_script(&call) else { return Answer::Now(Err(StoreAway)) };
        let (store, field, value) = (Arc::clone(self), field.to_owned(), value.to_owned());
        Answer::later(async move {
            let reply = store.ban_reply(sent, call).await?;
            store.with_bans(|bans| bans.take_lifted(&store.decider, (&field, &value), &reply))
        })
    }

    /// Lifts a ban that a rule has imposed through this node; false if there is none. The ban stays listed until Redis
    /// confirms that it is gone.
    fn unban_rule(self: &Arc<Self>, id: BanId) -> Answer<Result<bool, StoreAway>> {
        let call = self.decider.rule_ban_call(id, &self.redis.prefix, ScriptTime::Redis, self.redis_time());
        let Some(call) = call else { return Answer::Now(Ok(false)) };
        let store = Arc::clone(self);
        self.reply_to(self.redis.send_script(&call), move || call.clone()).map(move |reply| {
            let lifted = reply? == Reply::Integer(1);
            store.decider.strike_rule_ban(id, store.redis_time());
            Ok(lifted)
        })
    }

    /// Brings this node's copy of the bans by hand up to date.
    pub(super) async fn refresh_bans(&self) -> Result<(), StoreAway> {
        loop {
            let call = self.ban_call().read(&self.bans.lock());
            let sent = self.redis.send_script(&call).map_err(|_| StoreAway)?;
            let reply = self.ban_reply(sent, call).await?;
            if !self.with_bans(|bans| bans.take_page(&self.decider, &reply))? {
                return Ok(());
            }
        }
    }

    fn ban_call(&self) -> BanCall<'_> {
        BanCall { prefix: &self.redis.prefix, time: ScriptTime::Redis }
    }

    /// Changes the copy of the bans by `take`, and notes the time that Redis has told.
    fn with_bans<T>(&self, take: impl FnOnce(&mut BanCopy) -> Result<T, ReplyError>) -> Result<T, StoreAway> {
        let mut bans = self.bans.lock();
        let taken = take(&mut bans).map_err(|_| StoreAway)?;
        self.redis_clock.set(bans.redis_time);
        Ok(taken)
    }

    async fn ban_reply(&self, mut sent: SentCommand, call: ScriptCall) -> Result<Vec<Vec<u8>>, StoreAway> {
        let reply = self.redis.servers.reply(&mut sent, || call.clone()).await.map_err(|_| StoreAway)?;
        texts(reply).ok_or(StoreAway)
    }
}

/// The items of a reply, all of them as texts.
fn texts(reply: Reply) -> Option<Vec<Vec<u8>>> {
    let Reply::List(list) = reply else { return None };
    let text = |reply| match reply {
        Reply::Text(text) => Some(text.into_vec()),
        _ => None,
    };
    list.into_iter().map(text).collect()
}
