//! Gives a server an admin token of its own if the configuration has none.

use std::path::PathBuf;

use flowgate_engine::config::{Config, ListenAddress, Secret};
use flowgate_server::{Server, admin_token};

use crate::state_directory;

/// A token that this server, or an earlier one, has made.
pub(super) struct MadeToken {
    pub(super) file: PathBuf,
    pub(super) token: Secret,
}

/// Reads or makes the token. If no directory can hold the file, the server logs a warning and
/// starts without a token: it then refuses every admin request over HTTP.
pub(super) fn provide(server: &Server, config: &Config) -> Option<MadeToken> {
    if config.auth.admin_token.is_some() || server.listening.http == ListenAddress::Off {
        return None;
    }
    let Some(directory) = state_directory::find() else {
        warn("STATE_DIRECTORY, XDG_STATE_HOME and HOME are not set");
        return None;
    };
    let path = admin_token::path_in(&directory);
    match admin_token::obtain(&directory) {
        Ok(token) => {
            server.set_admin_token(token.clone());
            Some(MadeToken { file: path, token })
        }
        Err(error) => {
            warn(&format!("{}: {error}", path.display()));
            None
        }
    }
}

fn warn(reason: &str) {
    tracing::warn!("the admin API is closed: its token cannot be kept ({reason}); set auth.admin_token_file");
}
