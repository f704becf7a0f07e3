//! From files and variables to a configuration: read, join, overlay, convert, check.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::environment::{self, Flag};
use super::files::{self, MAX_CONFIG_BYTES};
use super::include::{self, FilePath};
use super::origin::Origin;
use super::report::Report;
use super::tree::Table;
use super::{Config, checks, secret, warnings};

/// Where a configuration comes from.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A file.
    File(&'a Path),
    /// A text that would be a file called `name` in the directory `base`.
    Text {
        /// The name in reports.
        name: &'a str,
        /// The directory of relative paths.
        base: &'a Path,
        /// The TOML.
        text: &'a str,
    },
    /// No file: the defaults, and the environment.
    Defaults,
}

/// A configuration that can be used.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: Config,
    /// The warnings. It holds no mistakes: a configuration with mistakes is not loaded.
    pub warnings: Report,
    /// The files that were read, including those of lists and secrets, and the directories of `include`. The
    /// configuration can only change if one of them changes.
    pub origins: Vec<Origin>,
}

/// Reads a configuration, with the variables of `environment` over it.
///
/// ```
/// use flowgate_engine::config::{Input, load};
///
/// let environment = [("FLOWGATE_SERVER__THREADS".to_owned(), "2".to_owned())];
/// let loaded = load(Input::Defaults, environment)?;
/// assert_eq!(loaded.config.server.threads, 2);
/// # Ok::<(), flowgate_engine::config::Report>(())
/// ```
///
/// # Errors
/// All mistakes that were found, each with its place, and [what they were found in](Report::origins).
pub fn load(input: Input<'_>, environment: impl IntoIterator<Item = (String, String)>) -> Result<LoadedConfig, Report> {
    load_with(input, environment, Options::default())
}

/// A rule file as its front has read it. The front is in another crate, so its type is not known here.
pub type RuleFile = Arc<dyn Any + Send + Sync>;

/// Reads the rule file at a path, whose days end at midnight in a time zone. Mistakes are reported.
pub type RuleFileReader = fn(&mut Report, &Path, &str) -> Option<RuleFile>;

/// How to read a configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Options of a command line, over the variables.
    pub flags: &'a [Flag],
    /// Reads the rule file that the configuration names for a front; without a reader the file is left alone.
    pub rule_file: Option<RuleFileReader>,
    /// The purpose.
    pub purpose: Purpose,
}

/// The purpose of a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A server on this machine: its certificates must exist.
    #[default]
    Serve,
    /// A look at its rules, perhaps on another machine.
    Study,
}

/// Like [`load`], with options.
///
/// # Errors
/// The same as for [`load`].
pub fn load_with(
    input: Input<'_>,
    environment: impl IntoIterator<Item = (String, String)>,
    options: Options<'_>,
) -> Result<LoadedConfig, Report> {
    let mut report = Report::default();
    let mut root = read(&mut report, input);
    environment::overlay(&mut report, &mut root, environment);
    environment::overlay_flags(&mut report, &mut root, options.flags);
    secret::hide(&mut report, &root);
    // After a mistake in the syntax, keys and sections are missing. Reports about them would hide the mistake itself.
    if report.has_errors() {
        return Err(sorted(report));
    }
    let (config, places) = Config::read(&mut report, &root, options.rule_file);
    if !report.has_errors() {
        checks::check(&mut report, &config, &places, &root);
        if options.purpose == Purpose::Serve {
            checks::check_certificates(&mut report, &config, &root);
        }
    }
    if report.has_errors() {
        return Err(sorted(report));
    }
    warnings::find(&mut report, &config, &places, &root);
    let origins = report.origins.to_vec();
    Ok(LoadedConfig { config, warnings: sorted(report), origins })
}

fn sorted(mut report: Report) -> Report {
    report.sort();
    report
}

/// The tree of the main file with those it includes.
fn read(report: &mut Report, input: Input<'_>) -> Table {
    let (main, text) = match input {
        Input::Defaults => return Table::default(),
        Input::Text { name, base, text } => {
            (FilePath { shown: name.into(), real: absolute(base).join(name) }, text.to_owned())
        }
        Input::File(path) => {
            let main = FilePath { shown: path.to_path_buf(), real: absolute(path) };
            match files::read(report, &main.real, MAX_CONFIG_BYTES) {
                Ok(text) => (main, text),
                Err(cause) => {
                    report.error_anywhere(format!("cannot read {}: {cause}", path.display())).done();
                    return Table::default();
                }
            }
        }
    };
    let mut root = main.parse(report, &text);
    include::join(report, &mut root, &main);
    root
}

/// Makes a path independent of later changes of the current directory.
pub fn absolute(path: &Path) -> PathBuf {
    // An empty path, which has no absolute form, stands for the current directory.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}
