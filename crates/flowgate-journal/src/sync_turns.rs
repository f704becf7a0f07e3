//! The syncs of a file run one after the other. The system reports lost writes only once, to one sync of the file: a
//! sync at the same time or later would succeed. Therefore, after one sync of a file has failed, all further ones fail.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use crate::disk::Disk;

/// Lets one thread at a time sync a file. Knows how much of the file is synced, and whether a sync has failed.
#[derive(Debug, Default)]
pub(crate) struct SyncTurns {
    turn: Mutex<()>,
    /// The number of blocks that were handed to the disk.
    written: AtomicU64,
    /// The number of blocks that are synced.
    synced: AtomicU64,
    has_failed: AtomicBool,
}

impl SyncTurns {
    /// Waits for a sync that is under way, then syncs.
    pub(crate) fn sync<D: Disk>(&self, disk: &D, file: &D::File) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_failed() {
            return Err(did_not_sync());
        }
        let written = self.written.load(SeqCst);
        disk.sync(file).inspect_err(|_| self.fail())?;
        self.synced.store(written, SeqCst);
        Ok(())
    }

    /// Notes the number of blocks that were handed to the disk.
    pub(crate) fn note_written(&self, blocks: u64) {
        self.written.store(blocks, SeqCst);
    }

    /// The number of blocks that are synced.
    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(SeqCst)
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
