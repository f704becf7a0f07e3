//! The `flowgate` binary: reads the command line and hands over to one module per command.

mod available_memory;
mod client;
mod cmd;
mod configuration;
mod logging;
mod render;
mod settings;
mod signals;
mod state_directory;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use flowgate_api::Operation;
use flowgate_engine::config::Report;

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
    /// Ask a running server whether a request may happen now, and count it
    Take(cmd::decide::Args),
    /// Ask a running server whether a request would pass; changes nothing
    Peek(cmd::decide::Args),
    Explain(cmd::explain::Args),
    Ban(cmd::ban::Args),
    Unban(cmd::ban::UnbanArgs),
    Pause(cmd::pause::Args),
    Resume(cmd::pause::ResumeArgs),
    /// Let a running server forget what it has counted for a request's subjects, bans by rules included
    Reset(cmd::decide::Args),
    Token(cmd::token::Args),
    Journal(cmd::journal::Args),
    Completions(cmd::completions::Args),
    Import(cmd::import::Args),
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  it failed; the reason is on standard error
  2  the command line is wrong
  3  take, peek: denied";

fn main() -> ExitCode {
    let success = |()| ExitCode::SUCCESS;
    let done = match Cli::parse().command {
        Command::Serve(args) => cmd::serve::run(args).map(success),
        Command::Validate(args) => cmd::validate::run(args),
        Command::Config(args) => cmd::config::run(args).map(success),
        Command::Replay(args) => cmd::replay::run(args).map(success),
        Command::Take(args) => cmd::decide::run(&args, Operation::Take),
        Command::Peek(args) => cmd::decide::run(&args, Operation::Peek),
        Command::Explain(args) => cmd::explain::run(&args).map(success),
        Command::Ban(args) => cmd::ban::run(&args).map(success),
        Command::Unban(args) => cmd::ban::run_unban(&args).map(success),
        Command::Pause(args) => cmd::pause::run(&args).map(success),
        Command::Resume(args) => cmd::pause::run_resume(&args).map(success),
        Command::Reset(args) => cmd::decide::run(&args, Operation::Reset),
        Command::Token(args) => cmd::token::run(&args).map(success),
        Command::Journal(args) => cmd::journal::run(&args),
        Command::Completions(args) => cmd::completions::run(&args, Cli::command()).map(success),
        Command::Import(args) => cmd::import::run(args).map(success),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            match error.downcast_ref::<Report>() {
                Some(report) => eprint!("{}", report.render(terminal::color())),
                None => eprintln!("error: {error:#}"),
            }
            ExitCode::FAILURE
        }
    }
}
