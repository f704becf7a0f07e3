//! A node's copy of the bans that all nodes share, and how replies change it.
//!
//! State      Every change up to version `read` is in the copy, and so are the node's `own` changes after it.
//! Rule       Replies may arrive in another order than Redis gave them. The change of the highest version decides about
//!            a target, and a page that ends before `read` says nothing new.
//! Invariant  A ban that the node imposed is in force until it ends, is lifted or replaced, whatever older pages say.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use flowgate::Time;

use super::{Change, ChangeReply, ChangeResult, Page};
use crate::bans::{BanId, BanOrder, BanOrderError, Edit, ManualBan, target_name};
use crate::decider::Decider;
use crate::store::redis::ReplyError;

/// What a node has read of the shared bans. The bans themselves are in its engine.
#[derive(Debug, Default)]
pub struct BanCopy {
    epoch: String,
    /// Whether `read` counts versions of `epoch`. If not, all bans are read anew.
    in_step: bool,
    pub(super) read: u64,
    pub(super) floor: u64,
    /// The targets that this node has changed in a later version than `read`.
    own: HashMap<String, u64>,
    /// While the bans are read anew: the targets that have been read.
    anew: Option<HashSet<String>>,
    /// Redis's time in the latest reply.
    pub redis_time: Time,
}

impl BanCopy {
    pub(super) fn known_epoch(&self) -> &str {
        if self.in_step { &self.epoch } else { "-" }
    }

    /// Takes in a reply to [`BanCall::read`](super::BanCall::read). True when there is more to read.
    ///
    /// # Errors
    /// If the reply is not the script's.
    pub fn take_page(&mut self, decider: &Decider, reply: &[Vec<u8>]) -> Result<bool, ReplyError> {
        let page = Page::read(reply)?;
        let (bans, now) = (&decider.bans, page.now);
        self.redis_time = now;
        if page.whole {
            if self.epoch != page.epoch {
                self.own.clear();
            }
            (self.epoch, self.in_step, self.anew) = (page.epoch, true, Some(HashSet::new()));
        } else {
            let follows = self.in_step && self.epoch == page.epoch && page.from <= self.read;
            if !follows || page.version <= self.read {
                return Ok(false);
            }
        }
        bans.edit(now, |edit| page.changes.into_iter().for_each(|change| self.take_change(edit, change, page.version)));
        (self.read, self.floor) = (page.version, page.floor);
        // A change has a version that is at or after its time. A version before Redis's time that the table has not
        // reached is lost.
        let upto = page.version.max((now.as_nanos() / 1000).saturating_sub(1));
        self.own.retain(|_, version| *version > upto);
        if !page.more
            && let Some(found) = self.anew.take()
        {
            bans.edit(now, |edit| edit.retain(|name| found.contains(name) || self.own.contains_key(name)));
        }
        Ok(page.more)
    }

    fn take_change(&mut self, edit: &mut Edit<'_>, Change { name, ban }: Change, upto: u64) {
        if self.own.get(&name).is_some_and(|own| *own > upto) {
            return;
        }
        if let Some(anew) = &mut self.anew {
            if ban.is_some() {
                anew.insert(name.clone())
            } else {
                anew.remove(&name)
            };
        }
        match ban {
            Some(ban) => edit.put(name.into(), Arc::new(ban)),
            None => _ = edit.remove(&name),
        }
    }

    /// Takes in a reply to [`BanCall::impose`](super::BanCall::impose).
    ///
    /// # Errors
    /// If the reply is not the script's.
    pub fn take_imposed(
        &mut self,
        decider: &Decider,
        order: BanOrder<'_>,
        id: BanId,
        reply: &[Vec<u8>],
    ) -> Result<Result<Arc<ManualBan>, BanOrderError>, ReplyError> {
        let changed = ChangeReply::read(reply)?;
        let (bans, now) = (&decider.bans, changed.now);
        self.redis_time = now;
        match changed.result {
            ChangeResult::Done => {}
            ChangeResult::TooMany => return Ok(Err(BanOrderError::Full)),
            ChangeResult::TooMuchText => return Ok(Err(BanOrderError::TooMuchText)),
            ChangeResult::NoSuchBan => return Err(ReplyError::Malformed),
        }
        let name = target_name(order.field, order.value).map_err(|_| ReplyError::Malformed)?;
        let ban = Arc::new(order.ban(id, changed.until));
        if self.take_own(&name, &changed) {
            bans.edit(now, |edit| edit.put(name.into(), Arc::clone(&ban)));
        }
        Ok(Ok(ban))
    }

    /// Takes in a reply to [`BanCall::lift`](super::BanCall::lift); true when there was such a ban.
    ///
    /// # Errors
    /// If the reply is not the script's.
    pub fn take_lifted(
        &mut self,
        decider: &Decider,
        (field, value): (&str, &str),
        reply: &[Vec<u8>],
    ) -> Result<bool, ReplyError> {
        let changed = ChangeReply::read(reply)?;
        let (bans, now) = (&decider.bans, changed.now);
        self.redis_time = now;
        if changed.result != ChangeResult::Done {
            return Ok(false);
        }
        let name = target_name(field, value).map_err(|_| ReplyError::Malformed)?;
        if self.take_own(&name, &changed) {
            bans.edit(now, |edit| edit.remove(&name));
        }
        Ok(true)
    }

    /// Notes a change that this node has made. Returns false if a newer change of the target is known.
    fn take_own(&mut self, name: &str, changed: &ChangeReply) -> bool {
        if changed.epoch != self.epoch {
            // Redis has another table than the one that was read, so all of it is read anew.
            *self = BanCopy { epoch: changed.epoch.clone(), redis_time: changed.now, ..BanCopy::default() };
        }
        if changed.version <= self.read || self.own.get(name).is_some_and(|own| *own > changed.version) {
            return false;
        }
        self.own.insert(name.to_owned(), changed.version);
        true
    }
}
