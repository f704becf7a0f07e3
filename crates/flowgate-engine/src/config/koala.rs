//! `[koala]`: a Koala rule file to serve. The crate `flowgate-koala` reads the file.

use std::path::PathBuf;

use flowgate::TimeZone;

use super::files;
use super::form::{self, Form};
use super::origin::Origin;
use super::render::quoted;
use super::report::Report;
use super::section::{Keys, Section};
use super::tree::Node;
use super::value;

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

impl Section for Koala {
    const NAME: &'static str = "koala";

    fn visit(&mut self, keys: &mut Keys<'_, '_>) {
        keys.key("rules", &mut self.rules, Form { read: Box::new(rule_file), ..form::path() });
        keys.key("tz", &mut self.tz, form::text(zone));
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
