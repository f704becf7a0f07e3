//! `[koala]`: a Koala rule file to serve. The crate `flowgate-koala` reads the file.

use std::path::PathBuf;

use flowgate::TimeZone;

use super::files;
use super::load::RuleFile;
use super::load::RuleFileReader;
use super::origin::Origin;
use super::render::quoted;
use super::report::Report;
use super::table_reader::TableReader;
use super::tree::Node;
use super::value;
use super::writer::Writer;

/// Koala compatibility.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Koala {
    /// The rule file; `None`: no Koala endpoints.
    pub rules: Option<PathBuf>,
    /// The zone whose midnight ends Koala's days.
    pub tz: String,
}

impl Default for Koala {
    fn default() -> Koala {
        Koala { rules: None, tz: "Asia/Shanghai".to_owned() }
    }
}

impl Koala {
    /// Reads the section, and by `reader` the rule file that it names: its mistakes are those of the configuration.
    pub(crate) fn read(
        report: &mut Report,
        mut fields: TableReader<'_>,
        reader: Option<RuleFileReader>,
    ) -> (Koala, Option<RuleFile>) {
        let mut koala = Koala::default();
        fields.read_into(report, "rules", &mut koala.rules, rule_file);
        fields.read_into(report, "tz", &mut koala.tz, zone);
        fields.finish(report);
        let file = match (koala.rules.as_deref(), reader) {
            (Some(path), Some(reader)) => reader(report, path, &koala.tz),
            _ => None,
        };
        (koala, file)
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.section("koala");
        out.path("rules", self.rules.as_deref());
        out.text("tz", &self.tz);
    }
}

fn rule_file(report: &mut Report, node: &Node) -> Option<Option<PathBuf>> {
    let path = value::path(report, node)?;
    if let Some(path) = &path
        && let Err(cause) = files::check(path)
    {
        // The watcher then notices when the file appears.
        report.add_origin(Origin::file(path, files::MAX_CONFIG_BYTES, None));
        return report.error(node.at, format!("cannot read {}: {cause}", path.display())).refuse();
    }
    Some(path)
}

fn zone(report: &mut Report, node: &Node) -> Option<String> {
    let name = value::text(report, node)?;
    if TimeZone::named(name).is_none() {
        let message = format!("expected the name of a time zone, found {}", quoted(name));
        return report.error(node.at, message).hint("such as \"Asia/Shanghai\" or \"UTC\"").refuse();
    }
    Some(name.to_owned())
}
