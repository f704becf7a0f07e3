//! The configuration file as the admin API reads and writes it.
//!
//! Rule       A text is written only if it is valid, and only over the text that its author has seen: a change in
//!            between is not overwritten.
//! Rule       The file is replaced whole (a new file, renamed over it), so no reader sees half of it. Then it is put in
//!            force, and the author learns the result.
//! Rule       Changes come one at a time. A second change waits for its turn without a thread ([`AdminFile::turn`]), so
//!            a disk that hangs keeps one thread only.
//! Rule       The texts before and after a change are kept: the last [`MAX_VERSIONS`] versions, in the directory
//!            `.NAME.history` beside the file.

mod history;
mod replace;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use flowgate_engine::config::{
    self, Input, LoadedConfig, MAX_CONFIG_BYTES, Report, fingerprint, hide_secrets, restore_secrets,
};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::author::Author;
use crate::reload::{ReloadError, ReloadStatus, Reloader};
use history::History;
pub(crate) use history::Version;

/// The number of versions that are kept.
pub const MAX_VERSIONS: usize = 20;

/// Loads a configuration the way the server loads its own.
pub type Loader = dyn Fn(Input<'_>) -> Result<LoadedConfig, Report> + Send + Sync;

/// The file, how to load it, and how to put it in force.
pub struct RulesFile {
    /// Its path.
    pub path: PathBuf,
    /// Checks a text before it is written.
    pub load: Box<Loader>,
    /// Puts a written text in force.
    pub reloader: Arc<Reloader>,
}

/// A [`RulesFile`] that callers change one at a time.
pub(crate) struct AdminFile {
    file: RulesFile,
    changing: Arc<Mutex<()>>,
}

/// The right to change the file, which one caller has at a time.
#[derive(Debug)]
pub(crate) struct Turn {
    author: Author,
    #[expect(dead_code, reason = "held until the change is made")]
    guard: OwnedMutexGuard<()>,
}

/// The file's text with hidden secrets, and its etag.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) etag: String,
}

/// The result of a change.
#[derive(Debug)]
pub(crate) struct WriteReport {
    pub(crate) version: u64,
    pub(crate) etag: String,
    pub(crate) rules: usize,
    pub(crate) warnings: Report,
    /// The settings that a restart would change.
    pub(crate) restart_needed: Vec<&'static str>,
}

/// Why a text was not written, or is written and not in force.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("the file has changed: read it again")]
    Changed,
    #[error("{0}")]
    Wrong(Report),
    #[error("there is no such version")]
    NoSuchVersion,
    #[error("written, but not in force: {0}")]
    NotInForce(String),
    #[error("the configuration file: {0}")]
    Io(#[from] io::Error),
}

/// The text that an author expects to replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Precondition {
    Anything,
    /// One of these.
    Etags(Vec<String>),
}

impl AdminFile {
    pub(crate) fn new(file: RulesFile) -> AdminFile {
        AdminFile { file, changing: Arc::default() }
    }

    /// Waits until no other caller changes the file.
    pub(crate) async fn turn(&self, author: Author) -> Turn {
        Turn { author, guard: Arc::clone(&self.changing).lock_owned().await }
    }

    pub(crate) fn read(&self) -> io::Result<Text> {
        let text = self.text()?;
        Ok(Text { etag: etag(&text), text: hide_secrets(&text) })
    }

    /// Loads a text in place of the file, and changes nothing.
    pub(crate) fn check(&self, text: &str) -> Result<LoadedConfig, Report> {
        let old = self.text().unwrap_or_default();
        self.load(&restore_secrets(text, &old))
    }

    /// Writes a text and puts it in force.
    pub(crate) fn write(&self, turn: Turn, text: &str, expected: &Precondition) -> Result<WriteReport, WriteError> {
        let old = self.text()?;
        if let Precondition::Etags(etags) = expected
            && !etags.contains(&etag(&old))
        {
            return Err(WriteError::Changed);
        }
        self.put(turn, &restore_secrets(text, &old), &old)
    }

    /// Writes the text of an older version as a new one.
    pub(crate) fn roll_back(&self, turn: Turn, version: u64) -> Result<WriteReport, WriteError> {
        let text = self.history().read(version)?.ok_or(WriteError::NoSuchVersion)?;
        let old = self.text()?;
        self.put(turn, &text, &old)
    }

    /// The versions that are kept, newest first.
    pub(crate) fn versions(&self) -> io::Result<Vec<Version>> {
        self.history().list()
    }

    fn put(&self, turn: Turn, text: &str, old: &str) -> Result<WriteReport, WriteError> {
        let loaded = self.load(text).map_err(WriteError::Wrong)?;
        let history = self.history();
        history.keep(old)?;
        // The checks took a while. The time between this comparison and the rename is as short as possible.
        if self.text()? != old {
            return Err(WriteError::Changed);
        }
        // Kept before the file is replaced: if that fails, the file is as it was, though the oldest version is gone.
        let version = history.keep(text)?;
        replace::replace(&self.file.path, text).inspect_err(|_| {
            if text != old {
                history.forget(version);
            }
        })?;
        let ReloadStatus { last_error, restart_needed, .. } = self.file.reloader.reload_now(turn.author, Some(version));
        if let Some(error) = last_error {
            return Err(WriteError::NotInForce(error));
        }
        let rules = loaded.config.policy.rules.len();
        Ok(WriteReport { version, etag: etag(text), rules, warnings: loaded.warnings, restart_needed })
    }

    /// Loads and compiles a text. The sender sees the mistakes in it, but not the contents of files that it names: it
    /// may name any file.
    fn load(&self, text: &str) -> Result<LoadedConfig, Report> {
        let path = &self.file.path;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let base = path.parent().unwrap_or(path);
        let loaded = (self.file.load)(Input::Text { name: &name, base, text }).map_err(Report::confined_to_text)?;
        let mut warnings = loaded.warnings.confined_to_text();
        if let Err(error) = self.file.reloader.check(&loaded.config) {
            warnings.add_error(match error {
                ReloadError::Certificates(error) => error.confined(),
                ReloadError::Configuration(_) | ReloadError::Rules(_) => error.to_string(),
            });
            return Err(warnings);
        }
        Ok(LoadedConfig { warnings, ..loaded })
    }

    fn history(&self) -> History {
        History::beside(&self.file.path)
    }

    /// The file as it is now.
    fn text(&self) -> io::Result<String> {
        Ok(config::read_text_file(&self.file.path, MAX_CONFIG_BYTES)?)
    }
}

impl std::fmt::Debug for AdminFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AdminFile").field(&self.file.path).finish()
    }
}

/// The etag as in a header, with quotes.
fn etag(text: &str) -> String {
    format!("\"{:032x}\"", fingerprint(text.as_bytes()))
}
