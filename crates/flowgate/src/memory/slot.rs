//! A slot: 32 bytes, a key's tag and its state.
//!
//! Invariant  The first word of every state is the instant from which it is as if never used, whatever the
//!            algorithm; a bucket may owe a part of a nanosecond more. Expiry looks at nothing else, eviction also at the class.

use super::expiry::GRACE_NANOS;
use super::key::{HOME_SHIFT, Tag};
use super::logs::Logs;
use crate::algorithm::{Entry, FullAt, Log, MAX_EXACT_INTEGER, Pair, State, WindowCount, Words};
use crate::ban::LastBan;
use crate::class::Class;
use crate::limit::Algorithm;

/// The kind of a state, in four bits. The numbers are frozen, because a journal keeps them. A new kind takes the next
/// number.
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
    /// One word: the instant until which something is owed.
    Throttle,
    /// The last ban of a subject; the second word is its end.
    Banned,
    /// The place of a log that was taken out and is about to come back.
    Lent,
    /// The place of one part of a counter with `after=` while only the other has a state.
    Unused,
}

impl Kind {
    #[inline]
    fn from_bits(bits: u8) -> Kind {
        match bits & KIND_BITS {
            0 => Kind::Empty,
            1 => Kind::Bucket,
            2 => Kind::Fixed,
            3 => Kind::One,
            4 => Kind::Log,
            5 => Kind::Approx,
            6 => Kind::Throttle,
            7 => Kind::Banned,
            8 => Kind::Lent,
            // Only the kinds above are ever written.
            _ => Kind::Unused,
        }
    }
}

/// A state of two words, and the kind of its slot.
pub(super) trait SlotWords: Words {
    const KIND: Kind;
}

impl SlotWords for FullAt {
    const KIND: Kind = Kind::Bucket;
}

impl SlotWords for WindowCount {
    const KIND: Kind = Kind::Fixed;
}

impl SlotWords for Pair {
    const KIND: Kind = Kind::Approx;
}

/// The mark of a [`Kind::Throttle`], different from every algorithm's.
pub(super) const THROTTLE_MARK: u8 = u8::MAX;

/// The low byte of [`Slot::meta`] holds the kind in four bits, above it the class in two, then the changed bit; the highest bit is
/// zero. The next byte is the mark, and above it lie the 48 bits of the home: two slots are compared by home and name in two words.
const KIND_BITS: u8 = 0b1111;
const CLASS_SHIFT: u32 = 4;
const CHANGED_BIT: u8 = 1 << 6;
const MARK_SHIFT: u32 = 8;

/// The part of a slot beside the two words of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// The algorithm of a limit's counter, or the level of a ban.
    pub(super) mark: u8,
    pub(super) class: Class,
}

/// Aligned, so that none lies across two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Slot {
    forget_at: u64,
    word: u64,
    name: u64,
    /// Home, mark, class and kind. An empty slot is of kind zero.
    meta: u64,
}

const _: () = assert!(size_of::<Slot>() == 32);

impl Slot {
    pub(super) const EMPTY: Slot = Slot { forget_at: 0, word: 0, name: 0, meta: Kind::Empty as u64 };

    /// A slot for `state`; `None` when there is nothing to keep. A log moves into `logs`.
    #[inline]
    pub(super) fn new(tag: Tag, state: State, label: Label, logs: &mut Logs) -> Option<Slot> {
        let (kind, forget_at, word) = match state {
            State::Unused => return None,
            State::Bucket(FullAt { nanos, ticks }) => (Kind::Bucket, nanos, ticks),
            State::Fixed(WindowCount { ends_at, count }) => (Kind::Fixed, ends_at, count),
            State::Approx(pair) => {
                let [forget_at, units] = pair.pack();
                (Kind::Approx, forget_at, units)
            }
            State::Throttle(tat) => (Kind::Throttle, tat, 0),
            State::Banned(LastBan { forget_at, until, level: _ }) => (Kind::Banned, forget_at, until),
            State::Sliding(Log::One(Entry { leaves_at, units })) => (Kind::One, leaves_at, units),
            State::Sliding(log) => (Kind::Log, log.last_leaves_at(), logs.insert(log) as u64),
        };
        Some(Slot::of_words(tag, kind, label, [forget_at, word]))
    }

    /// The place of a part that has no state, until the other part has none either.
    pub(super) fn unused(tag: Tag, mark: u8, until: u64) -> Slot {
        Slot::of_words(tag, Kind::Unused, Label { mark, class: Class::LITTLE }, [until, 0])
    }

    /// The state. A log moves out of `logs`, and the slot waits for its return.
    #[inline]
    pub(super) fn take(&mut self, logs: &mut Logs) -> State {
        let (Slot { forget_at, word, .. }, mark) = (*self, self.mark());
        match self.kind() {
            Kind::Empty | Kind::Lent | Kind::Unused => State::Unused,
            Kind::Bucket => State::Bucket(FullAt { nanos: forget_at, ticks: word }),
            Kind::Fixed => State::Fixed(WindowCount { ends_at: forget_at, count: word }),
            Kind::Approx => State::Approx(Pair::unpack([forget_at, word])),
            Kind::Throttle => State::Throttle(forget_at),
            Kind::Banned => State::Banned(LastBan { forget_at, until: word, level: mark }),
            Kind::One => State::Sliding(Log::One(Entry { leaves_at: forget_at, units: word })),
            Kind::Log => {
                self.set_bits(self.bits() & !KIND_BITS | Kind::Lent as u8);
                logs.remove(word as usize).map_or(State::Unused, State::Sliding)
            }
        }
    }

    /// Kind, class and the changed bit.
    #[inline(always)]
    fn bits(&self) -> u8 {
        self.meta as u8
    }

    #[inline(always)]
    fn set_bits(&mut self, bits: u8) {
        self.meta = self.meta & !u64::from(u8::MAX) | u64::from(bits);
    }

    #[inline]
    pub(super) fn mark(&self) -> u8 {
        (self.meta >> MARK_SHIFT) as u8
    }

    #[inline]
    pub(super) fn class(&self) -> Class {
        Class::from_bits(self.bits() >> CLASS_SHIFT)
    }

    /// The class at `now`: what has expired is as if never used.
    #[inline]
    pub(super) fn class_at(&self, now: u64) -> Class {
        if self.forget_at < now { Class::LITTLE } else { self.class() }
    }

    /// A slot for a state of two words, changed.
    #[inline]
    pub(super) fn of_words(tag: Tag, kind: Kind, label: Label, [forget_at, word]: [u64; 2]) -> Slot {
        let (Tag { home, name }, Label { mark, class }) = (tag, label);
        let bits = kind as u8 | class.bits() << CLASS_SHIFT | CHANGED_BIT;
        let meta = home << HOME_SHIFT | u64::from(mark) << MARK_SHIFT | u64::from(bits);
        Slot { forget_at, word, name, meta }
    }

    /// The words of a state of that kind.
    #[inline]
    pub(super) fn words(&self, kind: Kind) -> Option<[u64; 2]> {
        self.is(kind).then_some([self.forget_at, self.word])
    }

    /// Writes a state of the same kind in place of the one that is there, and sets the changed bit. The shard must
    /// [mark](super::shard::Shard::mark) the slot's group.
    #[inline(always)]
    pub(super) fn rewrite(&mut self, kind: Kind, class: Class, words: [u64; 2]) {
        self.set_words(words);
        self.set_bits(kind as u8 | class.bits() << CLASS_SHIFT | CHANGED_BIT);
    }

    #[inline]
    pub(super) fn set_words(&mut self, [forget_at, word]: [u64; 2]) {
        self.forget_at = forget_at;
        self.word = word;
    }

    #[inline]
    pub(super) fn kind(&self) -> Kind {
        Kind::from_bits(self.bits())
    }

    #[inline]
    pub(super) fn is(&self, kind: Kind) -> bool {
        self.bits() & KIND_BITS == kind as u8
    }

    /// The words that its record has: those of the slot without the changed bit.
    #[inline]
    pub(super) fn record_words(&self) -> [u64; 4] {
        [self.meta & !u64::from(CHANGED_BIT), self.name, self.forget_at, self.word]
    }

    /// Mark and class.
    pub(super) fn label(&self) -> Label {
        Label { mark: self.mark(), class: self.class() }
    }

    /// The slot of which these are the words; `None` if this version does not know its kind, or no limit could have written it.
    pub(super) fn from_record([meta, name, forget_at, word]: [u64; 4]) -> Option<Slot> {
        let slot = Slot { forget_at, word, name, meta: meta & !u64::from(CHANGED_BIT) };
        let is_valid = match slot.bits() & KIND_BITS {
            bits if bits > Kind::Unused as u8 => false,
            _ => match slot.kind() {
                Kind::Empty | Kind::Lent => false,
                Kind::Fixed => word <= MAX_EXACT_INTEGER,
                Kind::One => (1..=MAX_EXACT_INTEGER).contains(&word),
                Kind::Banned => word <= forget_at,
                Kind::Bucket | Kind::Log | Kind::Approx | Kind::Throttle | Kind::Unused => true,
            },
        };
        is_valid.then_some(slot)
    }

    /// The same state `nanos` nanoseconds earlier.
    pub(super) fn moved_back(&self, nanos: u64) -> Slot {
        let word = if self.is(Kind::Banned) { self.word.saturating_sub(nanos) } else { self.word };
        Slot { forget_at: self.forget_at.saturating_sub(nanos), word, ..*self }
    }

    /// The name of what the slot holds, such as an algorithm.
    pub(super) fn describe(&self) -> &'static str {
        match self.kind() {
            Kind::Bucket if self.mark() == Algorithm::Pace as u8 => "pace",
            Kind::Bucket => "bucket",
            Kind::Fixed if self.is_second() => "after",
            Kind::Fixed => "fixed",
            Kind::One | Kind::Log if self.is_second() => "strikes",
            Kind::One | Kind::Log => "sliding",
            Kind::Approx => "approx",
            Kind::Throttle => "throttle",
            Kind::Banned => "ban",
            Kind::Unused | Kind::Empty | Kind::Lent => "unused",
        }
    }

    /// Whether the state was written since [`Slot::clear_changed`].
    #[inline]
    pub(super) fn is_changed(&self) -> bool {
        self.bits() & CHANGED_BIT != 0
    }

    #[inline]
    pub(super) fn clear_changed(&mut self) {
        self.meta &= !u64::from(CHANGED_BIT);
    }

    #[inline]
    pub(super) fn tag(&self) -> Tag {
        Tag::from_meta(self.meta, self.name)
    }

    #[inline]
    pub(super) fn name(&self) -> u64 {
        self.name
    }

    /// True if the slot is taken and sorts before every counter of the tag's subject.
    #[inline]
    pub(super) fn is_before_home(&self, tag: Tag) -> bool {
        self.meta < tag.home << HOME_SHIFT && !self.is_empty()
    }

    /// True if a counter of the tag's subject has the slot.
    #[inline]
    pub(super) fn is_at_home(&self, tag: Tag) -> bool {
        self.meta >> HOME_SHIFT == tag.home && !self.is_empty()
    }

    /// The upper eight bits of the home.
    #[inline]
    pub(super) fn group(&self) -> u8 {
        self.tag().group()
    }

    /// True for the second part of a counter: that of `after=`, or the strikes of a ban.
    #[inline]
    pub(super) fn is_second(&self) -> bool {
        self.tag().is_second()
    }

    /// See [`Tag::place`].
    #[inline]
    pub(super) fn place(&self) -> u32 {
        self.tag().place()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bits() == Kind::Empty as u8
    }

    /// The index of the log in [`Logs`]; `None` if the slot has no log.
    #[inline]
    pub(super) fn log_index(&self) -> Option<usize> {
        self.holds_log().then_some(self.word as usize)
    }

    /// Moves the log of this slot, if it has one, from one [`Logs`] to another.
    pub(super) fn move_log(&mut self, from: &mut Logs, to: &mut Logs) {
        if let Some(log) = self.log_index().and_then(|index| from.remove(index)) {
            self.word = to.insert(log) as u64;
        }
    }

    /// True if the slot has a log in [`Logs`].
    #[inline]
    pub(super) fn holds_log(&self) -> bool {
        self.is(Kind::Log)
    }

    /// Whether the state has been as if never used for so long that a sweep drops it.
    #[inline]
    pub(super) fn has_expired(&self, now: u64) -> bool {
        let before = now.saturating_sub(GRACE_NANOS);
        // The first comparison is enough for nearly all slots.
        self.forget_at < before && self.forget_at() < before
    }

    /// The instant from which the state is as if never used, in whole nanoseconds. The second word of a bucket holds the ticks
    /// that it still owes then: it is full a nanosecond later.
    #[inline]
    pub(super) fn forget_at(&self) -> u64 {
        // A record that no limit has written may name the last instant there is.
        self.forget_at.saturating_add(u64::from(self.is(Kind::Bucket) && self.word > 0))
    }
}

#[cfg(test)]
impl Slot {
    /// Of a log that lies beside the table, its index and when its last unit leaves.
    pub(super) fn log(&self) -> (usize, u64) {
        (self.word as usize, self.forget_at)
    }
}
