//! `flowgate config`: prints the effective configuration.

use std::path::PathBuf;

use crate::configuration::{self, Environment};
use crate::terminal;

/// Print the effective configuration as TOML, secrets hidden
///
/// That is the file, what it includes, the environment (FLOWGATE_SECTION__KEY) over it, and the defaults for the
/// rest. Without secrets the output can be used as a configuration itself.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The configuration file [default: $FLOWGATE_CONFIG, ./flowgate.toml, ~/.config/flowgate/flowgate.toml,
    /// /etc/flowgate/flowgate.toml; the defaults if there is none]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let file = configuration::find(args.config);
    file.iter().try_for_each(|file| configuration::refuse_foreign(file))?;
    let loaded = configuration::study(file.as_deref(), &Environment::of_process()?)?;
    let origin = file.map_or_else(|| "the defaults".to_owned(), |path| path.display().to_string());
    terminal::print(&format!("# {origin}, with the environment\n{}", loaded.config.to_toml()))
}
