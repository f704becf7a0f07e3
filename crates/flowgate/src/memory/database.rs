//! Databases: name spaces of keys, whose counters are counted apart.
//!
//! State      The number of a database lies in four bits of a key's name, so in the tag of its slots. Each shard has
//!            the number of its slots for each database but the first.
//! Rule       A number changes under the lock of its shard and is read without it, like the outline of a shard.
//! Bound      128 bytes a shard, so for each 512 KiB that the store may hold, from the first use of another database
//!            on.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A database: one of 16 name spaces in which the same bytes name another key. The default is number 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Database(u8);

impl Database {
    /// The number of databases.
    pub const COUNT: u8 = 16;

    /// The database of a number below [`Database::COUNT`].
    pub const fn new(number: u8) -> Option<Database> {
        if number < Database::COUNT { Some(Database(number)) } else { None }
    }

    /// The number of the database.
    #[inline]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// The slots of a shard in each database but the first. Aligned, so that shards on other cores do not share its cache
/// line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct DatabaseCounts([AtomicU32; Database::COUNT as usize - 1]);

impl DatabaseCounts {
    /// Adds to the number of a database, if it is not the first. The caller holds the lock of the shard.
    pub(super) fn add(&self, database: Database, slots: i32) {
        if let Some(count) = self.count(database) {
            count.store(count.load(Relaxed).wrapping_add_signed(slots), Relaxed);
        }
    }

    /// The number of slots; 0 for the first database.
    pub(super) fn get(&self, database: Database) -> usize {
        self.count(database).map_or(0, |count| count.load(Relaxed) as usize)
    }

    /// The number of slots in all databases but the first.
    pub(super) fn sum(&self) -> usize {
        self.0.iter().map(|count| count.load(Relaxed) as usize).sum()
    }

    fn count(&self, database: Database) -> Option<&AtomicU32> {
        self.0.get(usize::from(database.0).checked_sub(1)?)
    }
}
