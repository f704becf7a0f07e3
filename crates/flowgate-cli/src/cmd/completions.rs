//! `flowgate completions`: what a shell needs to complete the command line.

use clap_complete::Shell;

use crate::terminal;

/// Print completions for a shell
///
/// For example, in bash: source <(flowgate completions bash)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut command: clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "flowgate", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))
}
