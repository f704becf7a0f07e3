//! The syncs of a file take turns. The system tells of lost writes once, to one of the syncs of a file: one beside it, or behind it,
//! would find nothing wrong. After a sync that failed, no other one of the file succeeds.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use crate::disk::Disk;

/// Whose turn it is to sync a file, and whether a sync of it has failed.
#[derive(Debug, Default)]
pub(crate) struct SyncTurns {
    turn: Mutex<()>,
    has_failed: AtomicBool,
}

impl SyncTurns {
    /// Waits for a sync that is under way, and syncs.
    pub(crate) fn sync<D: Disk>(&self, disk: &D, file: &D::File) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_failed() {
            return Err(did_not_sync());
        }
        disk.sync(file).inspect_err(|_| self.fail())
    }

    pub(crate) fn fail(&self) {
        self.has_failed.store(true, SeqCst);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(SeqCst)
    }
}

pub(crate) fn did_not_sync() -> io::Error {
    io::Error::other("the disk did not sync")
}
