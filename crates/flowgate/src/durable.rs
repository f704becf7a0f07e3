//! What a journal needs of a [`MemoryStore`](crate::MemoryStore): its states as records, those that have changed, and the way back.
//!
//! For the crate `flowgate-journal`, and hidden from the documentation: it changes with the journal.

pub use crate::memory::{LoadAt, LoadOutcome, Record, Records, VisitCursor};
