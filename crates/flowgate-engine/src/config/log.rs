//! `[log]`: format, level, and which denials are logged.

use std::fmt;

use flowgate::Share;

use super::form;
use super::render::quoted;
use super::report::Report;
use super::section::{Keys, Section};
use super::tree::Node;
use super::value;

/// The log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The format of a line.
    pub format: LogFormat,
    /// The least important level that is written.
    pub level: LogLevel,
    /// The denials that get a line each.
    pub denials: Denials,
}

/// The format of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// The importance of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it all
pub enum LogLevel {
    Off,
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

/// The denials that are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Denials {
    /// None.
    #[default]
    Off,
    /// This share of them, up to all.
    Share(Share),
}

const FORMATS: [(&str, LogFormat); 2] = [("human", LogFormat::Human), ("json", LogFormat::Json)];
const LEVELS: [(&str, LogLevel); 6] = [
    ("off", LogLevel::Off),
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];

impl Section for Log {
    const NAME: &'static str = "log";

    fn visit(&mut self, keys: &mut Keys<'_, '_>) {
        keys.key("format", &mut self.format, form::word(&FORMATS));
        keys.key("level", &mut self.level, form::word(&LEVELS));
        keys.key("denials", &mut self.denials, form::text(denials));
    }
}

impl fmt::Display for Denials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denials::Off => f.write_str("off"),
            Denials::Share(Share::ALL) => f.write_str("all"),
            Denials::Share(share) => f.write_str(&share.as_percentage()),
        }
    }
}

fn denials(report: &mut Report, node: &Node) -> Option<Denials> {
    match value::text(report, node)? {
        "off" => Some(Denials::Off),
        "all" => Some(Denials::Share(Share::ALL)),
        text => {
            let share = text.parse().ok();
            if share.is_none() {
                let message = format!("expected \"off\", \"all\" or a share such as \"1%\", found {}", quoted(text));
                report.error(node.at, message).done();
            }
            share.map(Denials::Share)
        }
    }
}
