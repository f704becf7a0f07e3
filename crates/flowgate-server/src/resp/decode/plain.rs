//! Complete commands of the usual form, read where they lie: an array of a few short words.

use std::ops::Range;

use super::{LINE_END_BYTES, read_word, short_header};

/// The most words of such a command, its name included.
const MAX_PLAIN_WORDS: usize = 32;

/// A command of which all bytes have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlainCommand<'a> {
    /// All its bytes, framing included.
    pub(crate) bytes: &'a [u8],
    /// The positions of the words in `bytes`. Words have at most 99 bytes, which keeps the positions small.
    places: [(u16, u16); MAX_PLAIN_WORDS],
    count: usize,
}

impl<'a> PlainCommand<'a> {
    /// The command with which `bytes` begin; `None` if it is incomplete or of another form.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<PlainCommand<'a>> {
        let mut command = PlainCommand::default();
        let (count @ 1..=MAX_PLAIN_WORDS, mut at) = short_header(bytes, 0, b'*')? else { return None };
        for place in &mut command.places[..count] {
            let word = read_word(bytes, at)?;
            *place = (word.start as u16, word.end as u16);
            at = word.end + LINE_END_BYTES;
        }
        (command.count, command.bytes) = (count, &bytes[..at]);
        Some(command)
    }

    /// The number of its arguments.
    #[inline]
    pub(crate) fn arguments(&self) -> usize {
        self.count - 1
    }

    /// The word at `index`. The name is word 0.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.place(index)?)
    }

    /// Where the word at `index` lies in the bytes.
    #[inline]
    pub(crate) fn place(&self, index: usize) -> Option<Range<usize>> {
        let (start, end) = *self.places[..self.count].get(index)?;
        Some(usize::from(start)..usize::from(end))
    }

    /// The words from `first` on in pairs; `None` if they are not texts, or a word is left over. The command is checked
    /// for UTF-8 as a whole, which is quicker than word by word.
    #[inline]
    pub(crate) fn pairs(&self, first: usize) -> Option<impl Iterator<Item = (&'a str, &'a str)>> {
        let text = str::from_utf8(self.bytes).ok()?;
        let (pairs, []) = self.places[..self.count].get(first..)?.as_chunks() else { return None };
        // Line ends surround a word, so the word begins and ends between characters.
        let word = |(start, end): (u16, u16)| text.get(usize::from(start)..usize::from(end)).unwrap_or_default();
        Some(pairs.iter().map(move |[one, other]| (word(*one), word(*other))))
    }
}
