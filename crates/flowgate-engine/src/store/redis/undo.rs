//! Rolls back a charge to a request that is denied in the end: another server of a cluster denied it, or Redis replied too
//! late and the node denied it alone.
//!
//! Rule       The name of a charge is its time or its window. The script removes the charge while the counter still holds
//!            it, and of a bucket's charge the part that has not leaked out. Later charges have other names.
//! Rule       Undoing a charge to a bucket moves the charges behind it, but not their names. The script remembers that
//!            under a key beside the counter, and tells by when a charge was made whether it was moved.

use flowgate::portable::Undo;
use flowgate::{Ask, Hit, Op, Time};

use super::encode::{self, ScriptTime};
use super::keys;
use super::script::{ScriptCall, UNDO};

/// A call that undoes charges, which are added one by one.
pub(super) struct UndoCall {
    call: ScriptCall,
    cost: u64,
    charged_at: Time,
}

impl UndoCall {
    /// Undoes charges of `cost` that were made at `charged_at`, by the script's time.
    pub(super) fn new(time: ScriptTime, cost: u64, charged_at: Time) -> UndoCall {
        let mut call = ScriptCall::new(&UNDO);
        encode::time(&mut call.args, time);
        call.args.number(cost);
        call.args.number(charged_at.as_nanos() / 1000);
        UndoCall { call, cost, charged_at }
    }

    /// Undoes what was charged to a hit that has passed. A shadow rule keeps its charge: it counts whatever the others
    /// decide.
    pub(super) fn add(&mut self, hit: &Hit<'_>, write_key: impl Fn(&mut Vec<u8>)) {
        if hit.flags().shadow {
            return;
        }
        let undo = hit.write_undo(Ask::new(Op::Take, self.cost, self.charged_at), &mut self.call.args);
        if undo != Undo::Nothing {
            self.call.keys.write(&write_key);
        }
        if undo == Undo::CounterAndMoves {
            self.add_undone(write_key);
        }
    }

    /// Undoes a call of `CL.THROTTLE` that has passed: it is over at `tat`, and took `increment` nanoseconds.
    pub(super) fn add_throttle(&mut self, tat: i64, increment: i64, write_key: impl Fn(&mut Vec<u8>)) {
        self.call.keys.write(&write_key);
        self.add_undone(write_key);
        self.call.args.push(b"c");
        encode::nanos(&mut self.call.args, tat);
        encode::nanos(&mut self.call.args, increment);
        self.call.args.number(0);
    }

    /// The key of what was undone in the counter of a key, in the same slot.
    fn add_undone(&mut self, write_key: impl Fn(&mut Vec<u8>)) {
        self.call.keys.write(|key| {
            write_key(key);
            key.extend_from_slice(keys::UNDONE.as_bytes());
        });
    }

    /// The call, unless nothing was charged.
    pub(super) fn finish(self) -> Option<ScriptCall> {
        let charged = self.call.keys().len() > 0;
        charged.then_some(self.call)
    }
}
