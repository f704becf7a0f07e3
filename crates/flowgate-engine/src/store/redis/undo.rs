//! Rolls back a charge to a request that is denied in the end: another server of a cluster denied it, or Redis replied
//! too late and the node denied it alone.
//!
//! Rule       The name of a charge is its time or its window. The script removes the charge while the counter still
//!            holds it, and of a bucket's charge the part that has not leaked out. Later charges have other names.
//! Rule       Undoing a charge to a bucket moves the later charges, but not their names. The script records the move
//!            beside the counter. The time of a charge shows whether it was moved.

use flowgate::portable::Arguments;
use flowgate::{Ask, Hit, Op, Time};

use super::encode::{Cells, ScriptTime};
use super::keys::{self, CounterName};
use super::script::{ScriptCall, UNDO};

/// A call that undoes charges, which are added one by one.
pub(super) struct UndoCall<'a> {
    prefix: &'a str,
    time: ScriptTime,
    cost: u64,
    charged_at: Time,
    /// The tags of the subjects, in the order of their keys.
    tags: Vec<&'a [u8]>,
    charges: Vec<u8>,
}

impl<'a> UndoCall<'a> {
    /// Undoes charges of `cost` that were made at `charged_at`, by the script's time.
    pub(super) fn new(prefix: &'a str, time: ScriptTime, cost: u64, charged_at: Time) -> UndoCall<'a> {
        UndoCall { prefix, time, cost, charged_at, tags: Vec::new(), charges: Vec::new() }
    }

    /// Undoes what was charged to a hit that has passed, on a counter of the subject of `tag`. A shadow rule keeps its
    /// charge: it counts whatever the others decide.
    pub(super) fn add(&mut self, hit: &Hit<'_>, tag: &'a [u8], name: &CounterName) {
        if hit.flags().shadow {
            return;
        }
        let before = self.charges.len();
        let mut cells = self.counter(tag, name);
        let is_charged = hit.write_undo(Ask::new(Op::Take, self.cost, self.charged_at), &mut Cells::on(&mut cells));
        self.charges = cells;
        if !is_charged {
            self.charges.truncate(before);
        }
    }

    /// Undoes a call of `CL.THROTTLE` that has passed: it is over at `tat`, and took `increment` nanoseconds.
    pub(super) fn add_throttle(&mut self, tat: i64, increment: i64, tag: &'a [u8]) {
        let mut charges = self.counter(tag, &keys::AD_HOC);
        let mut cells = Cells::on(&mut charges);
        cells.letter(b'c');
        cells.nanos(tat);
        cells.nanos(increment);
        cells.number(0);
        self.charges = charges;
    }

    /// The charges so far, and what precedes one to a counter.
    fn counter(&mut self, tag: &'a [u8], name: &CounterName) -> Vec<u8> {
        let known = self.tags.iter().position(|known| *known == tag);
        let key = known.unwrap_or_else(|| {
            self.tags.push(tag);
            self.tags.len() - 1
        });
        let mut charges = std::mem::take(&mut self.charges);
        let mut cells = Cells::on(&mut charges);
        cells.number(key as u64 + 1);
        cells.name(name);
        charges
    }

    /// The call, unless nothing was charged.
    pub(super) fn finish(self) -> Option<ScriptCall> {
        if self.charges.is_empty() {
            return None;
        }
        let mut call = ScriptCall::new(&UNDO);
        for tag in &self.tags {
            call.keys.write(|key| keys::write_subject(key, self.prefix, tag));
        }
        Cells::write(&mut call.args, |cells| {
            cells.time(self.time);
            cells.number(self.cost);
            cells.number(self.charged_at.as_nanos() / 1000);
            cells.append(&self.charges);
        });
        Some(call)
    }
}
