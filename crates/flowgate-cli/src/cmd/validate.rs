//! `flowgate validate`: says what is wrong with a configuration, and what looks wrong.

use std::path::PathBuf;
use std::process::ExitCode;

use flowgate_engine::config::{Input, Koala, LoadedConfig, Report, Tls};
use flowgate_koala::{KoalaFile, LoadedKoala};
use flowgate_server::{Certificates, TlsError};

use crate::configuration::{self, Environment};
use crate::{available_memory, terminal};

/// Check a configuration file
///
/// Reports every mistake at once, each with its place and a hint. Files that it includes, its lists and the
/// environment (FLOWGATE_...) are part of it, as they are when it is served; so are its certificates. Warnings are
/// about what works, but hardly as meant; they do not change the exit code. A Koala rule file is known by its
/// sections and checked as such.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to check
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file is a Koala rule file, whatever it looks like
    #[arg(long)]
    koala: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (summary, warnings) = match check(&args)? {
        Ok(checked) => checked,
        Err(report) => {
            eprint!("{}", findings(&report));
            match report.warnings() {
                0 => eprintln!("{}", count(report.errors(), "mistake")),
                number => eprintln!("{}, {}", count(report.errors(), "mistake"), count(number, "warning")),
            }
            return Ok(ExitCode::FAILURE);
        }
    };
    eprint!("{}", findings(&warnings));
    let summary = format!("{} is fine: {summary}", args.file.display());
    terminal::print(&match warnings.warnings() {
        0 => format!("{summary}\n"),
        number => format!("{summary}, {}\n", count(number, "warning")),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A summary of a valid file with its warnings, or the mistakes of a wrong one.
fn check(args: &Args) -> anyhow::Result<Result<(String, Report), Report>> {
    let environment = Environment::of_process()?;
    if args.koala || KoalaFile::is_at(&args.file) {
        let tz = environment.get("FLOWGATE_KOALA__TZ").map_or_else(|| Koala::default().tz, str::to_owned);
        return Ok(KoalaFile::load(Input::File(&args.file), &tz).map(|LoadedKoala { file, warnings, .. }| {
            (format!("{}, {}", count(file.number_of_rules(), "rule"), count(file.dicts(), "dict")), warnings)
        }));
    }
    Ok(configuration::load(Some(&args.file), &environment).and_then(|LoadedConfig { config, mut warnings, .. }| {
        if let Some(problem) = config.tls.as_ref().and_then(unusable) {
            warnings.add_error(problem);
            return Err(warnings);
        }
        if let Err(scarcity) = available_memory::check(&config) {
            warnings.add_warning(scarcity.to_string());
        }
        let mut summary =
            format!("{}, {}", count(config.policy.rules.len(), "rule"), count(config.lists.len(), "list"));
        if let Some(koala) = KoalaFile::from_config(&config) {
            summary += &format!(", {} of Koala", count(koala.number_of_rules(), "rule"));
        }
        Ok((summary, warnings))
    }))
}

/// The reason why a server would not start with these certificates. A file that this user cannot read gives a warning
/// only, because the server may run as another user.
fn unusable(files: &Tls) -> Option<String> {
    match Certificates::compile(files) {
        Ok(_) | Err(TlsError::Unreadable { .. }) => None,
        Err(error) => Some(format!("{:#}", anyhow::Error::new(error))),
    }
}

/// The report with an empty line behind it.
fn findings(report: &Report) -> String {
    let text = report.render(terminal::color());
    if text.is_empty() { text } else { text + "\n" }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
