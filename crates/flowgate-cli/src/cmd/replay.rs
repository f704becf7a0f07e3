//! `flowgate replay`: tries rules on recorded traffic.

mod progress;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use flowgate::Span;
use flowgate_engine::config::parse_duration;
use flowgate_replay::{DecisionWriter, Format, Job, Names, Replay, ReplayError, Source, Summary, report};
use progress::Bar;

use crate::configuration::{self, Environment};
use crate::terminal;

/// Try rules on recorded traffic: what would they have done?
///
/// Reads traces in virtual time: each request is decided at the time that its line gives, by the same engine that
/// serves. A trace is an access log (common or combined) or JSON lines such as
/// {"ts": 1700000000.25, "fields": {"user": "42"}}; plain or gzip, of any size. Access logs give the fields that a
/// gateway gives: ip, method, path, query.NAME, header.user-agent (also called ua), header.referer, and host where
/// lines begin with the virtual host; besides these user and status. Lines that cannot be read are skipped, counted
/// and, the first few, shown.
///
/// Servers log a request when it ends, so lines are put in the order of their times first.
///
/// A report shows the traffic over time, which subjects are hit hardest, and what other counts would have done.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The configuration whose rules to try [default: as for serve]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Traces to replay, - for standard input; give several in the order of their times
    #[arg(long, value_name = "TRACE", num_args = 1.., required_unless_present = "traces")]
    input: Vec<PathBuf>,
    /// The same without --input
    #[arg(value_name = "TRACE", conflicts_with = "input")]
    traces: Vec<PathBuf>,
    /// How the traces are written [default: told from their first lines]
    #[arg(long, value_parser = format())]
    format: Option<Format>,
    /// How late a line may come and still be put in the order of its time; 0s for lines in order
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = window)]
    reorder: Span,
    /// Write every decision as a line of JSON, - for standard output
    #[arg(long, value_name = "FILE")]
    decisions: Option<PathBuf>,
    /// Write a report: one HTML page that needs nothing else
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Tell for each limit the count that would leave nearly all subjects alone; a report tells it, too
    #[arg(long)]
    advice: bool,
    /// Another configuration, to see what would change for whom
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  flowgate replay --config flowgate.toml --input access.log --report report.html
  zcat $(ls -vr access.log.*.gz) | flowgate replay --config flowgate.toml --input -     # rotated logs, oldest first
  flowgate replay --config now.toml --compare next.toml --input monday.log.gz tuesday.log.gz";

/// Reads the value of `--format`.
fn format() -> impl TypedValueParser<Value = Format> {
    let named = |name: String| Format::ALL.into_iter().find(|format| format.name() == name).ok_or("no such format");
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(named)
}

fn window(text: &str) -> Result<Span, &'static str> {
    let length = parse_duration(text).ok_or("expected a time such as 60s, 5m or 1h, at most 366 days")?;
    Ok(length.into())
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let file = configuration::find(args.config.clone());
    file.iter().chain(&args.compare).try_for_each(|file| configuration::refuse_foreign(file))?;
    let environment = Environment::of_process()?;
    let config = configuration::study(file.as_deref(), &environment)?.config;
    let other = args.compare.as_deref().map(|file| configuration::study(Some(file), &environment)).transpose()?;
    let other = other.map(|loaded| loaded.config);
    if [Some(&config), other.as_ref()].into_iter().flatten().all(|config| config.policy.rules.is_empty()) {
        anyhow::bail!("{}, so there is no rule to try: give --config FILE", without_rules(file.as_deref()));
    }
    let sources: Vec<Source> = args.input.iter().chain(&args.traces).map(|path| Source::new(path)).collect();
    let mut decisions = args.decisions.as_deref().map(create).transpose()?;
    // The file is opened before the traces are read, so an unwritable path fails early. Its old content stays until
    // the report is written.
    let report = args.report.as_deref().map(report_file).transpose()?;
    let job = Job {
        config: &config,
        compare: other.as_ref(),
        what_if: report.is_some() || args.advice,
        decisions: decisions.as_mut().map(|out| DecisionWriter::new(out, sources.len())),
        reorder: args.reorder,
    };
    let mut replay = Replay::new(job)?;
    let outcome = read(&mut replay, &sources, args.format);
    let policy = file.as_ref().map_or_else(|| "the defaults".to_owned(), |path| path.display().to_string());
    let compare = args.compare.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let names = Names { traces: sources.iter().map(Source::name).collect(), policy, compare };
    let (summary, finished) = replay.finish(names);
    let outcome = outcome.and(finished);
    if matches!(&outcome, Err(ReplayError::Decisions(error)) if error.kind() == io::ErrorKind::BrokenPipe) {
        // The reader of the decisions, such as `head`, has closed the pipe and wants no more of them.
        return Ok(());
    }
    if !shows_warnings(&summary, &args) {
        for warning in summary.warnings() {
            eprintln!("warning: {warning}");
        }
    }
    if let Some(out) = &mut decisions {
        out.flush().context("cannot write the decisions")?;
    }
    if let Some((path, mut out)) = report {
        let written = out.write_all(report::page(&summary).as_bytes()).and_then(|()| out.flush());
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    if summary.lines > 0 {
        print(&summary, &args)?;
    }
    outcome?;
    match summary.lines {
        0 => anyhow::bail!("there is nothing to replay in {}", summary.traces.join(", ")),
        lines if lines == summary.skipped => anyhow::bail!("no line could be read"),
        _ => Ok(()),
    }
}

fn without_rules(file: Option<&Path>) -> String {
    match file {
        Some(file) => format!("{} has no rules", file.display()),
        None => "no configuration was found".to_owned(),
    }
}

fn read(replay: &mut Replay<'_>, sources: &[Source], format: Option<Format>) -> Result<(), ReplayError> {
    let mut bar = Bar::new(sources.len());
    for source in sources {
        bar.next();
        replay.read(source, format, &mut |progress| {
            bar.show(progress);
            ControlFlow::Continue(())
        })?;
    }
    Ok(())
}

fn create(path: &Path) -> anyhow::Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufWriter::with_capacity(1 << 16, io::stdout().lock())));
    }
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Box::new(BufWriter::with_capacity(1 << 20, file)))
}

fn report_file(path: &Path) -> anyhow::Result<(&Path, LateFile)> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    Ok((path, LateFile { file: file.with_context(|| format!("cannot write {}", path.display()))?, has_begun: false }))
}

/// A file that keeps its old content until the first write to it.
struct LateFile {
    file: File,
    has_begun: bool,
}

impl Write for LateFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.has_begun && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.has_begun = true;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Whether the person who reads standard error also sees the printed summary, which contains the warnings.
fn shows_warnings(summary: &Summary, args: &Args) -> bool {
    summary.lines > 0 && !args.json && (is_on_stderr(args) || io::stdout().is_terminal())
}

/// Whether the summary goes to standard error, because the decisions go to standard output.
fn is_on_stderr(args: &Args) -> bool {
    args.decisions.as_deref() == Some(Path::new("-"))
}

/// Prints the summary on standard output, or on standard error if the decisions go to standard output.
fn print(summary: &Summary, args: &Args) -> anyhow::Result<()> {
    let text = if args.json { serde_json::to_string_pretty(summary)? + "\n" } else { summary.text() };
    if is_on_stderr(args) {
        eprint!("{text}");
        return Ok(());
    }
    terminal::print(&text)?;
    match &args.report {
        _ if args.json => Ok(()),
        Some(report) => terminal::print(&format!("\nthe report is in {}\n", report.display())),
        None if args.advice || args.decisions.is_some() => Ok(()),
        None => terminal::print("\n--advice tells which counts would leave nearly everybody alone\n"),
    }
}
