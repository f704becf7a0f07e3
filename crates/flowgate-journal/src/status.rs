//! What the journal has written, and the age of its oldest unwritten change: for reports, and for callers that wait for
//! the disk.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use flowgate::{Span, Time};

/// The counts of a journal. They are read without a lock.
#[derive(Debug, Default)]
pub struct JournalStatus {
    pub(crate) written_bytes: AtomicU64,
    pub(crate) file_bytes: AtomicU64,
    pub(crate) generation: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) is_failing: AtomicBool,
    /// The monotonic time before which all changes are on the disk.
    pub(crate) synced_until: AtomicU64,
}

impl JournalStatus {
    /// The bytes written since the start.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Relaxed)
    }

    /// The bytes of the file in use.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Relaxed)
    }

    /// The generation that is being written.
    pub fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// The number of flushes, including those without a change and those that failed.
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Relaxed)
    }

    /// The number of syncs.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Relaxed)
    }

    /// The number of failures of the disk.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// True while the disk fails: changes are then kept in memory only.
    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Relaxed)
    }

    /// The age of the oldest change that may not be on the disk, at a monotonic time.
    pub fn lag(&self, monotonic: Time) -> Span {
        monotonic.since(Time::from_nanos(self.synced_until.load(Relaxed)))
    }
}

/// What the journal reports to callers that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncStatus {
    /// The changes of this epoch and of all earlier ones are on the disk.
    pub epoch: u64,
    /// Why the disk fails; `None` if it works. While it fails, callers do not wait for it.
    pub failure: Option<String>,
}
