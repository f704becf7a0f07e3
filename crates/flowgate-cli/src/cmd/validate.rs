//! `flowgate validate`: says what is wrong with a configuration, and what looks wrong.

use std::path::PathBuf;
use std::process::ExitCode;

use flowgate_engine::config::{Loaded, Report};

use crate::configuration::{self, Environment};
use crate::terminal;

/// Check a configuration file
///
/// Reports every mistake at once, each with its place and a hint. Files that it includes, its lists and the
/// environment (FLOWGATE_...) are part of it, as they are when it is served. Warnings are about what works, but
/// hardly as meant; they do not change the exit code.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to check
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match configuration::load(Some(&args.file), &Environment::of_process()?) {
        Ok(Loaded { config, warnings, .. }) => {
            eprint!("{}", findings(&warnings));
            let (rules, lists) = (config.policy.rules.len(), config.lists.len());
            let summary =
                format!("{} is fine: {}, {}", args.file.display(), count(rules, "rule"), count(lists, "list"));
            terminal::print(&match warnings.warnings() {
                0 => format!("{summary}\n"),
                number => format!("{summary}, {}\n", count(number, "warning")),
            })?;
            Ok(ExitCode::SUCCESS)
        }
        Err(report) => {
            eprint!("{}", findings(&report));
            match report.warnings() {
                0 => eprintln!("{}", count(report.errors(), "mistake")),
                number => eprintln!("{}, {}", count(report.errors(), "mistake"), count(number, "warning")),
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The report, set apart from what follows.
fn findings(report: &Report) -> String {
    let text = report.render(terminal::color());
    if text.is_empty() { text } else { text + "\n" }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
