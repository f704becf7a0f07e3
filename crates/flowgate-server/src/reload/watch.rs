//! Tells whether the files of a configuration have changed: first by their metadata, then by their content.
//!
//! Rule       A file has not changed if its stamp (device, inode, size, time of change) is the one of the content in
//!            use. With any other stamp the file is read, and only other content is a change.
//! Invariant  A stamp is taken before its content is read, so it is never newer than the content.

use std::fs::{self, Metadata};
use std::path::Path;

use flowgate_engine::config::Origin;

/// The origins of a configuration and their stamps.
#[derive(Debug)]
pub(crate) struct Watch {
    origins: Vec<WatchedOrigin>,
}

#[derive(Debug)]
struct WatchedOrigin {
    origin: Origin,
    /// The stamp of the last look.
    last: Stamp,
    /// A stamp of the content in use.
    clean: Option<Stamp>,
}

/// The metadata of a name, links followed; `None`: no file has this name.
pub(crate) type Stamp = Option<FileIdentity>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
}

impl Watch {
    /// Watches origins that were just read. The first call of `has_changed` reads them again, since their stamps are
    /// unknown.
    pub(crate) fn new(origins: Vec<Origin>) -> Watch {
        let watched = |origin| WatchedOrigin { origin, last: None, clean: None };
        Watch { origins: origins.into_iter().map(watched).collect() }
    }

    /// True if these are the origins, with the same content.
    pub(crate) fn is_of(&self, origins: &[Origin]) -> bool {
        self.origins.iter().map(|watched| &watched.origin).eq(origins)
    }

    /// The file that the configuration was loaded from; `None`: it has none.
    pub(crate) fn main_file(&self) -> Option<String> {
        self.origins.first().map(|watched| watched.origin.path.display().to_string())
    }

    /// The fingerprint of that file as it was read.
    pub(crate) fn main_fingerprint(&self) -> Option<u128> {
        self.origins.first().and_then(|watched| watched.origin.fingerprint())
    }

    /// True if the origins now differ from the content in use.
    pub(crate) fn has_changed(&mut self) -> bool {
        // Every origin is looked at, so that `is_steady` has stamps to compare with.
        self.origins.iter_mut().fold(false, |changed, watched| watched.has_changed() | changed)
    }

    /// True if all stamps are those of the last look.
    pub(crate) fn is_steady(&mut self) -> bool {
        self.origins.iter_mut().fold(true, |steady, watched| watched.is_steady() & steady)
    }
}

impl WatchedOrigin {
    fn has_changed(&mut self) -> bool {
        let stamp = stamp(&self.origin.path);
        let seen_twice = self.last == stamp;
        self.last = stamp;
        if self.clean == Some(stamp) {
            return false;
        }
        let changed = self.origin.has_changed();
        // File systems count time in ticks of milliseconds: a second change within the tick of the first leaves the
        // stamp as it is. A stamp that two looks have seen is older than a tick.
        self.clean = (!changed && seen_twice).then_some(stamp);
        changed
    }

    fn is_steady(&mut self) -> bool {
        let stamp = stamp(&self.origin.path);
        std::mem::replace(&mut self.last, stamp) == stamp
    }
}

pub(crate) fn stamp(path: &Path) -> Stamp {
    fs::metadata(path).ok().map(|metadata| file_identity(&metadata))
}

#[cfg(unix)]
fn file_identity(metadata: &Metadata) -> FileIdentity {
    use std::os::unix::fs::MetadataExt;
    FileIdentity {
        file: (metadata.dev(), metadata.ino()),
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    }
}

/// Without inodes, a file that replaces another one of the same size and time goes unnoticed.
#[cfg(not(unix))]
fn file_identity(metadata: &Metadata) -> FileIdentity {
    let since_epoch = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).ok();
    let modified = metadata.modified().ok().and_then(since_epoch).unwrap_or_default();
    let modified = (modified.as_secs() as i64, i64::from(modified.subsec_nanos()));
    FileIdentity { file: (0, 0), size: metadata.len(), modified }
}
