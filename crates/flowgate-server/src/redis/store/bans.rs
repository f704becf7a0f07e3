//! Bans in the shared store: those by hand, of which every node has a copy, and those that rules have imposed.
//!
//! Bound      A ban by hand is in force at once on the node through which it was imposed or lifted, and within
//!            [`REFRESH`](super::REFRESH) on the others.

use std::sync::{Arc, PoisonError};

use flowgate::Time;
use flowgate_engine::redis::{BanCall, BanResult, ScriptCall, SharedBans};
use flowgate_engine::{BanOrder, BanOrderError, ManualBan};

use super::SharedStore;
use crate::answer::Answer;
use crate::redis::calls::Plain;
use crate::redis::wire::Reply;
use crate::service::{BanError, StoreAway};

impl SharedStore {
    /// Bans a value of a field, everywhere.
    pub(crate) fn ban(self: &Arc<Self>, order: BanOrder<'_>, now: Time) -> Answer<Result<Arc<ManualBan>, BanError>> {
        let known = self.known_bans();
        let call = match (BanCall { prefix: &self.prefix, known: &known }).impose(order, now) {
            Ok(call) => call,
            Err(error) => return Answer::Now(Err(error.into())),
        };
        let store = Arc::clone(self);
        self.about_bans(call, known, now).map(move |result| match result? {
            BanResult::Full => Err(BanOrderError::Full.into()),
            BanResult::Done(id) => {
                let ban = store.engine.bans(now).into_iter().find(|ban| ban.id == id);
                ban.ok_or(BanError::Away(StoreAway))
            }
        })
    }

    /// Lifts a ban by its id, whoever imposed it; false when there is none.
    pub(crate) fn unban(self: &Arc<Self>, id: u64, now: Time) -> Answer<Result<bool, StoreAway>> {
        let by_hand: Vec<_> = self.engine.bans(now).into_iter().filter(|ban| ban.id == id).collect();
        if by_hand.is_empty() { self.unban_rule(id, now) } else { self.lift(&by_hand, now) }
    }

    /// Lifts the ban by hand of a field's value as it was given; false when there is none.
    pub(crate) fn unban_value(
        self: &Arc<Self>,
        field: &str,
        value: &str,
        now: Time,
    ) -> Answer<Result<bool, StoreAway>> {
        let is_it = |ban: &Arc<ManualBan>| *ban.field == *field && *ban.value == *value;
        let bans: Vec<_> = self.engine.bans(now).into_iter().filter(is_it).collect();
        if bans.is_empty() { Answer::Now(Ok(false)) } else { self.lift(&bans, now) }
    }

    /// Lifts bans by hand, everywhere.
    fn lift(self: &Arc<Self>, bans: &[Arc<ManualBan>], now: Time) -> Answer<Result<bool, StoreAway>> {
        let known = self.known_bans();
        let call = BanCall { prefix: &self.prefix, known: &known }.lift(bans.iter().map(|ban| &**ban));
        self.about_bans(call, known, now).map(|result| Ok(matches!(result?, BanResult::Done(lifted) if lifted > 0)))
    }

    /// Lifts a ban that a rule has imposed through this node; false when there is none.
    fn unban_rule(self: &Arc<Self>, id: u64, now: Time) -> Answer<Result<bool, StoreAway>> {
        let Some(tail) = self.engine.take_rule_ban(id, now) else { return Answer::Now(Ok(false)) };
        let key = [self.prefix.as_bytes(), &tail].concat();
        let command = move || Plain(vec![b"DEL".to_vec(), key.clone()]);
        self.plain(command).map(|reply| Ok(reply? == Reply::Integer(1)))
    }

    pub(super) async fn refresh_bans(self: &Arc<Self>) {
        let known = self.known_bans();
        let call = BanCall { prefix: &self.prefix, known: &known }.refresh();
        // What cannot be read now is read a second later; that Redis is away is reported elsewhere.
        let _ = self.about_bans(call, known, self.clock.now()).await;
    }

    fn known_bans(&self) -> String {
        self.bans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a call about bans, and puts in force what it says.
    fn about_bans(
        self: &Arc<Self>,
        call: ScriptCall,
        known: String,
        now: Time,
    ) -> Answer<Result<BanResult, StoreAway>> {
        let Ok(sent) = self.send_script(&call) else { return Answer::Now(Err(StoreAway)) };
        let store = Arc::clone(self);
        Answer::later(async move {
            let reply = store.servers.reply(sent, || call.clone()).await.map_err(|_| StoreAway)?;
            let shared = SharedBans::read(&known, &texts(reply).ok_or(StoreAway)?).map_err(|_| StoreAway)?;
            let mut held = store.bans.lock().unwrap_or_else(PoisonError::into_inner);
            store.engine.adopt_bans(&shared, now);
            // Two answers may be read in another order than Redis gave them. Who finds that the table has changed since
            // it asked cannot tell which is newer: the next refresh reads it whole.
            *held = if *held == known { shared.version } else { String::new() };
            Ok(shared.result)
        })
    }
}

/// All as texts.
fn texts(reply: Reply) -> Option<Vec<Vec<u8>>> {
    let Reply::List(list) = reply else { return None };
    let text = |reply| match reply {
        Reply::Text(text) => Some(text),
        _ => None,
    };
    list.into_iter().map(text).collect()
}
