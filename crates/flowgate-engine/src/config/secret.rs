//! Secrets: given as a value or as a file that holds it, and never shown.

use std::fmt;

use super::comments;
use super::files;
use super::render::{HIDDEN, quoted};
use super::report::Report;
use super::source::{Location, SourceId};
use super::table_reader::TableReader;
use super::tree::{Node, Table, Value};
use super::value;

/// A text that `Debug` hides.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text, to compare or to send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// A secret and its place.
pub(crate) struct PlacedSecret {
    pub(crate) text: String,
    pub(crate) at: Location,
}

/// Reads `key`, or the file that `key_file` names. An empty value counts as absent, so that the documented default can
/// stand beside the file.
pub(crate) fn read(
    report: &mut Report,
    fields: &mut TableReader<'_>,
    key: &'static str,
    key_file: &'static str,
) -> Option<PlacedSecret> {
    let value = fields.entry(key);
    let file = fields.entry(key_file);
    let given = value.and_then(|entry| {
        let text = match &entry.node.value {
            Value::String(text) | Value::Untyped(text) => text.clone(),
            other => {
                // The usual hint would repeat the secret.
                let message = format!("expected text, found {}", other.kind());
                return report.error(entry.node.at, message).hint("put it in quotes").refuse();
            }
        };
        (!text.is_empty()).then_some(PlacedSecret { text, at: entry.node.at })
    });
    match (given, file) {
        (Some(_), Some(file)) => {
            let message = format!("{} and {} exclude each other", quoted(key), quoted(key_file));
            let hint = "keep one of the two";
            // Both entries exist in this arm.
            let other = value.map_or(file.key_at, |entry| entry.key_at);
            report.error(file.key_at, message).hint(hint).place("the value is given at", other).refuse()
        }
        (given, None) => given,
        (None, Some(file)) => from_file(report, &file.node),
    }
}

fn from_file(report: &mut Report, node: &Node) -> Option<PlacedSecret> {
    let path = value::path(report, node)??;
    match files::read(report, &path, MAX_SECRET_BYTES) {
        Ok(text) => {
            let text = text.strip_suffix('\n').map_or(text.as_str(), |rest| rest.strip_suffix('\r').unwrap_or(rest));
            if text.is_empty() {
                let hint = "an empty secret would let every client in; put the secret into the file";
                return report.error(node.at, format!("the file {} is empty", path.display())).hint(hint).refuse();
            }
            Some(PlacedSecret { text: text.to_owned(), at: node.at })
        }
        Err(cause) => report.error(node.at, format!("cannot read {}: {cause}", path.display())).refuse(),
    }
}

const MAX_SECRET_BYTES: u64 = 64 << 10;

/// The most secrets whose repetitions are searched for; a real configuration has fewer.
const MAX_KNOWN_SECRETS: usize = 100;

/// Reports a hidden secret that was copied from the output of `flowgate config`.
pub(crate) fn refuse_hidden(report: &mut Report, text: &str, at: Location) -> bool {
    let hidden = text == HIDDEN;
    if hidden {
        let hint = "`flowgate config` hides secrets; write the secret itself, or name its file";
        report.error(at, "this secret is hidden").hint(hint).done();
    }
    hidden
}

/// The secret, unless it was copied from the output of `flowgate config`, which is reported.
pub(crate) fn accept(report: &mut Report, given: PlacedSecret) -> Option<Secret> {
    (!refuse_hidden(report, &given.text, given.at)).then(|| Secret::new(given.text))
}

/// Hides secrets of files and of the environment in all later reports, also those under mistyped names.
pub(crate) fn hide(report: &mut Report, root: &Table) {
    for (key, node) in places(root) {
        if is_secret(&key) {
            hide_node(report, node);
        }
        hide_password(report, node);
    }
}

/// Hides every comment that may hold a secret: one that repeats or names a secret, stands behind a secret on its line,
/// or in `[auth]`.
pub(crate) fn hide_comments(report: &mut Report, source: SourceId, root: &Table) {
    let text = report.sources.get(source).text.to_owned();
    let mut ends: Vec<usize> = report.sources.get(source).secrets.iter().map(|secret| secret.end).collect();
    ends.sort_unstable();
    let mut known: Vec<&str> = Vec::new();
    for (key, node) in places(root) {
        let Value::String(value) = &node.value else { continue };
        if is_secret(&key) {
            known.push(value);
        } else if let Some((login, _)) = value.rsplit_once('@') {
            known.extend(login.rsplit(':').next());
        }
    }
    known.truncate(MAX_KNOWN_SECRETS);
    let sections = comments::auth_sections(&text);
    for comment in comments::find(&text) {
        let section = sections.partition_point(|section| section.start <= comment.start).checked_sub(1);
        let is_in_auth = section.is_some_and(|index| sections[index].contains(&comment.start));
        let before = ends.partition_point(|end| *end <= comment.start).checked_sub(1);
        let is_behind = before.is_some_and(|index| !text[ends[index]..comment.start].contains('\n'));
        if is_in_auth || is_behind || comments::may_hold_secret(&text[comment.clone()], &known) {
            report.sources.hide(Location::new(source, comment));
        }
    }
}

/// All values that are secrets or may hold one, with their keys: `["auth", "api_token"]`, with a number for an element
/// of a list. Rules and lists hold none.
pub(crate) fn places(root: &Table) -> Vec<(Vec<String>, &Node)> {
    let mut places = Vec::new();
    for entry in root.entries.iter().filter(|entry| !["rule", "lists", "include"].contains(&entry.key.as_str())) {
        add_places(&mut places, vec![entry.key.clone()], &entry.node);
    }
    places
}

/// By mistake, a secret may stand deeper than any setting. The parser bounds the depth.
fn add_places<'a>(places: &mut Vec<(Vec<String>, &'a Node)>, key: Vec<String>, node: &'a Node) {
    let within = |name: String| [&key[..], &[name]].concat();
    match &node.value {
        Value::Table(table) => {
            return table.entries.iter().for_each(|entry| add_places(places, within(entry.key.clone()), &entry.node));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| add_places(places, within(index.to_string()), item));
        }
        _ => {}
    }
    places.push((key, node));
}

/// True if the name of a key is that of a secret.
fn is_secret(key: &[String]) -> bool {
    let is_in_auth = key.len() > 1 && key[0].eq_ignore_ascii_case("auth");
    let is_open = key.last().is_some_and(|name| is_open_name(name));
    !is_open && (is_in_auth || key.iter().any(|name| is_secret_name(name)))
}

/// True if the value of a key of `[auth]` is not a secret.
fn is_open_name(name: &str) -> bool {
    name == "insecure" || name.ends_with("_file")
}

/// Hides the text after the name of a secret, line by line: with wrong syntax the tree may lack it.
pub(crate) fn hide_lines(report: &mut Report, source: SourceId) {
    let text = report.sources.get(source).text.to_owned();
    let (mut start, mut is_in_auth, mut is_value) = (0, false, false);
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        let mut from = 0;
        if content.trim_start().starts_with('[') && !is_value {
            is_in_auth = content.trim_start_matches(['[', ' ', '\t', '"', '\'']).starts_with("auth");
            // By mistake a setting may stand behind the name of its section.
            from = content.find(']').map_or(content.len(), |end| end + 1);
            from = content.len() - content[from..].trim_start_matches([']', ' ', '\t']).len();
        }
        if from > 0 && content[from..].is_empty() {
            is_value = false;
        } else if let Some(at) = secret_in_line(&content[from..], is_in_auth, is_value) {
            let at = from + at;
            report.sources.hide(Location::new(source, start + at..start + content.len()));
            // The value may stand in the next line.
            is_value = content[at..].is_empty();
        } else {
            is_value = false;
        }
        // Without closing quotes, comments cannot be told from values.
        if let Some(sign) = content.find('#')
            && comments::may_hold_secret(&content[sign + 1..], &[])
        {
            report.sources.hide(Location::new(source, start + sign + 1..start + content.len()));
        }
        start += line.len();
    }
}

/// The place in a line where a secret may begin. `is_value`: the line before ends with the name of a secret.
fn secret_in_line(line: &str, is_in_auth: bool, is_value: bool) -> Option<usize> {
    let indent = line.len() - line.trim_start().len();
    if is_value {
        return Some(indent);
    }
    let value_at = |at: usize| {
        line.len() - line[at..].trim_start_matches(|char: char| char.is_whitespace() || "=:".contains(char)).len()
    };
    let is_name = |char: char| char.is_alphanumeric() || "_-.\"'".contains(char);
    let end = line[indent..].find(|char| !is_name(char)).map_or(line.len(), |length| indent + length);
    let name = line[indent..end].trim_matches(['"', '\'']);
    if is_in_auth && !is_secret_name(name) && !line.contains(['=', ':']) {
        // A value without its name.
        return Some(indent);
    }
    if !name.is_empty() && !is_open_name(name) && (is_in_auth || is_secret_name(name)) {
        return Some(value_at(end));
    }
    let may_hold_login = line_may_hold_login(line);
    let follows_name = |at: &usize| {
        let name = line[..*at].trim_end();
        may_hold_login || is_secret_name(name) && !name.ends_with("_file")
    };
    // Some write `:` for `=`.
    line.match_indices(['=', ':']).map(|(at, _)| at).find(follows_name).map(value_at)
}

/// The bytes at the end of a text in which a name is looked for.
const MAX_NAME_BYTES: usize = 256;

/// True if a text is, or ends with, a key that sounds like a secret.
fn is_secret_name(text: &str) -> bool {
    // No key of the configuration is longer, so only the end of the text is searched, however long the line is.
    let text = &text[text.floor_char_boundary(text.len().saturating_sub(MAX_NAME_BYTES))..];
    let key = text.rsplit(|char: char| !char.is_alphanumeric() && char != '_' && char != '-').next().unwrap_or(text);
    let key = key.to_ascii_lowercase();
    ["password", "passwd", "passphrase", "token", "secret"].iter().any(|word| key.contains(word))
}

/// An address is shown unless it holds a password.
fn hide_password(report: &mut Report, node: &Node) {
    let is_login = match &node.value {
        // The address may be written with escapes.
        Value::String(text) => may_hold_login(text) || may_hold_login(report.sources.written(node.at)),
        Value::Array(_) => false,
        _ => may_hold_login(report.sources.written(node.at)),
    };
    if is_login {
        hide_node(report, node);
    }
}

/// True if a text may be an address with a password, before its host or among its parameters.
fn may_hold_login(text: &str) -> bool {
    text.contains('@') || text.split_once('?').is_some_and(|(_, parameters)| parameters.contains('='))
}

/// Like [`may_hold_login`], of a line whose syntax may be wrong. An `@` right behind a quote, a blank or a `!` names a
/// list, unless a `:` stands before it, as in `user:password`; a `?` begins parameters only in an address.
fn line_may_hold_login(line: &str) -> bool {
    let colon = line.find(':').unwrap_or(line.len());
    let names_list =
        |at: usize| at <= colon && line[..at].ends_with(|last: char| last.is_whitespace() || "\"'!".contains(last));
    let has_login = |(at, _): (usize, &str)| !names_list(at);
    line.match_indices('@').any(has_login) || line.contains("://") && may_hold_login(line)
}

/// Hides the text between the quotes, or all of it.
fn hide_node(report: &mut Report, node: &Node) {
    let written = report.sources.written(node.at);
    // Without a closing quote, the last character can be any.
    let is_quoted =
        written.len() >= 2 && ['"', '\''].iter().any(|quote| written.starts_with(*quote) && written.ends_with(*quote));
    let at = if is_quoted { node.at.part(1, written.len() - 2) } else { node.at };
    report.sources.hide(at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_login_is_told_from_one_that_names_a_list() {
        for line in
            ["url = \"default:s3cret\"@redis:6379", "url = default:pa\"ss!@redis", "url = redis://a@b", "url = u@h"]
        {
            assert!(line_may_hold_login(line), "{line}");
        }
        for line in ["when = { user = \"!@vip\"", "when = { ip = \"@blocked\", path = \"a:b\" }", "by = [\"user\""] {
            assert!(!line_may_hold_login(line), "{line}");
        }
    }

    #[test]
    fn a_secret_does_not_show_itself() {
        assert_eq!(format!("{:?}", Secret::new("s3cret")), "***");
    }
}
