//! `flowgate import koala`.

use std::path::PathBuf;

use flowgate_engine::config::{Input, Koala};
use flowgate_koala::{KoalaFile, LoadedKoala};

use crate::terminal;

/// Print a Koala rule file as TOML
///
/// A peek by the TOML answers as Koala's browse, a record counts as its update; what cannot be said in TOML is said in
/// a comment and on standard error. Dicts stay in their files: those beneath the current directory have a path from it,
/// so keep the TOML here. To serve the file as it is, clients included, use
/// `flowgate serve --koala FILE`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The rule file
    #[arg(value_name = "RULEFILE")]
    file: PathBuf,
    /// The zone whose midnight ends a day
    #[arg(long, value_name = "ZONE", default_value_t = Koala::default().tz)]
    tz: String,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let LoadedKoala { file, warnings, .. } = KoalaFile::load(Input::File(&args.file), &args.tz)?;
    eprint!("{}", warnings.render(terminal::color()));
    for loss in file.inexpressible() {
        eprintln!("warning: {loss}");
    }
    // Most users keep the output in the current directory. If that directory is gone, paths are absolute.
    let here = std::env::current_dir().unwrap_or_default();
    terminal::print(&file.to_toml(&here))
}
