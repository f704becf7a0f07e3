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

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use flowgate::{Span, Time};
use flowgate_engine::config::{
    self, Config, Input, LoadedConfig, MAX_CONFIG_BYTES, Report, fingerprint, hide_secrets, restore_secrets,
};
use flowgate_engine::front::{absolute, directory};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::author::Author;
use crate::lock::Lock;
use crate::reload::{ReloadError, ReloadStatus, Reloader};
use history::{History, Origin};

/// A file whose last change is this old cannot change again within one tick of the file system's clock.
const SETTLED: Span = Span::from_secs(3);

/// The number of versions that are kept.
pub const MAX_VERSIONS: usize = 20;

/// The most bytes of the note of a version.
pub(crate) const MAX_NOTE_BYTES: usize = 1_024;

/// Loads a configuration the way the server loads its own.
pub type Loader = dyn Fn(Input<'_>) -> Result<LoadedConfig, Report> + Send + Sync;

/// The file, how to load it, and how to put it in force.
pub struct RulesFile {
    /// The path of the file.
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
    /// The modification time, the length and the etag of the file when it was read last.
    disk: Lock<Option<((SystemTime, u64), String)>>,
}

/// The right to change the file, which one caller has at a time.
#[derive(Debug)]
pub(crate) struct Turn {
    author: Author,
    #[expect(dead_code, reason = "held until the change is made")]
    guard: OwnedMutexGuard<()>,
}

/// The file's text as it is on disk.
#[derive(Debug)]
pub(crate) struct FileText {
    pub(crate) text: Text,
    pub(crate) state: FileState,
}

/// What the server made of the text that is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    /// The rules in force are those of this text.
    InForce,
    /// The last attempt to load this text failed. Older rules are in force.
    Wrong,
    /// The file has changed since the last attempt. It may be half-written.
    Changing,
}

/// The text with hidden secrets, and its etag.
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
    /// The text has one of these etags.
    Etags(Vec<String>),
}

impl AdminFile {
    pub(crate) fn new(file: RulesFile) -> AdminFile {
        AdminFile { file, changing: Arc::default(), disk: Lock::default() }
    }

    /// Waits until no other caller changes the file.
    pub(crate) async fn turn(&self, author: Author) -> Turn {
        Turn { author, guard: Arc::clone(&self.changing).lock_owned().await }
    }

    /// The file as it is on disk. An editor that writes in place may be halfway, so the text has a sign until the
    /// reloader, which waits for a file to settle, has read the same bytes.
    pub(crate) fn read(&self) -> io::Result<FileText> {
        let text = self.text()?;
        let ReloadStatus { read, failing_since, .. } = self.reload_status();
        let state = match failing_since {
            _ if read != Some(fingerprint(text.as_bytes())) => FileState::Changing,
            Some(_) => FileState::Wrong,
            None => FileState::InForce,
        };
        Ok(FileText { text: Text { etag: etag(&text), text: hide_secrets(&text) }, state })
    }

    /// The name of the file, without directories.
    pub(crate) fn name(&self) -> String {
        self.file.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Where paths in the file start.
    pub(crate) fn directory(&self) -> PathBuf {
        directory(&absolute(&self.file.path))
    }

    /// How the attempts to load the file again went.
    pub(crate) fn reload_status(&self) -> ReloadStatus {
        self.file.reloader.status()
    }

    /// The etag of the file as it is on disk; `None`: it cannot be read. The file is read only if it has changed.
    pub(crate) async fn disk_etag(self: &Arc<AdminFile>, now: Time) -> Option<String> {
        let file = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || file.disk_state(now)).await;
        read.ok().flatten()
    }

    fn disk_state(&self, now: Time) -> Option<String> {
        let metadata = fs::metadata(&self.file.path).ok()?;
        let modified = metadata.modified().ok()?;
        let look = (modified, metadata.len());
        let mut known = self.disk.lock();
        if let Some((known, etag)) = &*known
            && *known == look
        {
            return Some(etag.clone());
        }
        let etag = etag(&self.text().ok()?);
        // A file that has just changed may change again within a tick of the file system's clock.
        let age = now.since(Time::EPOCH + Span::from(modified.duration_since(UNIX_EPOCH).unwrap_or_default()));
        *known = (age >= SETTLED).then(|| (look, etag.clone()));
        Some(etag)
    }

    /// Loads a text in place of the file, and changes nothing.
    pub(crate) fn check(&self, text: &str) -> Result<LoadedConfig, Report> {
        let old = self.text().unwrap_or_default();
        self.load(&restore_secrets(text, &old))
    }

    /// The settings of a configuration that only a restart would put in force.
    pub(crate) fn restart_needed(&self, config: &Config) -> Vec<&'static str> {
        self.file.reloader.restart_needed(config)
    }

    /// Loads the file as it is, and changes nothing.
    pub(crate) fn check_file(&self) -> Result<Result<LoadedConfig, Report>, WriteError> {
        Ok(self.load(&self.text()?))
    }

    /// Writes a text and puts it in force.
    pub(crate) fn write(
        &self,
        turn: Turn,
        text: &str,
        expected: &Precondition,
        note: Option<&str>,
    ) -> Result<WriteReport, WriteError> {
        let old = self.expected_text(expected)?;
        let origin = turn.author.clone().into();
        self.put(turn, &restore_secrets(text, &old), &old, note, &origin)
    }

    /// Writes the text of an older version as a new one.
    pub(crate) fn roll_back(
        &self,
        turn: Turn,
        version: u64,
        expected: &Precondition,
        note: Option<&str>,
    ) -> Result<WriteReport, WriteError> {
        let text = self.history().read(version)?.ok_or(WriteError::NoSuchVersion)?;
        let old = self.expected_text(expected)?;
        let origin = Origin { author: turn.author.clone(), restores: Some(version) };
        self.put(turn, &text, &old, note, &origin)
    }

    /// The text of a version with hidden secrets, and its etag.
    pub(crate) fn version(&self, version: u64) -> Result<Text, WriteError> {
        let text = self.history().read(version)?.ok_or(WriteError::NoSuchVersion)?;
        Ok(Text { etag: etag(&text), text: hide_secrets(&text) })
    }

    /// The text of the file, if it is the one that an author expects.
    fn expected_text(&self, expected: &Precondition) -> Result<String, WriteError> {
        let text = self.text()?;
        match expected {
            Precondition::Etags(etags) if !etags.contains(&etag(&text)) => Err(WriteError::Changed),
            _ => Ok(text),
        }
    }

    /// The versions that are kept, newest first.
    pub(crate) fn versions(&self) -> io::Result<Vec<flowgate_api::Version>> {
        self.history().list()
    }

    fn put(
        &self,
        turn: Turn,
        text: &str,
        old: &str,
        note: Option<&str>,
        origin: &Origin,
    ) -> Result<WriteReport, WriteError> {
        let loaded = self.load(text).map_err(WriteError::Wrong)?;
        let history = self.history();
        // If the text is not the newest version, another program has written it.
        history.keep(old, None, &Author::FILE.into())?;
        // The checks took a while. The time between this comparison and the rename is as short as possible.
        if self.text()? != old {
            return Err(WriteError::Changed);
        }
        // The version is kept before the file is replaced. If that fails, the file is as it was, though the oldest
        // version is gone.
        let version = history.keep(text, note, origin)?;
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
