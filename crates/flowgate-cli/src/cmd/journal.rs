//! `flowgate journal`: looks into the journal of durable counters.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use flowgate::{Clock, Time};
use flowgate_api::Millis;
use flowgate_journal::{Inspection, inspect};

use crate::render::{instant, roughly};
use crate::terminal;

/// Look into the journal of durable counters
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show what a journal holds: counters by algorithm, sizes, generations and damage
    ///
    /// Reveals no key, changes nothing, and works beside a running server. Exits with 1 if a part is damaged,
    /// if there is no journal, or if a server would refuse the directory because of its seed: the seed is missing,
    /// damaged, or belongs to another journal.
    Inspect {
        /// The directory: store.dir, or the state directory
        directory: PathBuf,
    },
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Command::Inspect { directory } = &args.command;
    let found = inspect(directory).with_context(|| format!("cannot inspect {}", directory.display()))?;
    terminal::print(&describe(directory, &found, Clock::System.now()))?;
    let is_sound = !found.files.is_empty() && found.report.damaged == 0 && found.refusal.is_none();
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(directory: &Path, found: &Inspection, now: Time) -> String {
    let Inspection { files, report, states, foreign, unknown, refusal } = found;
    let mut text = String::new();
    let mut line = |name: &str, value: String| _ = writeln!(text, "{name:<22} {value}");
    line("directory", directory.display().to_string());
    for (name, bytes) in files {
        line(name, format!("{bytes} bytes"));
    }
    match refusal {
        Some(refusal) => line("seed", format!("a server refuses this directory: {}", causes(refusal))),
        None if files.is_empty() => {}
        None => line("seed", "matches the journal".to_owned()),
    }
    if files.is_empty() {
        line("files", "none".to_owned());
        return text;
    }
    let generations: Vec<String> = report.generations.iter().map(u64::to_string).collect();
    let noun = if generations.len() == 1 { "number" } else { "numbers" };
    line("generations read", format!("{} ({noun} {})", generations.len(), generations.join(", ")));
    line("blocks", report.blocks.to_string());
    line("records", report.records.to_string());
    line("damaged parts", report.damaged.to_string());
    line("torn end", format!("{} bytes", report.torn_bytes));
    if let Some(written_at) = report.written_at {
        line("newest block", age(written_at, now));
    }
    line("stopped in order", if report.stopped { "yes" } else { "no" }.to_owned());
    for (name, count) in states {
        line(name, count.to_string());
    }
    line("records of bans", foreign.to_string());
    line("unknown records", unknown.to_string());
    text
}

/// An error and its causes: `cannot use /dir/seed for the counters: permission denied`.
fn causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// `2026-11-16 09:30:00Z (5m ago)`.
fn age(at: Time, now: Time) -> String {
    let shown = instant(Millis(at.as_nanos() / 1_000_000));
    if at > now {
        return format!("{shown} (ahead of this machine's clock by {})", roughly(at.since(now)));
    }
    format!("{shown} ({} ago)", roughly(now.since(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_block_is_shown_with_its_age() {
        let at = Time::from_secs(1_700_000_000);
        assert_eq!(age(at, Time::from_secs(1_700_000_300)), "2023-11-14 22:13:20Z (5m ago)");
        let ahead = age(at, Time::from_secs(1_699_996_400));
        assert_eq!(ahead, "2023-11-14 22:13:20Z (ahead of this machine's clock by 1h)");
    }
}
