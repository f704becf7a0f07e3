//! A piece of the rule file's text, with its place in the file.

use flowgate_engine::front::{Location, SourceId};

/// A piece of the file's text.
#[derive(Clone, Copy)]
pub(super) struct Piece<'t> {
    pub(super) text: &'t str,
    source: SourceId,
    start: usize,
}

impl<'t> Piece<'t> {
    /// The whole file.
    pub(super) fn whole(source: SourceId, text: &'t str) -> Piece<'t> {
        Piece { text, source, start: 0 }
    }

    pub(super) fn at(&self) -> Location {
        Location::new(self.source, self.start..self.start + self.text.len())
    }

    /// The piece between two byte offsets of this one.
    pub(super) fn part(&self, start: usize, end: usize) -> Piece<'t> {
        Piece { text: &self.text[start..end], start: self.start + start, ..*self }
    }

    /// The piece from a byte offset of this one to its end.
    pub(super) fn from(&self, start: usize) -> Piece<'t> {
        self.part(start, self.text.len())
    }

    /// The piece without the blanks around it.
    pub(super) fn trim(&self) -> Piece<'t> {
        let start = self.text.len() - self.text.trim_start().len();
        self.part(start, start + self.text.trim().len())
    }

    /// The pieces before and behind the first `separator`.
    pub(super) fn split_once(&self, separator: char) -> Option<(Piece<'t>, Piece<'t>)> {
        let at = self.text.find(separator)?;
        Some((self.part(0, at), self.from(at + separator.len_utf8())))
    }

    /// The pieces between the separators, without the blanks around them and without empty ones.
    pub(super) fn items(self, separator: char) -> impl Iterator<Item = Piece<'t>> {
        let mut start = 0;
        let parts = self.text.split(separator).map(move |part| {
            let piece = self.part(start, start + part.len());
            start += part.len() + separator.len_utf8();
            piece.trim()
        });
        parts.filter(|piece| !piece.text.is_empty())
    }

    /// The piece without its comment. A comment begins with a `#` at the start or after a blank.
    pub(super) fn without_comment(&self) -> Piece<'t> {
        let starts_one = |&(at, _): &(usize, &str)| self.text[..at].chars().next_back().is_none_or(char::is_whitespace);
        let comment = self.text.match_indices('#').find(starts_one);
        comment.map_or(*self, |(at, _)| self.part(0, at)).trim()
    }

    /// Whether the piece is empty or only a comment.
    pub(super) fn is_blank(&self) -> bool {
        self.without_comment().text.is_empty()
    }
}
