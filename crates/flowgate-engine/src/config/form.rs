//! Forms of values: how a value of the configuration is read, and how it is written.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::report::Report;
use super::size::{self, ByteSize};
use super::tree::Node;
use super::writer::string;
use super::{duration, files, value};

type Reader<T> = Box<dyn Fn(&mut Report, &Node) -> Option<T>>;

/// The form of the value of a key.
pub(crate) struct Form<T> {
    /// Reads the value; reports a wrong one.
    pub(crate) read: Reader<T>,
    /// The value as TOML.
    pub(crate) write: Box<dyn Fn(&T) -> String>,
}

impl<T> Form<T> {
    fn new(
        read: impl Fn(&mut Report, &Node) -> Option<T> + 'static,
        write: impl Fn(&T) -> String + 'static,
    ) -> Form<T> {
        Form { read: Box::new(read), write: Box::new(write) }
    }
}

pub(crate) fn boolean() -> Form<bool> {
    Form::new(value::boolean, bool::to_string)
}

/// A whole number within a range that fits into `T`.
pub(crate) fn integer<T: TryFrom<u64> + ToString + 'static>(range: RangeInclusive<u64>) -> Form<T> {
    Form::new(move |report, node| value::integer(report, node, range.clone())?.try_into().ok(), T::to_string)
}

/// One of several words.
pub(crate) fn word<T: Copy + PartialEq>(words: &'static [(&'static str, T)]) -> Form<T> {
    Form::new(|report, node| value::word(report, node, words), |value| string(value::word_of(words, *value)))
}

pub(crate) fn span(range: RangeInclusive<Duration>) -> Form<Duration> {
    Form::new(move |report, node| value::span(report, node, range.clone()), |span| string(&duration::format(*span)))
}

pub(crate) fn size(range: RangeInclusive<ByteSize>) -> Form<ByteSize> {
    text(move |report, node| size::read(report, node, range.clone()))
}

pub(crate) fn path() -> Form<Option<PathBuf>> {
    Form::new(value::path, |path| string(&files::shown(path.as_deref())))
}

/// A text that `read` reads and `Display` writes.
pub(crate) fn text<T: ToString>(read: impl Fn(&mut Report, &Node) -> Option<T> + 'static) -> Form<T> {
    Form::new(read, |value| string(&value.to_string()))
}

pub(crate) fn list<T: 'static>(Form { read, write }: Form<T>) -> Form<Vec<T>> {
    Form::new(
        move |report, node| value::list(report, node, &read),
        move |items| format!("[{}]", items.iter().map(&write).collect::<Vec<_>>().join(", ")),
    )
}
