//! Chooses the token that a command shows to a server.
//!
//! Rule       `--token-file`, else `FLOWGATE_TOKEN`. Commands for administrators also try the tokens that servers on
//!            this machine make for themselves: this user's and the system service's. These go to this machine only,
//!            never to another host. A command that asks for a decision shows no token unless it is given one.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use flowgate_engine::config::Secret;
use flowgate_server::admin_token;

use crate::state_directory;

/// The directory in which the unit of `packaging/systemd` lets the server keep its token.
const OF_SERVICE: &str = "/var/lib/flowgate";

/// The tokens to send, in this order, until the server accepts one.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    pub(crate) list: Vec<Secret>,
    /// The files of these tokens, in the same order. A token that the user gave has no file.
    pub(crate) files: Vec<PathBuf>,
    /// The files without a readable token, with the reason.
    unread: Vec<(PathBuf, io::Error)>,
}

impl Tokens {
    /// The tokens that the command line or the environment gives.
    ///
    /// # Errors
    /// When the file cannot be read, or is empty.
    pub(crate) fn given(file: Option<&Path>) -> anyhow::Result<Option<Tokens>> {
        let token = match file {
            Some(file) => {
                let text = fs::read_to_string(file).map_err(|error| anyhow!("{}", reason(file, &error)))?;
                if text.trim().is_empty() {
                    bail!("{} is empty", file.display());
                }
                text
            }
            None => env::var("FLOWGATE_TOKEN").unwrap_or_default(),
        };
        let token = token.trim();
        Ok((!token.is_empty()).then(|| Tokens { list: vec![Secret::new(token)], ..Tokens::default() }))
    }

    /// The tokens that servers on this machine have made.
    pub(crate) fn of_this_machine() -> Tokens {
        let mut directories: Vec<PathBuf> = state_directory::find().into_iter().collect();
        directories.push(OF_SERVICE.into());
        directories.dedup();
        Tokens::in_directories(&directories)
    }

    fn in_directories(directories: &[PathBuf]) -> Tokens {
        let mut tokens = Tokens::default();
        for path in directories.iter().map(|directory| admin_token::path_in(directory)) {
            match admin_token::read(&path) {
                Ok(token) => {
                    tokens.list.push(token);
                    tokens.files.push(path);
                }
                Err(error) => tokens.unread.push((path, error)),
            }
        }
        tokens
    }

    /// What to do if the server accepted no token.
    pub(crate) fn advice(&self) -> String {
        let is_there = |(_, error): &&(PathBuf, io::Error)| error.kind() != io::ErrorKind::NotFound;
        let unread: String =
            self.unread.iter().filter(is_there).map(|(path, error)| format!("; {}", reason(path, error))).collect();
        unread + "; give the token by FLOWGATE_TOKEN or --token-file (`flowgate token` prints it to the server's user)"
    }

    /// The reason why there is no token: a file exists and cannot be read, or else no server of this user has made a
    /// token.
    pub(crate) fn missing(&self) -> String {
        let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let (absent, unread): (Vec<_>, Vec<_>) = self.unread.iter().partition(|(_, error)| is_absent(error));
        if !unread.is_empty() {
            return unread.iter().map(|(path, error)| reason(path, error)).collect::<Vec<_>>().join("; ");
        }
        let looked: Vec<String> = absent.iter().map(|(path, _)| path.display().to_string()).collect();
        format!(
            "there is no admin token in {}\n\
             A server without auth.admin_token makes one at its first start, in the state directory of its user. If the \
             server runs as another user, ask as that user: sudo -u USER flowgate token",
            looked.join(" or ")
        )
    }
}

fn reason(path: &Path, error: &io::Error) -> String {
    let sudo = if error.kind() == io::ErrorKind::PermissionDenied { " (use sudo)" } else { "" };
    format!("cannot read {}: {error}{sudo}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_can_be_read_are_tried_in_order() {
        let parent = tempfile::tempdir().unwrap();
        let directories = ["one", "none", "two"].map(|name| parent.path().join(name));
        let made = [&directories[0], &directories[2]].map(|directory| admin_token::obtain(directory).unwrap());
        let found = Tokens::in_directories(&directories);
        assert_eq!(found.list, made);
        assert!(!found.advice().contains("cannot read"), "{}", found.advice());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = admin_token::path_in(directory.path());
        fs::write(&path, "").unwrap();
        let found = Tokens::in_directories(&[directory.path().to_owned()]);
        assert!(found.list.is_empty());
        assert!(found.advice().starts_with(&format!("; cannot read {}: it holds no token", path.display())));
        let denied = Tokens { unread: vec![(path, io::ErrorKind::PermissionDenied.into())], ..found };
        assert!(denied.advice().contains("permission denied (use sudo); give the token"), "{}", denied.advice());
    }
}
