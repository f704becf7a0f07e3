//! The `flowgate` binary: reads the command line and hands over to one module per command.

mod cmd;
mod configuration;
mod logging;
mod signals;
mod terminal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Decides, for any event, whether it may happen now.
#[derive(Debug, Parser)]
#[command(name = "flowgate", version = env!("FLOWGATE_VERSION"), after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(cmd::serve::Args),
    Validate(cmd::validate::Args),
    Config(cmd::config::Args),
    Replay(cmd::replay::Args),
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  it failed; the reason is on standard error
  2  the command line is wrong";

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(args) => cmd::serve::run(args),
        Command::Validate(args) => cmd::validate::run(args),
        Command::Config(args) => cmd::config::run(args),
        Command::Replay(args) => cmd::replay::run(args),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
