//! Writes TOML.

use std::fmt::{Display, Write as _};
use std::path::Path;

use super::render::HIDDEN;
use super::secret::Secret;

/// Collects a TOML text.
#[derive(Default)]
pub(crate) struct Writer {
    text: String,
}

impl Writer {
    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// Starts `[name]`.
    pub(crate) fn section(&mut self, name: &str) {
        self.header(&format!("[{name}]"));
    }

    /// Starts another `[[name]]`.
    pub(crate) fn item(&mut self, name: &str) {
        self.header(&format!("[[{name}]]"));
    }

    fn header(&mut self, header: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(header);
        self.text.push('\n');
    }

    /// A number, a boolean, or a value that is TOML already.
    pub(crate) fn raw(&mut self, key: &str, value: impl Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{} = {value}", name(key));
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.raw(key, string(value));
    }

    pub(crate) fn texts<T: AsRef<str>>(&mut self, key: &str, values: impl IntoIterator<Item = T>) {
        self.raw(key, list(values));
    }

    pub(crate) fn path(&mut self, key: &str, path: Option<&Path>) {
        self.text(key, &super::files::shown(path));
    }

    /// A hidden secret, or nothing without one.
    pub(crate) fn secret(&mut self, key: &str, secret: Option<&Secret>) {
        self.text(key, if secret.is_some() { HIDDEN } else { "" });
    }
}

/// A list of texts.
pub fn list<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = values.into_iter().map(|value| string(value.as_ref())).collect();
    format!("[{}]", items.join(", "))
}

/// A key, in quotes where it needs them.
pub fn name(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !key.is_empty() && key.bytes().all(bare) { key.to_owned() } else { string(key) }
}

/// A text in double quotes.
pub fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // Writing to a String cannot fail.
            char if char.is_control() => drop(write!(quoted, "\\u{:04X}", u32::from(char))),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_were() {
        for text in ["", "plain", "quo\"te", "back\\slash", "line\nbreak\r\t", "\u{0}\u{1b}\u{7f}\u{85}", "回复"] {
            let table: toml::Table = format!("{} = {}", name(text), string(text)).parse().unwrap();
            assert_eq!(table[text].as_str(), Some(text));
        }
    }
}
