//! Recognises Flowgate's own configuration, which people give by mistake instead of Koala's rule file.

use flowgate_engine::config::Config;
use flowgate_engine::front::{Report, quoted};

use super::piece::Piece;
use super::sections::lines;

/// Reports a file that is a configuration of Flowgate, and returns whether it is one: its first line that is neither
/// blank nor a comment begins a section of a configuration or sets a key. The report shows no line, because a line may
/// hold a secret.
pub(super) fn refuse(report: &mut Report, name: &str, file: Piece<'_>) -> bool {
    let first = lines(file).find(|line| !line.text.is_empty() && !line.text.starts_with('#'));
    if !first.is_some_and(|line| begins_configuration(line.text)) {
        return false;
    }
    let message = format!("{} is a configuration of Flowgate, not a Koala rule file", quoted(name));
    let hint = "serve it by --config; a Koala rule file has [dicts], [rules] and [result]";
    report.error_anywhere(message).hint(hint).done();
    true
}

/// Whether a line is `[[rule]]`, `[listen]`, `store.type = ..` or another beginning of a configuration.
fn begins_configuration(line: &str) -> bool {
    if line.starts_with("[[rule]]") {
        return true;
    }
    let name = match line.strip_prefix('[') {
        Some(section) => section.split(']').next(),
        None => line.split_once('=').map(|(key, _)| key),
    };
    let Some(name) = name.and_then(|name| name.split('.').next()).map(str::trim) else { return false };
    let is_section = |(setting, _): &(String, String)| setting.split('.').next() == Some(name);
    ["lists", "tls"].contains(&name)
        || !line.starts_with('[') && ["include", "rule"].contains(&name)
        || Config::default().settings().iter().any(is_section)
}
