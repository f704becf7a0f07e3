//! What a journal needs of a [`MemoryStore`](crate::MemoryStore): its states as records, the changed ones, and the way
//! to load them.
//!
//! For the crate `flowgate-journal`, and hidden from the documentation: it changes with the journal.

pub use crate::memory::{LoadAt, LoadOutcome, Record, Records, VisitCursor};
