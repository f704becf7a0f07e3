//! Keys: any bytes, kept as a keyed hash of 107 bits.
//!
//! The hash is SipHash-1-3 under a secret key, so that clients can neither aim at a shard nor make two subjects
//! collide; by chance, a billion subjects collide with a probability below 10^-14. A table that is to be read back
//! later keeps its [`Seed`].
//!
//! A key has two parts. The *home*, 48 bits of the subject alone, decides where its counters live: its low bits choose the
//! shard, its upper bits the position there, so the counters of a subject lie next to each other. The *name*, 59 bits of
//! subject and counter, tells them apart; its other bits are the database and whether the counter belongs to `after=`.
//!
//! A slot keeps the whole key, so that a table can be read back into one with another number of shards.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use super::database::Database;
use super::sip_hash::{SipHasher, sip_hash};

/// The key of the hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub [u64; 2]);

/// Hides the key: a client that knew it could choose subjects that collide.
impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}

impl Seed {
    /// A seed that clients cannot guess, from the randomness the standard library draws for its hash maps.
    pub fn random() -> Seed {
        // Two keyed hashes of different values under fresh random keys.
        let word = |salt: u64| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u64(salt);
            hasher.finish()
        };
        Seed([word(1), word(2)])
    }

    /// A check of the seed that does not reveal it: records written under another seed name other keys.
    #[doc(hidden)]
    pub fn fingerprint(self) -> u64 {
        sip_hash([self.0[0], !self.0[1]], b"flowgate journal")[0]
    }

    #[inline]
    pub(crate) fn subject(self, bytes: &[u8]) -> Subject {
        Subject::from_hash(sip_hash(self.0, bytes))
    }

    /// The key of the hash in another name space; 0 is the usual one.
    #[inline]
    pub(crate) fn space(self, space: u8) -> Seed {
        Seed([self.0[0], self.0[1] ^ u64::from_ne_bytes([space; 8])])
    }

    pub(crate) fn counter(self, bytes: &[u8]) -> CounterId {
        // Counters are hashed under another key than subjects, so that no subject's hash is ever a counter's.
        CounterId(sip_hash([!self.0[0], self.0[1]], bytes)[0])
    }
}

/// The subject for which something is counted: the hash of any bytes. Made by
/// [`MemoryStore::subject`](crate::MemoryStore::subject).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    home: u64,
    name: u64,
}

impl Subject {
    /// The subject of a counter that has no key.
    pub(crate) const ONLY: Subject = Subject { home: 0, name: 0 };

    #[inline]
    fn from_hash([hash, name]: [u64; 2]) -> Subject {
        Subject { home: hash >> HOME_SHIFT, name }
    }

    /// The key of one of the subject's counters.
    #[inline]
    pub fn counter(self, id: CounterId) -> Key {
        Key(Tag { home: self.home, name: (self.name ^ id.0) & !(SEEN_BIT | DATABASE_BITS) })
    }
}

/// Hashes the bytes of a subject piece by piece. Made by [`MemoryStore::subject_hasher`](crate::MemoryStore::subject_hasher).
/// A copy continues from the same bytes, so that subjects that begin alike hash their first bytes once.
///
/// ```
/// use flowgate::MemoryStore;
///
/// let memory = MemoryStore::default();
/// let mut user = memory.subject_hasher();
/// user.push(b"user:");
/// let mut hasher = user;
/// hasher.push(b"42");
/// assert_eq!(hasher.subject(), memory.subject(b"user:42"));
/// ```
#[derive(Clone, Copy)]
pub struct SubjectHasher(SipHasher);

/// Hides the state: a client that knew it could choose subjects that collide.
impl fmt::Debug for SubjectHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubjectHasher(..)")
    }
}

impl SubjectHasher {
    pub(super) fn new(seed: Seed) -> SubjectHasher {
        SubjectHasher(SipHasher::new(seed.0))
    }

    /// Adds bytes.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// Adds the bytes of a number, the lowest first.
    #[inline]
    pub fn push_number(&mut self, number: u64) {
        self.0.push_word(number);
    }

    /// The subject that all of the bytes name.
    #[inline]
    pub fn subject(self) -> Subject {
        Subject::from_hash(self.0.finish())
    }
}

/// Which of a subject's counters: the hash of a name. Made by [`MemoryStore::counter`](crate::MemoryStore::counter).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct CounterId(u64);

/// Set in the name of the counter of `after=`. The rest of the name is that of the limit's own counter, so both are neighbours
/// in the table.
const SEEN_BIT: u64 = 1;

/// The number of the database.
const DATABASE_BITS: u64 = 0b1111 << DATABASE_SHIFT;
const DATABASE_SHIFT: u32 = 1;

/// One counter of one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(Tag);

impl Key {
    /// The key of a counter that this store does not keep.
    pub(crate) const NOWHERE: Key = Key(Tag { home: 0, name: 0 });

    /// The key of the same name in a database. A new key is in the first database.
    #[inline]
    pub fn in_database(self, database: Database) -> Key {
        Key(Tag { name: self.0.name | u64::from(database.number()) << DATABASE_SHIFT, ..self.0 })
    }

    /// All bits of the key, for a table of the caller's own.
    #[inline]
    pub fn bits(self) -> u128 {
        u128::from(self.0.home) << 64 | u128::from(self.0.name)
    }

    /// The key with these bits, which [`Key::bits`] has returned.
    pub fn from_bits(bits: u128) -> Key {
        Key(Tag { home: (bits >> 64) as u64 & Tag::HOME_MASK, name: bits as u64 })
    }

    /// The index of the key's shard among `shards` (a power of two, at most 2^16).
    #[inline]
    pub(crate) fn shard(self, shards: usize) -> usize {
        self.0.shard(shards)
    }

    /// True if both are counters of one subject.
    #[inline]
    pub(crate) fn is_beside(self, other: Key) -> bool {
        self.0.home == other.0.home
    }

    #[inline]
    pub(crate) fn tag(self) -> Tag {
        self.0
    }
}

/// The bits of a home, and where they lie in the first word of a slot.
const HOME_BITS: u32 = 48;
pub(super) const HOME_SHIFT: u32 = u64::BITS - HOME_BITS;

/// A key as a slot keeps it. Tags sort by home, then by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tag {
    /// The home, of [`HOME_BITS`] bits.
    pub(crate) home: u64,
    pub(crate) name: u64,
}

/// Compares both words at once, because comparing tags is most of the work of a search.
impl Ord for Tag {
    #[inline]
    fn cmp(&self, other: &Tag) -> Ordering {
        let bits = |tag: &Tag| u128::from(tag.home) << 64 | u128::from(tag.name);
        bits(self).cmp(&bits(other))
    }
}

impl PartialOrd for Tag {
    #[inline]
    fn partial_cmp(&self, other: &Tag) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Tag {
    pub(super) const HOME_MASK: u64 = u64::MAX >> HOME_SHIFT;

    /// The tag of a slot.
    #[inline]
    pub(super) fn from_meta(meta: u64, name: u64) -> Tag {
        Tag { home: meta >> HOME_SHIFT, name }
    }

    /// The first tag of a group.
    pub(super) fn first_of_group(group: u8) -> Tag {
        Tag { home: u64::from(group) << (HOME_BITS - u8::BITS), name: 0 }
    }

    /// Whether this is the first tag of a group, which no counter has.
    pub(super) fn is_first_of_group(self) -> bool {
        self == Tag::first_of_group(self.group())
    }

    /// Which of `shards` (a power of two, at most 2^16): by the low 16 bits of the home, which no position depends on.
    #[inline]
    pub(crate) fn shard(self, shards: usize) -> usize {
        self.home as usize & (shards - 1)
    }

    /// The upper 32 bits of the home, which decide the position in a table.
    #[inline]
    pub(crate) fn place(self) -> u32 {
        (self.home >> 16) as u32
    }

    /// The upper eight bits of the home: which 256th of the table it lies in.
    #[inline]
    pub(crate) fn group(self) -> u8 {
        (self.home >> (HOME_BITS - u8::BITS)) as u8
    }

    /// True if the tag is not in the first database.
    #[inline]
    pub(crate) fn is_in_other_database(self) -> bool {
        self.name & DATABASE_BITS != 0
    }

    /// The database of the tag.
    pub(crate) fn database(self) -> Database {
        Database::new(((self.name & DATABASE_BITS) >> DATABASE_SHIFT) as u8).unwrap_or_default()
    }

    /// The tag of the `after=` counter beside this one.
    #[inline]
    pub(crate) fn seen(self) -> Tag {
        Tag { name: self.name | SEEN_BIT, ..self }
    }

    /// Whether this is the tag of an `after=` counter.
    #[inline]
    pub(crate) fn is_second(self) -> bool {
        self.name & SEEN_BIT != 0
    }

    /// Whether this is the counter `main` or the `after=` counter beside it.
    pub(crate) fn is_part_of(self, main: Tag) -> bool {
        self == main || self == main.seen()
    }

    /// Whether this is the `after=` counter beside `main`.
    #[inline]
    pub(crate) fn is_seen_of(self, main: Tag) -> bool {
        self.is_second() && main == Tag { name: self.name & !SEEN_BIT, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_does_not_reveal_the_seed() {
        assert_eq!(format!("{:?}", Seed([0x1234_5678, 42])), "Seed(..)");
        assert_eq!(format!("{:?}", SubjectHasher::new(Seed([0x1234_5678, 42]))), "SubjectHasher(..)");
    }
}
