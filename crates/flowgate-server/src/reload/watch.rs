//! Whether the files of a configuration have changed: first by what a name leads to now, then by content.
//!
//! Rule       A file whose stamp (device, inode, size, time of change) is the one that was seen with the content in
//!            use has not changed. Any other stamp means to read it: only other content is a change.
//! Invariant  A stamp is taken before the content is read that it stands for, so it is never too new for it.

use std::fs::{self, Metadata};
use std::path::Path;

use flowgate_engine::config::Origin;

/// The origins of a configuration and how they looked.
#[derive(Debug)]
pub(crate) struct Watch {
    origins: Vec<WatchedOrigin>,
}

#[derive(Debug)]
struct WatchedOrigin {
    origin: Origin,
    /// The stamp of the last look.
    last: Stamp,
    /// A stamp under which the content was the one in use.
    clean: Option<Stamp>,
}

/// What a name led to, links followed; `None`: nothing.
pub(crate) type Stamp = Option<FileIdentity>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
}

impl Watch {
    /// Watches what was just read. Nothing is taken for granted about when that was: the first question reads again.
    pub(crate) fn new(origins: Vec<Origin>) -> Watch {
        let watched = |origin| WatchedOrigin { origin, last: None, clean: None };
        Watch { origins: origins.into_iter().map(watched).collect() }
    }

    /// Whether these are the origins, with the same content.
    pub(crate) fn is_of(&self, origins: &[Origin]) -> bool {
        self.origins.iter().map(|watched| &watched.origin).eq(origins)
    }

    /// The file that the configuration was loaded from; `None`: it has none.
    pub(crate) fn main_file(&self) -> Option<String> {
        self.origins.first().map(|watched| watched.origin.path().display().to_string())
    }

    /// Whether reading the origins now would give something else than what is in use.
    pub(crate) fn has_changed(&mut self) -> bool {
        // All are looked at, so that `is_steady` has something to compare with.
        self.origins.iter_mut().fold(false, |changed, watched| watched.has_changed() | changed)
    }

    /// Whether nothing has moved since the last look.
    pub(crate) fn is_steady(&mut self) -> bool {
        self.origins.iter_mut().fold(true, |steady, watched| watched.is_steady() & steady)
    }
}

impl WatchedOrigin {
    fn has_changed(&mut self) -> bool {
        let stamp = stamp(self.origin.path());
        let seen_twice = self.last == stamp;
        self.last = stamp;
        if self.clean == Some(stamp) {
            return false;
        }
        let changed = self.origin.has_changed();
        // File systems count time in ticks of milliseconds: a second change within the tick of the first leaves no
        // trace in the stamp. One that is as old as the last look is beyond that.
        self.clean = (!changed && seen_twice).then_some(stamp);
        changed
    }

    fn is_steady(&mut self) -> bool {
        let stamp = stamp(self.origin.path());
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

/// Without inodes, a file that replaces another of the same size and time is not told from it.
#[cfg(not(unix))]
fn file_identity(metadata: &Metadata) -> FileIdentity {
    let since_epoch = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).ok();
    let modified = metadata.modified().ok().and_then(since_epoch).unwrap_or_default();
    let modified = (modified.as_secs() as i64, i64::from(modified.subsec_nanos()));
    FileIdentity { file: (0, 0), size: metadata.len(), modified }
}
