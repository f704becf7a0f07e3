//! The origins of a configuration: files and directories, each with a fingerprint of the bytes that were read.
//!
//! Rule       The result of a load depends on its origins and the environment alone. While no origin changes, a load
//!            gives the same result, even if that is a failure.
//! Invariant  The fingerprint is that of the bytes that
//!            were used: a file that changes during the load differs from its fingerprint afterwards.

use std::fs;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use siphasher::sip128::{Hasher128, SipHasher13};

use super::files;

/// The bytes of a file that are read in one go.
const CHUNK_BYTES: usize = 64 << 10;

/// A file that was read, or a directory of `include`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The absolute path.
    pub path: PathBuf,
    kind: Kind,
    content: Fingerprint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A file that may have at most this many bytes. A larger file is an error, so the bytes after them do not matter.
    File {
        most: u64,
    },
    Directory,
}

/// `None`: it could not be read.
type Fingerprint = Option<u128>;

impl Origin {
    pub(crate) fn file(path: &Path, most: u64, bytes: Option<&[u8]>) -> Origin {
        let content = bytes.map(fingerprint);
        Origin { path: path.to_path_buf(), kind: Kind::File { most }, content }
    }

    pub(crate) fn directory(path: &Path, names: Option<&[Vec<u8>]>) -> Origin {
        Origin { path: path.to_path_buf(), kind: Kind::Directory, content: names.map(names_fingerprint) }
    }

    /// The [`fingerprint`] of the bytes of a file; `None`: it could not be read.
    pub fn fingerprint(&self) -> Option<u128> {
        self.content
    }

    /// True if its bytes have changed. Reads all of it: compare size and time first.
    pub fn has_changed(&self) -> bool {
        let now = match self.kind {
            Kind::File { most } => file_fingerprint(&self.path, most).ok(),
            Kind::Directory => entry_names(&self.path).ok().map(|names| names_fingerprint(&names)),
        };
        now != self.content
    }
}

/// A 128-bit hash: different bytes have different numbers, except by a collision.
pub fn fingerprint(bytes: &[u8]) -> u128 {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.finish128().as_u128()
}

/// The names in a directory, in order.
pub(crate) fn entry_names(directory: &Path) -> io::Result<Vec<Vec<u8>>> {
    // An empty path cannot be listed; joined with an empty part it is the current directory.
    let entries = fs::read_dir(directory.join(""))?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name().into_encoded_bytes()).collect();
    names.sort_unstable();
    Ok(names)
}

fn names_fingerprint(names: &[Vec<u8>]) -> u128 {
    let mut hasher = SipHasher13::new();
    for name in names {
        hasher.write(name);
        // Names cannot hold this byte, so different lists of names have different bytes.
        hasher.write(b"/");
    }
    hasher.finish128().as_u128()
}

/// The fingerprint of the file's first `most` + 1 bytes. A load reads no more, so an unchanged file has the same fingerprint as when
/// it was loaded.
fn file_fingerprint(path: &Path, most: u64) -> io::Result<u128> {
    let (mut hasher, mut chunk) = (SipHasher13::new(), vec![0; CHUNK_BYTES]);
    let mut file = files::open(path)?.take(most + 1);
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(hasher.finish128().as_u128()),
            Ok(read) => hasher.write(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_changed_when_its_content_has() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let absent = Origin::file(&path, 1 << 20, None);
        assert!(!absent.has_changed());
        let long = vec![b'x'; CHUNK_BYTES * 2 + 7];
        fs::write(&path, &long).unwrap();
        assert!(absent.has_changed());
        let origin = Origin::file(&path, 1 << 20, Some(&long));
        assert!(!origin.has_changed(), "read in parts or whole");
        fs::write(&path, &long).unwrap();
        assert!(!origin.has_changed(), "written again");
        fs::write(&path, &long[1..]).unwrap();
        assert!(origin.has_changed());
        fs::remove_file(&path).unwrap();
        assert!(origin.has_changed());
        fs::create_dir(&path).unwrap();
        assert!(origin.has_changed() && !absent.has_changed(), "a directory is not a file");
    }

    #[test]
    fn a_file_that_is_too_large_is_reported_only_for_its_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "too large").unwrap();
        let origin = Origin::file(&path, 3, Some(b"too "));
        assert!(!origin.has_changed());
        fs::write(&path, "too large still").unwrap();
        assert!(!origin.has_changed());
        fs::write(&path, "too").unwrap();
        assert!(origin.has_changed());
    }

    #[test]
    fn a_directory_has_changed_when_the_names_in_it_have() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rules.d");
        let absent = Origin::directory(&path, None);
        fs::create_dir(&path).unwrap();
        assert!(absent.has_changed());
        fs::write(path.join("a"), "").unwrap();
        let origin = Origin::directory(&path, Some(&entry_names(&path).unwrap()));
        fs::write(path.join("a"), "other").unwrap();
        assert!(!origin.has_changed());
        fs::rename(path.join("a"), path.join("b")).unwrap();
        assert!(origin.has_changed());
    }
}
