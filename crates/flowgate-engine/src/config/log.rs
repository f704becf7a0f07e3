//! `[log]`: format, level, and which denials are logged.

use flowgate::Share;

use super::render::quoted;
use super::report::Report;
use super::table_reader::TableReader;
use super::tree::Node;
use super::value;
use super::writer::Writer;

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

impl Log {
    pub(crate) fn read(report: &mut Report, mut fields: TableReader<'_>) -> Log {
        let mut log = Log::default();
        fields.read_into(report, "format", &mut log.format, |report, node| value::word(report, node, &FORMATS));
        fields.read_into(report, "level", &mut log.level, |report, node| value::word(report, node, &LEVELS));
        fields.read_into(report, "denials", &mut log.denials, denials);
        fields.finish(report);
        log
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.section("log");
        out.text("format", value::word_of(&FORMATS, self.format));
        out.text("level", value::word_of(&LEVELS, self.level));
        let denials = match self.denials {
            Denials::Off => "off".to_owned(),
            Denials::Share(Share::ALL) => "all".to_owned(),
            Denials::Share(share) => share.as_percentage(),
        };
        out.text("denials", &denials);
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
