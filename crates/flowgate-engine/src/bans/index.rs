//! The index of bans by hand that requests read: by field, then by value.
//!
//! Rule       The value of a field is banned as a text, or as an address by every network around it. Of several bans
//!            the one that ends last counts.
//! Invariant  An index never changes once it is published: a change makes a new one, which shares all but a few
//!            branches with the old one (see [`Trie`]).
//! Bound      A request looks up each of its fields once, and an address once for each prefix length in use.

use std::hash::BuildHasher;
use std::sync::Arc;

use flowgate::Time;
use hashbrown::DefaultHashBuilder;

use super::ManualBan;
use super::target::{Target, Value};
use super::trie::Trie;
use crate::address::{Address, Family};
use crate::network::Network;
use crate::request::Request;

#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    fields: Trie<Arc<FieldBans>>,
    hasher: DefaultHashBuilder,
    /// The latest end of all bans; the epoch without bans.
    pub(super) ends: Time,
}

#[derive(Clone, Debug)]
struct FieldBans {
    name: Arc<str>,
    texts: Trie<Arc<ManualBan>>,
    networks: Trie<(Network, Arc<ManualBan>)>,
    /// The prefix lengths of each family, with the numbers of their networks.
    prefixes: Vec<((Family, u32), u32)>,
}

impl Index {
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The ban in force on a request that ends last.
    #[inline]
    pub(super) fn find(&self, request: &Request<'_>, now: Time) -> Option<&Arc<ManualBan>> {
        // Without bans the fields are not read.
        if now >= self.ends { None } else { self.find_among(request, now) }
    }

    fn find_among(&self, request: &Request<'_>, now: Time) -> Option<&Arc<ManualBan>> {
        let bans = request.fields().filter_map(|(name, value)| self.field(name)?.find(value, &self.hasher));
        bans.filter(|ban| now < ban.until).max_by_key(|ban| ban.until)
    }

    /// Calls `visit` with the name of every field that has a ban.
    pub(super) fn for_each_field<'i>(&'i self, mut visit: impl FnMut(&'i Arc<str>)) {
        self.fields.for_each(&mut |field| visit(&field.name));
    }

    /// Adds a ban, in place of one on the same target.
    pub(super) fn insert(&mut self, target: Target<'_>, ban: &Arc<ManualBan>) {
        self.ends = self.ends.max(ban.until);
        self.change(target.field, |field, hasher| field.insert(target.value, ban, hasher));
    }

    fn remove(&mut self, target: Target<'_>) {
        self.change(target.field, |field, hasher| field.remove(target.value, hasher));
        if self.is_empty() {
            self.ends = Time::default();
        }
    }

    /// Removes a ban that was inserted.
    pub(super) fn remove_ban(&mut self, ban: &ManualBan) {
        // The target was read when the ban was inserted.
        if let Ok(target) = Target::parse(&ban.field, &ban.value) {
            self.remove(target);
        }
    }

    fn field(&self, name: &str) -> Option<&Arc<FieldBans>> {
        self.fields.get(self.hasher.hash_one(name), |field| *field.name == *name)
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut FieldBans, &DefaultHashBuilder)) {
        let mut field = match self.field(name) {
            Some(field) => FieldBans::clone(field),
            None => FieldBans::new(name),
        };
        change(&mut field, &self.hasher);
        let hash = self.hasher.hash_one(name);
        if field.texts.is_empty() && field.networks.is_empty() {
            self.fields.remove(hash, |field| *field.name == *name);
        } else {
            self.fields.insert(hash, Arc::new(field), |field| *field.name == *name);
        }
    }
}

impl FieldBans {
    fn new(name: &str) -> FieldBans {
        FieldBans { name: name.into(), texts: Trie::default(), networks: Trie::default(), prefixes: Vec::new() }
    }

    fn find(&self, value: &str, hasher: &DefaultHashBuilder) -> Option<&Arc<ManualBan>> {
        if let Some(ban) = self.texts.get(hasher.hash_one(value), |ban| *ban.value == *value) {
            return Some(ban);
        }
        if self.prefixes.is_empty() {
            return None;
        }
        let address = Address::parse(value)?;
        let lengths = self.prefixes.iter().map(|(prefix, _)| prefix).filter(|(family, _)| *family == address.family);
        let around = |(_, bits): &(Family, u32)| Some(&self.network(&Network::around(address, *bits)?, hasher)?.1);
        lengths.filter_map(around).max_by_key(|ban| ban.until)
    }

    fn network(&self, network: &Network, hasher: &DefaultHashBuilder) -> Option<&(Network, Arc<ManualBan>)> {
        self.networks.get(hasher.hash_one(network), |(found, _)| found == network)
    }

    fn insert(&mut self, value: Value<'_>, ban: &Arc<ManualBan>, hasher: &DefaultHashBuilder) {
        let ban = Arc::clone(ban);
        match value {
            Value::Text(text) => self.texts.insert(hasher.hash_one(text), ban, |ban| *ban.value == *text),
            Value::Network(network) => {
                if self.network(&network, hasher).is_none() {
                    let prefix = network.prefix();
                    match self.prefixes.iter_mut().find(|(found, _)| *found == prefix) {
                        Some((_, number)) => *number += 1,
                        None => self.prefixes.push((prefix, 1)),
                    }
                }
                self.networks.insert(hasher.hash_one(network), (network, ban), |(found, _)| *found == network);
            }
        }
    }

    fn remove(&mut self, value: Value<'_>, hasher: &DefaultHashBuilder) {
        match value {
            Value::Text(text) => self.texts.remove(hasher.hash_one(text), |ban| *ban.value == *text),
            Value::Network(network) => {
                if self.network(&network, hasher).is_none() {
                    return;
                }
                self.networks.remove(hasher.hash_one(network), |(found, _)| *found == network);
                let prefix = network.prefix();
                if let Some(at) = self.prefixes.iter().position(|(found, _)| *found == prefix) {
                    self.prefixes[at].1 -= 1;
                    if self.prefixes[at].1 == 0 {
                        self.prefixes.swap_remove(at);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
impl Index {
    /// The number of branches and leaves that a change of bans on these fields has copied.
    pub(super) fn copied_since(&self, older: &Index, changed: &[&str]) -> usize {
        let mut copied = self.fields.copied_since(&older.fields);
        for name in changed {
            let empty = || Arc::new(FieldBans::new(name));
            let after = self.field(name).cloned().unwrap_or_else(empty);
            let before = older.field(name).cloned().unwrap_or_else(empty);
            copied += after.texts.copied_since(&before.texts) + after.networks.copied_since(&before.networks);
        }
        copied
    }
}
