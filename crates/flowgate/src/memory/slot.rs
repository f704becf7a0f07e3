//! A slot: 32 bytes, a key's tag and its state.
//!
//! Invariant  The first word of every state is the instant from which it is as if never used, whatever the
//!            algorithm. Expiry and eviction look at nothing else.

use slab::Slab;

use super::key::Tag;
use crate::algorithm::{Counted, Entries, Entry, FullAt, Log, Pair, State, Words};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Empty,
    Bucket,
    Fixed,
    /// A sliding log of a single entry.
    One,
    /// A sliding log that lies beside the table; the second word is its index.
    Log,
    Approx,
    /// A log that was taken out and is about to come back.
    Lent,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    forget_at: u64,
    word: u64,
    name: u64,
    home: u32,
    home_low: u16,
    kind: Kind,
}

const _: () = assert!(size_of::<Slot>() == 32);

impl Slot {
    pub(super) const EMPTY: Slot = Slot { forget_at: 0, word: 0, name: 0, home: 0, home_low: 0, kind: Kind::Empty };

    /// A slot for `state`; `None` when there is nothing to keep. A log moves into `logs`.
    #[inline]
    pub(super) fn new(tag: Tag, state: State, logs: &mut Logs) -> Option<Slot> {
        let (kind, forget_at, word) = match state {
            State::Unused => return None,
            State::Bucket(FullAt { nanos, ticks }) => (Kind::Bucket, nanos, ticks),
            State::Fixed(Counted { ends_at, count }) => (Kind::Fixed, ends_at, count),
            State::Approx(pair) => {
                let [forget_at, units] = pair.pack();
                (Kind::Approx, forget_at, units)
            }
            State::Sliding(Log::One(Entry { leaves_at, units })) => (Kind::One, leaves_at, units),
            State::Sliding(Log::Many(entries)) => (Kind::Log, entries.last_leaves_at(), logs.insert(entries) as u64),
        };
        Some(Slot { forget_at, word, name: tag.name, home: tag.home, home_low: tag.home_low, kind })
    }

    /// The state. A log moves out of `logs`, and the slot waits for its return.
    #[inline]
    pub(super) fn take(&mut self, logs: &mut Logs) -> State {
        let Slot { forget_at, word, kind, .. } = *self;
        match kind {
            Kind::Empty | Kind::Lent => State::Unused,
            Kind::Bucket => State::Bucket(FullAt { nanos: forget_at, ticks: word }),
            Kind::Fixed => State::Fixed(Counted { ends_at: forget_at, count: word }),
            Kind::Approx => State::Approx(Pair::unpack([forget_at, word])),
            Kind::One => State::Sliding(Log::One(Entry { leaves_at: forget_at, units: word })),
            Kind::Log => {
                self.kind = Kind::Lent;
                logs.try_remove(word as usize).map_or(State::Unused, |log| State::Sliding(Log::Many(log)))
            }
        }
    }

    pub(super) fn tag(&self) -> Tag {
        Tag { home: self.home, home_low: self.home_low, name: self.name }
    }

    pub(super) fn home(&self) -> u32 {
        self.home
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kind == Kind::Empty
    }

    /// From when the state is as if never used, to within a nanosecond.
    pub(super) fn forget_at(&self) -> u64 {
        self.forget_at
    }
}

/// The sliding logs of a shard that need more than a slot.
pub(super) type Logs = Slab<Box<Entries>>;
