//! Names of rules, lists and actions: they become headers, metric labels and parts of keys.

use super::render::quoted;
use super::report::Report;
use super::source::Location;
use super::tree::Node;
use super::value;
use crate::rules::is_name;

/// The longest name that is still readable as a metric label.
const MAX_NAME_BYTES: usize = 128;

/// True if a text can be a name.
pub fn fits(text: &str) -> bool {
    is_name(text) && text.len() <= MAX_NAME_BYTES
}

/// Reads the name of a `what`.
pub(crate) fn read<'n>(report: &mut Report, node: &'n Node, what: &str) -> Option<&'n str> {
    let text = value::text(report, node)?;
    check(report, text, node.at, what).then_some(text)
}

/// Reports a text that cannot be the name of a `what`.
pub(crate) fn check(report: &mut Report, text: &str, at: Location, what: &str) -> bool {
    let fits = fits(text);
    if !fits {
        let message = format!("{} cannot be the name of {what}", quoted(text));
        let hint = match text.len() {
            0..=MAX_NAME_BYTES => "a name has letters, digits, _ . and - only".to_owned(),
            _ => format!("a name has at most {MAX_NAME_BYTES} characters"),
        };
        report.error(at, message).hint(hint).done();
    }
    fits
}
