//! `flowgate token`: prints the admin token that a server on this machine has made.

use anyhow::bail;

use crate::client::Tokens;
use crate::terminal;

/// Print the admin token that a server of this user, or the system service, has made
///
/// A server without `auth.admin_token` makes one at its first start and keeps it in its state directory:
/// $STATE_DIRECTORY, else $XDG_STATE_HOME/flowgate, else ~/.local/state/flowgate. That of the system service is in
/// /var/lib/flowgate, and takes sudo to read. The commands that ask a server on this machine find the token by
/// themselves; others send it as `Authorization: Bearer TOKEN`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> anyhow::Result<()> {
    let tokens = Tokens::of_this_machine();
    let Some(token) = tokens.list.first() else {
        bail!("{}", tokens.missing());
    };
    terminal::print(&format!("{}\n", token.expose()))?;
    if let [printed, other, ..] = &*tokens.files {
        eprintln!("note: this is the token in {}; another one is in {}", printed.display(), other.display());
    }
    Ok(())
}
