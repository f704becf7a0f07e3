//! Older versions of a file: numbered texts in a directory beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use flowgate::{Span, Time};
use flowgate_api::{self as api, Version};
use flowgate_engine::config::{MAX_CONFIG_BYTES, Unreadable, read_text_file};
use serde::{Deserialize, Serialize};

use super::replace::write_like;
use super::{MAX_NOTE_BYTES, MAX_VERSIONS, etag};
use crate::author::Author;

/// The most bytes of a file with an author.
const MAX_AUTHOR_BYTES: u64 = 4_096;

/// The versions of one file.
#[derive(Debug)]
pub(super) struct History {
    file: PathBuf,
    directory: PathBuf,
}

/// What is kept beside the text of a version: its author, and what it restores.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Origin<A = Author> {
    #[serde(flatten)]
    pub(super) author: A,
    /// The version whose text this version restores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) restores: Option<u64>,
}

impl From<Author> for Origin {
    fn from(author: Author) -> Origin {
        Origin { author, restores: None }
    }
}

impl History {
    pub(super) fn beside(file: &Path) -> History {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        History { file: file.to_owned(), directory: file.with_file_name(format!(".{name}.history")) }
    }

    /// The versions, newest first.
    pub(super) fn list(&self) -> io::Result<Vec<Version>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut versions = Vec::new();
        for entry in entries {
            let entry = entry?;
            // Files with other names are not versions.
            let Some(number) = number(&entry.file_name().to_string_lossy()) else { continue };
            let metadata = entry.metadata()?;
            let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            let (time, bytes) = ((Time::EPOCH + Span::from(modified)).into(), metadata.len());
            // A note or an author that cannot be read is left out, so that the list is still shown.
            let note = read_text_file(&self.path(number, "note"), MAX_NOTE_BYTES as u64).ok();
            let origin = read_text_file(&self.path(number, "author"), MAX_AUTHOR_BYTES).ok();
            let origin: Option<Origin<api::Author>> = origin.and_then(|origin| serde_json::from_str(&origin).ok());
            let restores = origin.as_ref().and_then(|origin| origin.restores);
            let author = origin.map(|origin| origin.author);
            versions.push(Version { version: number, time, bytes, note, restores, author });
        }
        versions.sort_unstable_by_key(|version| std::cmp::Reverse(version.version));
        Ok(versions)
    }

    /// The text of a version, if it is kept.
    pub(super) fn read(&self, number: u64) -> io::Result<Option<String>> {
        match read_text_file(&self.path(number, "toml"), MAX_CONFIG_BYTES) {
            Err(Unreadable::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            text => Ok(Some(text?)),
        }
    }

    /// Makes the directory. Versions may contain secrets that the file no longer shows, so only the server's user can
    /// read it.
    fn create_directory(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&self.directory)
    }

    /// Keeps a text as the newest version, unless it is that already, and drops the oldest versions. Returns the
    /// version's number.
    pub(super) fn keep(&self, text: &str, note: Option<&str>, origin: &Origin) -> io::Result<u64> {
        let versions = self.list()?;
        let newest = versions.first().map_or(0, |version| version.version);
        if newest > 0 && self.read(newest)?.is_some_and(|kept| etag(&kept) == etag(text)) {
            return Ok(newest);
        }
        self.create_directory()?;
        let number = newest + 1;
        write_like(&self.path(number, "toml"), text, &self.file)?;
        if let Some(note) = note {
            write_like(&self.path(number, "note"), note, &self.file)?;
        }
        write_like(&self.path(number, "author"), &serde_json::to_string(origin)?, &self.file)?;
        for old in versions.iter().skip(MAX_VERSIONS - 1) {
            fs::remove_file(self.path(old.version, "toml"))?;
            if old.note.is_some() {
                fs::remove_file(self.path(old.version, "note"))?;
            }
            if old.author.is_some() {
                fs::remove_file(self.path(old.version, "author"))?;
            }
        }
        Ok(number)
    }

    /// Drops a version that was not put in force.
    pub(super) fn forget(&self, number: u64) {
        // If this fails, the list keeps a version that was never in force.
        let _ = fs::remove_file(self.path(number, "toml"));
        let _ = fs::remove_file(self.path(number, "note"));
        let _ = fs::remove_file(self.path(number, "author"));
    }

    fn path(&self, number: u64, kind: &str) -> PathBuf {
        self.directory.join(format!("{number}.{kind}"))
    }
}

fn number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".toml")?;
    number.parse().ok().filter(|parsed: &u64| *parsed > 0 && parsed.to_string() == number)
}
