//! Bans by hand: a field, a value, an end, a reason.
//!
//! State      The bans in force, and some that have ended and are dropped with the next change.
//! Rule       A request with that value in that field is denied before any rule. An address is banned however it is
//!            written; a network (`1.2.3.0/24`) bans every address in it. Of several bans the one that ends last
//!            counts. A second ban of the same field and value replaces the first.
//! Invariant  Readers see a table that never changes: a change builds a new one and swaps it in. At most
//!            [`MAX_BANS`] are kept; more is an error for whoever bans.

mod imposed;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use flowgate::{Span, Time};
use hashbrown::HashMap;

use crate::address::{Address, AddressRange};
use crate::nested::{Nested, Network};
use crate::request::Request;

pub use imposed::RuleBan;
pub(crate) use imposed::{ImposedBans, RuleBanPlace};

/// Bans by hand are few; whom a list should stop belongs into a list.
pub const MAX_BANS: usize = 10_000;

/// A field, a value, an end and a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualBan {
    /// Identifies it until it ends.
    pub id: u64,
    /// The field.
    pub field: Arc<str>,
    /// The value as it was given.
    pub value: Arc<str>,
    /// When it ends.
    pub until: Time,
    /// Any text.
    pub reason: Arc<str>,
}

/// A ban to impose.
#[derive(Clone, Copy, Debug)]
pub struct BanOrder<'a> {
    /// The field.
    pub field: &'a str,
    /// Its value; an address or a network bans addresses.
    pub value: &'a str,
    /// For how long.
    pub length: Span,
    /// Any text.
    pub reason: &'a str,
}

#[cfg(feature = "redis")]
impl BanOrder<'_> {
    /// Whom the ban is on, the same for all ways to write it.
    pub(crate) fn whom(&self) -> Result<String, BanOrderError> {
        whom(self.field, self.value)
    }
}

#[cfg(feature = "redis")]
impl ManualBan {
    /// Whom the ban is on, the same for all ways to write it.
    pub(crate) fn whom(&self) -> Result<String, BanOrderError> {
        whom(&self.field, &self.value)
    }
}

#[cfg(feature = "redis")]
fn whom(field: &str, value: &str) -> Result<String, BanOrderError> {
    let len = field.len();
    Ok(match Whom::of(field, value)? {
        Whom::Text(text) => format!("{len}:{field}={text}"),
        Whom::Network(network) => format!("{len}:{field}@{network}"),
    })
}

/// Why a ban cannot be imposed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BanOrderError {
    /// Neither a text nor addresses.
    #[error("value `{found}`: expected {expected}")]
    Value {
        /// What was given.
        found: String,
        /// What fits.
        expected: &'static str,
    },
    /// The field has no name.
    #[error("field: expected the name of a field")]
    Field,
    /// There are enough.
    #[error("there are {MAX_BANS} bans already; a list holds more")]
    Full,
}

/// Numbers for bans, whoever imposes them.
#[derive(Debug, Default)]
pub(crate) struct BanIds(AtomicU64);

impl BanIds {
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Relaxed) + 1
    }
}

/// All bans by hand.
#[derive(Debug, Default)]
pub(crate) struct ManualBans {
    table: ArcSwap<Table>,
    /// Held by whoever builds the next table.
    changing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Table {
    bans: Vec<Arc<ManualBan>>,
    fields: HashMap<Arc<str>, FieldBans>,
}

#[derive(Debug, Default)]
struct FieldBans {
    texts: HashMap<Arc<str>, Arc<ManualBan>>,
    networks: Nested<Network, Arc<ManualBan>>,
}

/// Whom a value bans.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whom {
    Text(Arc<str>),
    Network(Network),
}

/// The field in which gateways and access logs give the client's address.
pub(crate) const ADDRESS_FIELD: &str = "ip";

impl Whom {
    /// Whom an order means. In the field that holds the client's address, a text that is none is a slip of the pen,
    /// and a ban that catches nobody would be taken for one that does.
    fn of(field: &str, value: &str) -> Result<Whom, BanOrderError> {
        if field.is_empty() {
            return Err(BanOrderError::Field);
        }
        match Whom::parse(value)? {
            Whom::Text(_) if field == ADDRESS_FIELD => {
                let expected = "an address or a network, such as 1.2.3.4 or 1.2.3.0/24";
                Err(BanOrderError::Value { found: value.to_owned(), expected })
            }
            whom => Ok(whom),
        }
    }

    fn parse(value: &str) -> Result<Whom, BanOrderError> {
        let error = |expected| BanOrderError::Value { found: value.to_owned(), expected };
        if value.is_empty() {
            return Err(error("a value, an address or a network such as 1.2.3.0/24"));
        }
        match AddressRange::parse(value).map_err(|wrong| error(wrong.expected))? {
            None => Ok(Whom::Text(value.into())),
            Some(range) => {
                let network = Network::new(range).ok_or_else(|| error("an address or a network such as 1.2.3.0/24"))?;
                Ok(Whom::Network(network))
            }
        }
    }
}

impl ManualBans {
    /// The ban in force on a request that ends last.
    pub(crate) fn find(&self, request: &Request<'_>, now: Time) -> Option<Arc<ManualBan>> {
        let table = self.table.load();
        if table.fields.is_empty() {
            return None;
        }
        let of_field = |(name, value)| Some((table.fields.get(name)?, value));
        let found = request.fields().filter_map(of_field).filter_map(|(bans, value)| bans.find(value));
        found.filter(|ban| now < ban.until).max_by_key(|ban| ban.until).cloned()
    }

    /// Imposes a ban, in place of one on the same field and value.
    pub(crate) fn impose(&self, order: BanOrder<'_>, ids: &BanIds, now: Time) -> Result<Arc<ManualBan>, BanOrderError> {
        let BanOrder { field, value, length, reason } = order;
        let whom = Whom::of(field, value)?;
        self.change(now, |bans| {
            bans.retain(|ban| *ban.field != *field || Whom::parse(&ban.value).as_ref() != Ok(&whom));
            if bans.len() >= MAX_BANS {
                return Err(BanOrderError::Full);
            }
            let (field, value, reason) = (field.into(), value.into(), reason.into());
            let ban = Arc::new(ManualBan { id: ids.next(), field, value, until: now + length, reason });
            bans.push(Arc::clone(&ban));
            Ok(ban)
        })
    }

    /// Lifts the bans of which `lifted` holds; their number.
    pub(crate) fn lift(&self, now: Time, lifted: impl Fn(&ManualBan) -> bool) -> usize {
        self.change(now, |bans| {
            let before = bans.len();
            bans.retain(|ban| !lifted(ban));
            before - bans.len()
        })
    }

    /// Puts other bans in place of all.
    #[cfg(feature = "redis")]
    pub(crate) fn adopt(&self, bans: Vec<ManualBan>, now: Time) {
        self.change(now, |own| *own = bans.into_iter().filter(|ban| now < ban.until).map(Arc::new).collect());
    }

    /// The bans in force, oldest first.
    pub(crate) fn list(&self, now: Time) -> Vec<Arc<ManualBan>> {
        self.table.load().bans.iter().filter(|ban| now < ban.until).cloned().collect()
    }

    /// The fields by whose values somebody is banned.
    pub(crate) fn fields(&self) -> Vec<Arc<str>> {
        self.table.load().fields.keys().cloned().collect()
    }

    fn change<R>(&self, now: Time, change: impl FnOnce(&mut Vec<Arc<ManualBan>>) -> R) -> R {
        // Nothing is half done when a change panics: the table is swapped at the end.
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bans = self.list(now);
        let result = change(&mut bans);
        self.table.store(Arc::new(Table::new(bans)));
        result
    }
}

impl Table {
    fn new(bans: Vec<Arc<ManualBan>>) -> Table {
        let mut texts: HashMap<Arc<str>, HashMap<Arc<str>, Arc<ManualBan>>> = HashMap::new();
        let mut networks: HashMap<Arc<str>, Vec<(Network, Arc<ManualBan>)>> = HashMap::new();
        for ban in &bans {
            let (field, entry) = (Arc::clone(&ban.field), Arc::clone(ban));
            match Whom::parse(&ban.value) {
                Ok(Whom::Text(text)) => _ = texts.entry(field).or_default().insert(text, entry),
                Ok(Whom::Network(network)) => networks.entry(field).or_default().push((network, entry)),
                // What is in the table was parsed before it got there.
                Err(_) => {}
            }
        }
        let mut fields: HashMap<Arc<str>, FieldBans> = HashMap::new();
        for (field, texts) in texts {
            fields.entry(field).or_default().texts = texts;
        }
        for (field, networks) in networks {
            fields.entry(field).or_default().networks = networks.into_iter().collect();
        }
        Table { bans, fields }
    }
}

impl FieldBans {
    fn find(&self, value: &str) -> Option<&Arc<ManualBan>> {
        if let Some(ban) = self.texts.get(value) {
            return Some(ban);
        }
        if self.networks.is_empty() {
            return None;
        }
        let address = Address::parse(value)?;
        self.networks.covering(&address).max_by_key(|ban| ban.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1000);

    fn order<'a>(field: &'a str, value: &'a str, secs: u64) -> BanOrder<'a> {
        BanOrder { field, value, length: Span::from_secs(secs), reason: "spam" }
    }

    fn impose(bans: &ManualBans, order: BanOrder<'_>, now: Time) -> Result<Arc<ManualBan>, BanOrderError> {
        bans.impose(order, &BanIds::default(), now)
    }

    fn until(bans: &ManualBans, field: &str, value: &str, now: Time) -> Option<u64> {
        let ban = bans.find(&Request::new().field(field, value), now)?;
        Some(ban.until.as_nanos() / 1_000_000_000)
    }

    #[test]
    fn a_value_or_a_network_is_banned_until_the_end() {
        let bans = ManualBans::default();
        assert_eq!(until(&bans, "user", "42", NOW), None);
        impose(&bans, order("user", "42", 60), NOW).unwrap();
        impose(&bans, order("ip", "1.2.0.0/16", 60), NOW).unwrap();
        impose(&bans, order("ip", "1.2.3.4", 10), NOW).unwrap();
        impose(&bans, order("ip", "2001:db8::/64", 60), NOW).unwrap();
        assert_eq!(until(&bans, "user", "42", NOW), Some(1060));
        assert_eq!(until(&bans, "user", "42", Time::from_secs(1060)), None);
        assert_eq!(until(&bans, "name", "42", NOW), None);
        assert_eq!(until(&bans, "ip", "1.2.9.9", NOW), Some(1060));
        assert_eq!(until(&bans, "ip", "::ffff:1.2.3.4", NOW), Some(1060), "the one that ends last");
        assert_eq!(until(&bans, "ip", "2001:db8::9", NOW), Some(1060));
        assert_eq!(until(&bans, "ip", "1.3.0.0", NOW), None);
    }

    #[test]
    fn a_slip_of_the_pen_in_an_address_is_no_ban() {
        let bans = ManualBans::default();
        for value in ["1.2.3/24", "999.1.1.1", "*", "1.2.3.4/33", ""] {
            assert!(matches!(impose(&bans, order("ip", value, 60), NOW), Err(BanOrderError::Value { .. })), "{value}");
        }
        assert!(impose(&bans, order("user", "999.1.1.1", 60), NOW).is_ok(), "elsewhere it is a text");
    }

    #[test]
    fn a_second_ban_replaces_the_first_and_lifting_ends_it() {
        let bans = ManualBans::default();
        impose(&bans, order("ip", "10.0.0.0/8", 600), NOW).unwrap();
        let second = impose(&bans, order("ip", "10.9.9.9/8", 60), NOW).unwrap();
        assert_eq!(until(&bans, "ip", "10.0.0.1", NOW), Some(1060), "the same network");
        assert_eq!(bans.list(NOW), [Arc::clone(&second)]);
        assert_eq!(bans.lift(NOW, |ban| ban.id == second.id), 1);
        assert_eq!(bans.lift(NOW, |ban| ban.id == second.id), 0);
        assert_eq!(until(&bans, "ip", "10.0.0.1", NOW), None);
    }

    #[test]
    fn what_has_ended_makes_room() {
        let bans = ManualBans::default();
        let users: Vec<String> = (0..MAX_BANS).map(|user| user.to_string()).collect();
        let full = users.iter().map(|user| {
            Arc::new(ManualBan {
                id: 0,
                field: "user".into(),
                value: user.as_str().into(),
                until: Time::from_secs(1060),
                reason: "".into(),
            })
        });
        bans.table.store(Arc::new(Table::new(full.collect())));
        assert_eq!(impose(&bans, order("user", "new", 60), NOW), Err(BanOrderError::Full));
        assert!(impose(&bans, order("user", "42", 90), NOW).is_ok(), "one in place of another");
        assert!(impose(&bans, order("user", "new", 60), Time::from_secs(1070)).is_ok());
        assert_eq!(bans.list(Time::from_secs(1070)).len(), 2);
    }

    #[test]
    fn what_is_neither_a_text_nor_addresses_is_an_error() {
        let bans = ManualBans::default();
        for value in ["", "1.2.3.0/33", "1.2.3.4..1.2.3.9"] {
            assert!(matches!(impose(&bans, order("ip", value, 1), NOW), Err(BanOrderError::Value { .. })), "{value}");
        }
        assert_eq!(impose(&bans, order("", "x", 1), NOW), Err(BanOrderError::Field));
    }
}
