//! Recognises Koala's main configuration, which people give by mistake instead of the rule file that it names.

use flowgate_engine::front::{Report, quoted};

use super::piece::Piece;
use super::sections::lines;

/// The setting that names the rule file.
const RULE_FILE: &str = "rule_file";

/// Settings of every main configuration that no rule file has.
const SETTINGS: [&str; 3] = [RULE_FILE, "redis_server", "policy_loader_frequency"];

/// Reports a file that is Koala's main configuration, and returns whether it is one. Such a file has no sections. It
/// may hold a password, so the report shows no line but the one that names the rule file.
pub(super) fn refuse(report: &mut Report, file: Piece<'_>) -> bool {
    if lines(file).any(|line| line.text.starts_with('[')) {
        return false;
    }
    let settings = lines(file).filter_map(|line| line.split_once('=')).map(|(name, value)| (name.trim(), value.trim()));
    let known: Vec<_> = settings.filter(|(name, _)| SETTINGS.contains(&name.text)).collect();
    let rule_file = known.iter().find(|(name, value)| name.text == RULE_FILE && !value.text.is_empty());
    let Some((name, _)) = rule_file.or(known.first()) else { return false };
    let hint = match rule_file {
        Some((_, path)) => format!("give its rule file: {}", quoted(path.text)),
        None => "give its rule file, which has [dicts], [rules] and [result]".to_owned(),
    };
    let hint = format!("{hint}; docs/koala.md tells what becomes of the other settings");
    report.error(name.at(), "this is Koala's main configuration, not its rule file").hint(hint).done();
    true
}
