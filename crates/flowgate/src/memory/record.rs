//! Records: the states of a table as bytes that outlive the process.
//!
//! The highest bits of the first byte tell three forms apart, so that a reader can skip what it does not know. All numbers
//! are little-endian:
//!
//! ```text
//! slot            0x40 | kind and class (1) | mark (1) | home (6) | name (8) | forget_at (8) | word (1 to 10)
//! whole  32 bytes kind and class (1) | mark (1) | home (6) | name (8) | forget_at (8) | word (8)
//! long            0x80 | type (1) | padding bytes at the end (1) | length in words of eight bytes (2) | zero (4) | body
//! ```
//!
//! The word of a slot is small: it has seven bits in each byte, the lowest first, and the highest bit is set in all but the
//! last one. Slots with a whole word are read, and no longer written.
//!
//! The kinds of slots are those of [`Kind`], whose numbers are frozen. A log that lies beside the table is a long
//! record, and so is the note that a counter is gone. Types from [`FIRST_FOREIGN_TYPE`] on belong to whoever writes
//! records beside those of a store. A first byte of zero ends the records.
//!
//! Rule       Records are states, not operations: of the records of a counter the last one counts.
//! Rule       A log writes the entries from the first one that changed on. The record tells the oldest entry, which is
//!            as much as a reader needs to drop what has left, and the units between the two. A reader whose log
//!            differs there has missed a record and keeps the log it has.

use super::key::Tag;
use super::slot::{Kind, Slot};
use crate::algorithm::{Entries, Entry, Log, MAX_WORDS};

const LONG_BIT: u8 = 0x80;
/// Marks a slot with a short word. It takes the place of a slot's changed bit, which no record has.
const SHORT_WORD_BIT: u8 = 0x40;
const LOG_TYPE: u8 = LONG_BIT | 1;
const GONE_TYPE: u8 = LONG_BIT | 2;

/// The first type that no store writes.
const FIRST_FOREIGN_TYPE: u8 = 0xC0;

const SLOT_BYTES: usize = 32;
/// The bytes of a slot before its word, and the most that its word takes.
const WORD_AT: usize = 24;
const MAX_WORD_BYTES: usize = 10;
const HEAD_BYTES: usize = 8;
/// Kind and key, the first instant that is written, the oldest entry, and the units between the two.
const LOG_HEAD_BYTES: usize = 6 * 8;

/// The longest record that a store writes: of a log whose entries are one word each in memory. With the rest of a step of a visit
/// it fits in a block of a journal, of 64 KiB.
const _: () = assert!(HEAD_BYTES + LOG_HEAD_BYTES + MAX_WORDS * 16 < 48 << 10);

/// A record: the state of a counter, or a record that another writer has added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a>(&'a [u8]);

/// The records in some bytes, up to the first that is not whole.
#[derive(Clone, Debug)]
pub struct Records<'a>(&'a [u8]);

impl<'a> Records<'a> {
    /// The records in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Records<'a> {
        Records(bytes)
    }

    /// The bytes that are left: not a whole record, or nothing.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let length = match *self.0 {
            [0, ..] => return None,
            [kind, ..] if kind & (LONG_BIT | SHORT_WORD_BIT) == 0 => SLOT_BYTES,
            [kind, ..] if kind & LONG_BIT == 0 => {
                let word = self.0.get(WORD_AT..)?.iter().take(MAX_WORD_BYTES);
                WORD_AT + word.take_while(|byte| **byte & 0x80 != 0).count() + 1
            }
            [_, padding, low, high, ..] => {
                let length = usize::from(u16::from_le_bytes([low, high])) * 8;
                if length < HEAD_BYTES + usize::from(padding) {
                    return None;
                }
                length
            }
            _ => return None,
        };
        let (record, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Record(record))
    }
}

impl<'a> Record<'a> {
    /// Appends a record of another writer: a type from 0 to 63 and a body, which is kept to the byte. False, and
    /// nothing is appended, if the body is too long: above 32 KiB.
    pub fn write_foreign(kind: u8, body: &[u8], out: &mut Vec<u8>) -> bool {
        if body.len() > 32 << 10 {
            return false;
        }
        write_long(FIRST_FOREIGN_TYPE | kind, out, |out| out.extend_from_slice(body));
        true
    }

    /// The type and the body of a record that [`Record::write_foreign`] has written.
    pub fn foreign(&self) -> Option<(u8, &'a [u8])> {
        let kind = self.0[0];
        (kind >= FIRST_FOREIGN_TYPE).then(|| (kind & !FIRST_FOREIGN_TYPE, self.body()))
    }

    /// What the record holds, in a word: an algorithm, `ban`, `strikes`, `gone`; `None` if this version does not know
    /// it.
    pub fn describe(&self) -> Option<&'static str> {
        Some(match self.content()? {
            Content::Slot(slot) | Content::Log(slot, _) => slot.describe(),
            Content::Gone(_) => "gone",
        })
    }

    /// The bytes after the head of a long record.
    fn body(&self) -> &'a [u8] {
        let end = self.0.len() - usize::from(self.0[1]);
        &self.0[HEAD_BYTES..end]
    }

    /// The content of a record of a store; `None` if it is of another writer, of a kind that is not known, or
    /// malformed.
    pub(super) fn content(&self) -> Option<Content<'a>> {
        match self.0[0] {
            GONE_TYPE => {
                let [home, name] = words(self.body())?;
                Some(Content::Gone(Tag { home: home & Tag::HOME_MASK, name }))
            }
            LOG_TYPE => {
                let (fixed, entries) = self.body().split_at_checked(LOG_HEAD_BYTES)?;
                let [meta, name, from, leaves_at, units, units_before] = words(fixed)?;
                let (entries, rest) = entries.as_chunks();
                let oldest = Entry { leaves_at, units };
                let is_whole = rest.is_empty() && entries.len() <= MAX_WORDS;
                let slot = Slot::from_record([meta, name, leaves_at, 0])?;
                is_whole.then_some(Content::Log(slot, LogTail { from, oldest, units_before, entries }))
            }
            kind if kind & LONG_BIT != 0 => None,
            kind => {
                let slot = Slot::from_record(match kind & SHORT_WORD_BIT {
                    0 => words(self.0)?,
                    _ => {
                        let [meta, name, forget_at] = words(&self.0[..WORD_AT])?;
                        [meta, name, forget_at, short_word(&self.0[WORD_AT..])?]
                    }
                })?;
                (!slot.holds_log()).then_some(Content::Slot(slot))
            }
        }
    }
}

/// The content of a store's record.
pub(super) enum Content<'a> {
    Slot(Slot),
    /// The log of a counter: a slot with its key and label, and the entries.
    Log(Slot, LogTail<'a>),
    Gone(Tag),
}

impl Content<'_> {
    pub(super) fn tag(&self) -> Tag {
        match self {
            Content::Slot(slot) | Content::Log(slot, _) => slot.tag(),
            Content::Gone(tag) => *tag,
        }
    }
}

/// The newest entries of a log.
pub(super) struct LogTail<'a> {
    /// The instant from which on entries are in `entries`: those that leave at it or later.
    from: u64,
    oldest: Entry,
    /// The units of the entries before `from`.
    units_before: u64,
    entries: &'a [[u8; 16]],
}

impl LogTail<'_> {
    /// The whole log: the entries of `old` up to where these begin, then these. `None` where `old` is not the log that
    /// they continue.
    pub(super) fn continue_from(&self, old: Option<&Log>, most_units: u64) -> Option<Entries> {
        let mut log = Entries::default();
        let mut push = |entry: Entry| {
            let is_valid = (1..=most_units - log.total()).contains(&entry.units);
            if is_valid {
                log.push_back(entry, MAX_WORDS as u64);
            }
            is_valid.then_some(())
        };
        if self.oldest.leaves_at < self.from {
            let old: &mut dyn Iterator<Item = Entry> = match old? {
                Log::One(entry) => &mut std::iter::once(*entry),
                Log::Many(entries) => &mut entries.iter(),
            };
            for entry in old.filter(|entry| (self.oldest.leaves_at..self.from).contains(&entry.leaves_at)) {
                push(if entry.leaves_at == self.oldest.leaves_at { self.oldest } else { entry })?;
            }
        }
        let mut newest = Vec::with_capacity(self.entries.len());
        for entry in self.entries {
            let [leaves_at, units] = words(entry)?;
            newest.push(Entry { leaves_at, units });
        }
        newest.into_iter().try_for_each(&mut push)?;
        let before: u64 = log.iter().take_while(|entry| entry.leaves_at < self.from).map(|entry| entry.units).sum();
        (before == self.units_before && log.iter().count() <= MAX_WORDS).then_some(log)
    }
}

/// Appends the state of a slot that needs no log.
#[inline]
pub(super) fn write_slot(slot: &Slot, out: &mut Vec<u8>) {
    let [meta, name, forget_at, mut word] = slot.record_words();
    let (mut record, mut length) = ([0; WORD_AT + MAX_WORD_BYTES], WORD_AT);
    let words = [meta | u64::from(SHORT_WORD_BIT), name, forget_at];
    for (bytes, word) in record.as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    while word > 0x7f {
        record[length] = word as u8 | 0x80;
        (word, length) = (word >> 7, length + 1);
    }
    record[length] = word as u8;
    // A copy of a fixed length takes a few instructions; a copy of any other length is a call.
    let end = out.len() + length + 1;
    out.extend_from_slice(&record);
    out.truncate(end);
}

/// The word of a slot; `None` if it has more than 64 bits, or ends with a byte of zero that it does not need.
fn short_word(bytes: &[u8]) -> Option<u64> {
    let (last, _) = bytes.split_last()?;
    let is_shortest = bytes.len() <= MAX_WORD_BYTES && (*last > 0 || bytes.len() == 1);
    let fits = bytes.len() < MAX_WORD_BYTES || *last <= 1;
    let word = bytes.iter().rev().fold(0, |word, byte| word << 7 | u64::from(byte & 0x7f));
    (is_shortest && fits).then_some(word)
}

/// Appends the entries of a log that leave at `from` or later. A log of one entry is written as the record of a slot.
pub(super) fn write_log(slot: &Slot, entries: &Entries, from: u64, out: &mut Vec<u8>) {
    if let Some(Entry { leaves_at, units }) = entries.only() {
        return write_slot(&Slot::of_words(slot.tag(), Kind::One, slot.label(), [leaves_at, units]), out);
    }
    let [meta, name, ..] = slot.record_words();
    let oldest = entries.front().unwrap_or_default();
    let newest = || entries.iter().filter(|entry| entry.leaves_at >= from);
    let units_before = entries.total() - newest().map(|entry| entry.units).sum::<u64>();
    write_long(LOG_TYPE, out, |out| {
        put(out, &[meta, name, from, oldest.leaves_at, oldest.units, units_before]);
        newest().for_each(|entry| put(out, &[entry.leaves_at, entry.units]));
    });
}

/// Appends that a counter is gone.
pub(super) fn write_gone(tag: Tag, out: &mut Vec<u8>) {
    write_long(GONE_TYPE, out, |out| put(out, &[tag.home, tag.name]));
}

fn write_long(kind: u8, out: &mut Vec<u8>, write_body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    write_body(out);
    let length = (out.len() - start).next_multiple_of(8);
    out[start + 1] = (start + length - out.len()) as u8;
    out.resize(start + length, 0);
    // No record is longer than 64 KiB.
    out[start + 2..start + 4].copy_from_slice(&((length / 8) as u16).to_le_bytes());
}

fn put(out: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// The bytes as exactly `N` words.
fn words<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let (words, rest) = bytes.as_chunks();
    let words: &[[u8; 8]; N] = words.try_into().ok().filter(|_| rest.is_empty())?;
    Some(words.map(u64::from_le_bytes))
}
