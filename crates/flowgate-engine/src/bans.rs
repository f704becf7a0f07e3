//! Bans by hand: a field, a value, an end, a reason, an author.
//!
//! State      The bans in force, and some that have ended and are dropped with the next changes.
//! Rule       A request with that value in that field is denied before any rule. An address is banned however it is
//!            written; a network (`1.2.3.0/24`) bans every address in it. Of several bans the one that ends last
//!            counts. A second ban of the same field and value replaces the first.
//! Invariant  Requests read an index
//!            that never changes: a change makes a new one and publishes it. At most [`MAX_BANS`] are kept, whose texts
//!            have at most [`MAX_BANS_BYTES`] together. A further ban is refused.
//! Rule       Times are those of the caller's clock, or of Redis if nodes share the bans.
//! Bound      A change takes the same time for any number of bans: it copies a few branches of the index, and drops at
//!            most `MAX_DROPPED_AT_ONCE` bans that have ended, unless it takes more to make room.

mod id;
mod imposed;
mod index;
mod kept;
mod ledger;
mod target;
mod trie;

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use flowgate::{Reading, Span, Time};

use crate::request::Request;
use index::Index;
use ledger::Ledger;
use target::Target;

pub(crate) use id::BanIds;
pub use id::{BanId, BanKind, NotABanId};
pub use imposed::RuleBan;
pub(crate) use imposed::{ImposedBans, RuleBanPlace};
pub use kept::{BanCursor, KeptKind};
pub use target::ADDRESS_FIELD;
pub use target::{WideNetwork, wide_network};

/// The largest number of bans by hand. For more values, use a list in a rule.
pub const MAX_BANS: usize = 10_000;

/// The most bytes in the texts of all bans by hand: fields, values, reasons and authors.
pub const MAX_BANS_BYTES: usize = 8 << 20;

/// The longest field, value and reason of a ban by hand, in bytes.
const MAX_FIELD_BYTES: usize = 256;
const MAX_VALUE_BYTES: usize = 1024;
const MAX_REASON_BYTES: usize = 1024;

/// A change adds at most one ban, so dropping two per change would remove all ended bans in time.
const MAX_DROPPED_AT_ONCE: usize = 8;

/// A field, a value, an end, a reason and an author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualBan {
    /// The unique id of the ban.
    pub id: BanId,
    /// The field.
    pub field: Arc<str>,
    /// The value as it was given.
    pub value: Arc<str>,
    /// The time at which it was imposed; `None` if another node imposed it.
    pub since: Option<Time>,
    /// When it ends, by the clock of the store that keeps it.
    pub until: Time,
    /// The reason: any text.
    pub reason: Arc<str>,
    /// Who imposed it; `None` if that is not known.
    pub author: Option<BanAuthor>,
}

/// Who imposed a ban by hand, in the words of the program that took the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanAuthor {
    /// The kind of right, such as `admin token`.
    pub by: Arc<str>,
    /// The client's address; `None`: it has none.
    pub from: Option<Arc<str>>,
}

impl BanAuthor {
    fn bytes(&self) -> usize {
        self.by.len() + self.from.as_ref().map_or(0, |from| from.len())
    }

    /// The two texts that are kept of an author; both are empty without one.
    pub(crate) fn texts(author: Option<&BanAuthor>) -> [&str; 2] {
        author.map_or(["", ""], |author| [&author.by, author.from.as_deref().unwrap_or_default()])
    }

    /// The author of two texts that were kept.
    pub(crate) fn from_texts([by, from]: [&str; 2]) -> Option<BanAuthor> {
        let from = (!from.is_empty()).then(|| from.into());
        (!by.is_empty()).then(|| BanAuthor { by: by.into(), from })
    }
}

impl ManualBan {
    /// This ban with its end as an instant of the wall clock.
    pub(crate) fn on_the_wall(self: Arc<ManualBan>, at: Reading) -> Arc<ManualBan> {
        if at.ahead.is_zero() {
            return self;
        }
        Arc::new(ManualBan { until: at.on_the_wall(self.until), ..(*self).clone() })
    }

    fn bytes(&self) -> usize {
        let author = self.author.as_ref().map_or(0, BanAuthor::bytes);
        self.field.len() + self.value.len() + self.reason.len() + author
    }
}

/// A ban to impose.
#[derive(Clone, Copy, Debug)]
pub struct BanOrder<'a> {
    /// The field; at most 256 bytes.
    pub field: &'a str,
    /// Its value, at most 1024 bytes; an address or a network bans addresses.
    pub value: &'a str,
    /// The length of the ban.
    pub length: Span,
    /// Any text of at most 1024 bytes.
    pub reason: &'a str,
    /// Who imposes it, if that is to be noted.
    pub author: Option<&'a BanAuthor>,
}

impl BanOrder<'_> {
    pub(crate) fn check_sizes(&self) -> Result<(), BanOrderError> {
        let parts = [
            ("field", self.field, MAX_FIELD_BYTES),
            ("value", self.value, MAX_VALUE_BYTES),
            ("reason", self.reason, MAX_REASON_BYTES),
        ];
        match parts.into_iter().find(|(_, text, max)| text.len() > *max) {
            Some((part, text, max)) => Err(BanOrderError::TooLong { part, length: text.len(), max }),
            None => Ok(()),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.field.len() + self.value.len() + self.reason.len() + self.author.map_or(0, BanAuthor::bytes)
    }

    pub(crate) fn ban(&self, id: BanId, until: Time) -> ManualBan {
        let since = Some(Time::from_nanos(until.as_nanos().saturating_sub(self.length.as_nanos())));
        let (field, value, reason) = (self.field.into(), self.value.into(), self.reason.into());
        ManualBan { id, field, value, since, until, reason, author: self.author.cloned() }
    }
}

/// Why a ban cannot be imposed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BanOrderError {
    /// The value is neither a text nor addresses.
    #[error("value `{found}`: expected {expected}")]
    Value {
        /// The value.
        found: String,
        /// The expected form of a value.
        expected: &'static str,
    },
    /// The field has no name.
    #[error("field: expected the name of a field")]
    Field,
    /// One of its texts is too long.
    #[error("{part}: {length} bytes, expected at most {max}")]
    TooLong {
        /// `field`, `value` or `reason`.
        part: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The most bytes it may have.
        max: usize,
    },
    /// The number of bans has reached [`MAX_BANS`].
    #[error("there are {MAX_BANS} bans already; a list holds more")]
    Full,
    /// The texts of all bans have reached their bound.
    #[error("with it, the texts of all bans would exceed {MAX_BANS_BYTES} bytes; a list holds more")]
    TooMuchText,
}

/// The bounds on bans.
#[derive(Clone, Copy, Debug)]
struct BanBounds {
    bans: usize,
    bytes: usize,
}

impl Default for BanBounds {
    fn default() -> BanBounds {
        BanBounds { bans: MAX_BANS, bytes: MAX_BANS_BYTES }
    }
}

/// All bans by hand.
#[derive(Debug, Default)]
pub(crate) struct ManualBans {
    /// Read by requests.
    index: ArcSwap<Index>,
    /// The latest end of all bans, so that requests read no index while there are none. Published after the index.
    ends: AtomicU64,
    /// Read and written by changes. The index is published while it is locked.
    ledger: Mutex<Ledger>,
    /// The number of changes.
    version: AtomicU64,
    bounds: BanBounds,
}

/// A change under way.
pub(crate) struct Edit<'a> {
    ledger: &'a mut Ledger,
    index: Index,
    now: Time,
}

impl ManualBans {
    /// The ban in force on a request that ends last.
    #[inline]
    pub(crate) fn find(&self, request: &Request<'_>, now: Time) -> Option<Arc<ManualBan>> {
        if self.any_in_force(now) { self.index.load().find(request, now).cloned() } else { None }
    }

    /// Whether any ban is in force.
    #[inline]
    pub(crate) fn any_in_force(&self, now: Time) -> bool {
        now.as_nanos() < self.ends.load(Acquire)
    }

    /// Imposes a ban, in place of one on the same field and value.
    pub(crate) fn impose(&self, order: BanOrder<'_>, id: BanId, now: Time) -> Result<Arc<ManualBan>, BanOrderError> {
        order.check_sizes()?;
        let name = target_name(order.field, order.value)?;
        self.edit(now, |edit| {
            edit.make_room(self.bounds, &name, order.bytes())?;
            let ban = Arc::new(order.ban(id, edit.now + order.length));
            edit.put(name.into(), Arc::clone(&ban));
            Ok(ban)
        })
    }

    /// Lifts the ban with an id; false if there is none.
    pub(crate) fn lift(&self, id: BanId, now: Time) -> bool {
        let Some(ban) = self.with_id(id, now) else { return false };
        self.lift_value(&ban.field, &ban.value, Some(id), now)
    }

    /// Lifts the ban on a value of a field, if it has that id; false if there is none.
    pub(crate) fn lift_value(&self, field: &str, value: &str, id: Option<BanId>, now: Time) -> bool {
        // A value that cannot be banned has no ban.
        let Ok(name) = target_name(field, value) else { return false };
        self.edit(now, |edit| match edit.ledger.named(&name) {
            Some(ban) if id.is_none_or(|id| ban.id == id) => edit.remove(&name).is_some_and(|ban| edit.now < ban.until),
            _ => false,
        })
    }

    /// The ban of an id, if it is in force.
    pub(crate) fn with_id(&self, id: BanId, now: Time) -> Option<Arc<ManualBan>> {
        self.ledger().with_id(id).filter(|ban| now < ban.until).cloned()
    }

    /// The bans in force, oldest first.
    pub(crate) fn list(&self, now: Time) -> Vec<Arc<ManualBan>> {
        self.ledger().iter().filter(|ban| now < ban.until).cloned().collect()
    }

    /// The number of bans in force.
    pub(crate) fn number(&self, now: Time) -> usize {
        self.ledger().number_in_force(now)
    }

    /// A number that every change of the bans changes.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    /// The fields with bans.
    pub(crate) fn fields(&self) -> Vec<Arc<str>> {
        let mut fields = Vec::new();
        self.index.load().for_each_field(|name| fields.push(Arc::clone(name)));
        fields
    }

    /// Changes bans, all at once for requests.
    pub(crate) fn edit<R>(&self, now: Time, change: impl FnOnce(&mut Edit<'_>) -> R) -> R {
        let mut ledger = self.ledger();
        let mut edit = Edit { ledger: &mut ledger, index: Index::clone(&self.index.load()), now };
        edit.drop_ended();
        let result = change(&mut edit);
        let ends = edit.index.ends.as_nanos();
        self.index.store(Arc::new(edit.index));
        self.ends.store(ends, Release);
        self.version.fetch_add(1, Relaxed);
        result
    }

    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        // The steps of a change do not panic. A poisoned lock therefore holds no half-made change.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Edit<'_> {
    /// Adds a ban, in place of one with that name. Leaves out a ban that has ended, or whose target cannot be read.
    pub(crate) fn put(&mut self, name: Arc<str>, ban: Arc<ManualBan>) {
        self.remove(&name);
        if self.now < ban.until
            && let Ok(target) = Target::parse(&ban.field, &ban.value)
        {
            self.index.insert(target, &ban);
            self.ledger.insert(name, ban);
        }
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Arc<ManualBan>> {
        let ban = self.ledger.remove(name)?;
        self.index.remove_ban(&ban);
        Some(ban)
    }

    /// Removes the bans whose names are not to be kept.
    #[cfg(feature = "redis")]
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        let gone: Vec<Arc<str>> = self.ledger.names().filter(|name| !keep(name)).cloned().collect();
        gone.iter().for_each(|name| _ = self.remove(name));
    }

    fn make_room(&mut self, bounds: BanBounds, name: &str, bytes: usize) -> Result<(), BanOrderError> {
        let index = &mut self.index;
        self.ledger.make_room(bounds, (name, bytes), self.now, |ban| index.remove_ban(ban))
    }

    fn drop_ended(&mut self) {
        for _ in 0..MAX_DROPPED_AT_ONCE {
            match self.ledger.drop_ended(self.now) {
                Some(ban) => self.index.remove_ban(&ban),
                None => return,
            }
        }
    }
}

/// The name of a target, the same for all its spellings.
pub(crate) fn target_name(field: &str, value: &str) -> Result<String, BanOrderError> {
    Target::parse(field, value).map(Target::name)
}

#[cfg(test)]
mod tests;
