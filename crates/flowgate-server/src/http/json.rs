//! Writes JSON objects and lists into one buffer: what answers need and no more. Values are written as
//! [`decision_json`] does.
//!
//! Rule       Keys are names from the source and are written as they are; texts are escaped.

use flowgate::{Span, Time};

use crate::decision_json;

/// An object that is being written. [`Object::end`] closes it.
#[derive(Debug)]
pub(crate) struct Object<'b> {
    out: &'b mut Vec<u8>,
    before: u8,
}

impl<'b> Object<'b> {
    pub(crate) fn new(out: &'b mut Vec<u8>) -> Object<'b> {
        Object { out, before: b'{' }
    }

    pub(crate) fn text(&mut self, key: &'static str, value: &str) {
        decision_json::write_text(self.key(key), value);
    }

    pub(crate) fn optional_text(&mut self, key: &'static str, value: Option<&str>) {
        match value {
            Some(value) => self.text(key, value),
            None => self.null(key),
        }
    }

    pub(crate) fn number(&mut self, key: &'static str, value: u64) {
        decision_json::write_number(self.key(key), value);
    }

    pub(crate) fn optional_number(&mut self, key: &'static str, value: Option<u64>) {
        match value {
            Some(value) => self.number(key, value),
            None => self.null(key),
        }
    }

    pub(crate) fn signed(&mut self, key: &'static str, value: i64) {
        decision_json::write_signed(self.key(key), value);
    }

    pub(crate) fn boolean(&mut self, key: &'static str, value: bool) {
        self.key(key).extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(crate) fn null(&mut self, key: &'static str) {
        self.key(key).extend_from_slice(b"null");
    }

    pub(crate) fn seconds(&mut self, key: &'static str, value: Span) {
        decision_json::write_span(self.key(key), value);
    }

    /// An instant as seconds since the epoch.
    pub(crate) fn time(&mut self, key: &'static str, value: Time) {
        decision_json::write_instant(self.key(key), value);
    }

    pub(crate) fn optional_time(&mut self, key: &'static str, value: Option<Time>) {
        match value {
            Some(value) => self.time(key, value),
            None => self.null(key),
        }
    }

    /// A value that the caller writes.
    pub(crate) fn value(&mut self, key: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        write(self.key(key));
    }

    /// A list, one element after the other.
    pub(crate) fn list<T>(
        &mut self,
        key: &'static str,
        items: impl IntoIterator<Item = T>,
        write: impl FnMut(&mut Vec<u8>, T),
    ) {
        list(self.key(key), items, write);
    }

    pub(crate) fn end(self) {
        if self.before == b'{' {
            self.out.push(b'{');
        }
        self.out.push(b'}');
    }

    fn key(&mut self, key: &'static str) -> &mut Vec<u8> {
        self.out.push(self.before);
        self.before = b',';
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }
}

/// A list, one element after the other.
pub(crate) fn list<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// An object whose keys come from outside.
pub(crate) fn fields(out: &mut Vec<u8>, fields: &[(String, String)]) {
    out.push(b'{');
    for (index, (name, value)) in fields.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        decision_json::write_text(out, name);
        out.push(b':');
        decision_json::write_text(out, value);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_object_of_everything() {
        let object = |out: &mut Vec<u8>| {
            let mut object = Object::new(out);
            object.text("text", "a\"b");
            object.optional_text("none", None);
            object.number("number", u64::MAX);
            object.signed("signed", i64::MIN);
            object.boolean("yes", true);
            object.list("list", [1, 2], decision_json::write_number);
            object.time("time", Time::from_millis(1_700_000_000_500));
            object.optional_time("never", None);
            object.value("fields", |out| {
                fields(out, &[("a\"".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())])
            });
            object.value("empty", |out| Object::new(out).end());
            object.end();
        };
        let expected = r#"{"text":"a\"b","none":null,"number":18446744073709551615,"signed":-9223372036854775808,"yes":true,"list":[1,2],"time":1700000000.5,"never":null,"fields":{"a\"":"1","b":"2"},"empty":{}}"#;
        assert_eq!(written(object), expected);
    }
}
