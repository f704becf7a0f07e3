//! The forms of commands that are planned together: what a client sends again and again.
//!
//! Rule       Commands of one form have the same name, and the same cost and names of fields (`FG.TAKE`), the same limit
//!            (`FG.LIMIT`) or the same numbers (`CL.THROTTLE`). Only the open words differ: values of fields, and keys.
//! Rule       The bytes of a command are compared with the forms that were met before, so only its open words are read. The
//!            command means what it would mean if it were read word by word.
//! Bound      An event loop remembers [`MAX_FORMS`] forms of at most 32 words with at most 99 bytes each.

use std::ops::Range;
use std::rc::Rc;

use flowgate::{Limit, Throttle};
use flowgate_engine::RequestNames;
use smallvec::SmallVec;

use super::command::{self, Planning};
use super::decode::PlainCommand;
use super::planned::MAX_GROUP;
use crate::limit_cache;

/// The forms that an event loop remembers: those of a few programs.
const MAX_FORMS: usize = 8;

/// The forms that an event loop has met, so that they also serve pipelines of one command.
#[derive(Debug)]
pub(super) struct Forms {
    forms: Vec<Form>,
    /// The form of the last command: the next one mostly has the same.
    last: usize,
    /// The form that a new one replaces.
    oldest: usize,
}

/// A command without its open words.
#[derive(Debug)]
pub(super) struct Form {
    text: Box<[u8]>,
    /// Where the open words stand in `text`, with their lengths: the `$` before a length and the line end behind a word are
    /// part of the text.
    gaps: Box<[usize]>,
    pub(super) arguments: usize,
    pub(super) meaning: Meaning,
}

/// What commands of a form ask.
#[derive(Debug)]
pub(super) enum Meaning {
    /// To take `cost` by the rules; the values of these fields are open.
    Take { cost: u64, names: RequestNames },
    /// To take one unit of a limit; the key is open.
    Limit(Rc<Limit>),
    /// `CL.THROTTLE`; the key is open.
    Throttle(Throttle),
}

/// The open words of a command among those of a group.
#[derive(Debug)]
pub(super) struct OpenWords<'d> {
    /// The bytes that are ahead of the group's first command.
    ahead: &'d [u8],
    /// A part of `ahead`, from `text_begin` on, that is known to be UTF-8. One check of many bytes takes fewer instructions
    /// than a check of each word.
    text: &'d str,
    text_begin: usize,
    pub(super) key: &'d [u8],
    /// The values of a take's fields, whose names its form has.
    pub(super) values: SmallVec<[&'d str; 8]>,
}

impl Forms {
    pub(super) const fn new() -> Forms {
        Forms { forms: Vec::new(), last: 0, oldest: 0 }
    }

    /// Reads the open words of the command that begins at `at` of the bytes ahead. Returns its form and its end; `None` if it
    /// is incomplete or not to be planned.
    #[inline]
    pub(super) fn read(&mut self, at: usize, open: &mut OpenWords<'_>) -> Option<(&Form, usize)> {
        let end = match self.forms.get(self.last).and_then(|form| form.read(at, open)) {
            Some(end) => end,
            None => self.read_other(at, open)?,
        };
        Some((&self.forms[self.last], end))
    }

    /// As [`Forms::read`], for a command of another form than the last one.
    #[inline(never)]
    fn read_other(&mut self, at: usize, open: &mut OpenWords<'_>) -> Option<usize> {
        let bytes = open.ahead.get(at..)?;
        let last = self.last;
        let mut others = self.forms.iter().enumerate().filter(|(index, _)| *index != last);
        let known = |(index, form): (usize, &Form)| form.read(at, open).map(|end| (index, end));
        if let Some((index, end)) = others.find_map(known) {
            self.last = index;
            return Some(end);
        }
        let form = Form::from_command(&PlainCommand::read(bytes)?)?;
        let end = form.read(at, open)?;
        self.last = self.oldest;
        self.oldest = (self.oldest + 1) % MAX_FORMS;
        match self.forms.get_mut(self.last) {
            Some(place) => *place = form,
            None => self.forms.push(form),
        }
        Some(end)
    }
}

impl Form {
    /// The form of a command; `None` if it is not to be planned: another command, a wrong number of words, an option.
    fn from_command(command: &PlainCommand<'_>) -> Option<Form> {
        let (meaning, first, step) = match command::planning(command.word(0)?)? {
            Planning::Take => {
                let (cost, fields) = command::take_fields(command)?;
                (Meaning::Take { cost, names: RequestNames::new(fields.map(|(name, _)| name)) }, 3, 2)
            }
            Planning::Limit => (Meaning::Limit(limit_of(command)?), 1, command.arguments()),
            Planning::Throttle => (Meaning::Throttle(throttle_of(command)?), 1, command.arguments()),
        };
        let (mut text, mut gaps, mut end) = (Vec::new(), Vec::new(), 0);
        for index in (first..=command.arguments()).step_by(step) {
            let word = command.place(index)?;
            let header = command.bytes[..word.start].iter().rposition(|byte| *byte == b'$')?;
            text.extend_from_slice(&command.bytes[end..=header]);
            gaps.push(text.len());
            end = word.end;
        }
        text.extend_from_slice(&command.bytes[end..]);
        Some(Form { text: text.into(), gaps: gaps.into(), arguments: command.arguments(), meaning })
    }

    /// The size of a command whose open words are not long.
    fn usual_size(&self) -> usize {
        self.text.len() + 16 * self.gaps.len()
    }

    /// Reads the open words of the command that begins at `at`, and returns its end. `None` if it has another form or is
    /// incomplete.
    #[inline]
    fn read(&self, mut at: usize, open: &mut OpenWords<'_>) -> Option<usize> {
        let (bytes, mut known) = (open.ahead, 0);
        open.values.clear();
        for &gap in &self.gaps {
            at = skip(bytes, at, &self.text[known..gap])?;
            known = gap;
            let word = open_word(bytes, at)?;
            at = word.end;
            match &self.meaning {
                Meaning::Take { .. } => open.push_value(word, self)?,
                Meaning::Limit(_) | Meaning::Throttle(_) => open.key = bytes.get(word)?,
            }
        }
        skip(bytes, at, &self.text[known..])
    }
}

/// The position behind `text`, if that stands at `at`.
#[inline]
fn skip(bytes: &[u8], at: usize, text: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(text).then_some(at + text.len())
}

/// The place of the word whose length stands at `at`.
#[inline]
fn open_word(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let digit = |byte: u8| usize::from(byte.wrapping_sub(b'0'));
    let (length, header) = match *bytes.get(at..)?.first_chunk()? {
        [ones, b'\r', b'\n', _] if digit(ones) <= 9 => (digit(ones), 3),
        [tens, ones, b'\r', b'\n'] if matches!(digit(tens), 1..=9) && digit(ones) <= 9 => {
            (10 * digit(tens) + digit(ones), 4)
        }
        _ => return None,
    };
    Some(at + header..at + header + length)
}

impl<'d> OpenWords<'d> {
    /// The open words of a group whose first command begins with `ahead`.
    pub(super) fn new(ahead: &'d [u8]) -> OpenWords<'d> {
        OpenWords { ahead, text: "", text_begin: 0, key: &[], values: SmallVec::new() }
    }

    /// Adds the value of a field; `None` if its bytes are not UTF-8.
    #[inline]
    fn push_value(&mut self, word: Range<usize>, form: &Form) -> Option<()> {
        let value = match self.known_text(&word) {
            Some(value) => value,
            None => self.read_text(word, MAX_GROUP * form.usual_size())?,
        };
        self.values.push(value);
        Some(())
    }

    // What stands around a word is ASCII, so the word begins and ends between characters.
    #[inline]
    fn known_text(&self, word: &Range<usize>) -> Option<&'d str> {
        self.text.get(word.start.checked_sub(self.text_begin)?..word.end - self.text_begin)
    }

    /// Checks that a word is UTF-8, together with up to `further` bytes after it, which may hold the next words. Bytes before
    /// the word are not looked at. If the word is not UTF-8, `self.text` stays as it is.
    #[inline(never)]
    fn read_text(&mut self, word: Range<usize>, further: usize) -> Option<&'d str> {
        let begin = word.start;
        let bytes = self.ahead.get(begin..self.ahead.len().min(word.end + further))?;
        let text = match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        let value = text.get(..word.len())?;
        (self.text, self.text_begin) = (text, begin);
        Some(value)
    }
}

/// The limit of an `FG.LIMIT` that takes one unit.
fn limit_of(command: &PlainCommand<'_>) -> Option<Rc<Limit>> {
    let (2, limit) = (command.arguments(), command.word(2)?) else { return None };
    limit_cache::parse(str::from_utf8(limit).ok()?).ok()
}

fn throttle_of(command: &PlainCommand<'_>) -> Option<Throttle> {
    command::throttle_numbers(command.arguments(), |index| command.word(index + 1)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(words: &[&str]) -> Vec<u8> {
        let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        [format!("*{}\r\n", words.len())].into_iter().chain(words).collect::<String>().into()
    }

    /// What a command means: its kind and numbers, its open words, and its size.
    fn meaning(forms: &mut Forms, bytes: &[u8]) -> Option<(String, usize)> {
        let mut open = OpenWords::new(bytes);
        let (form, end) = forms.read(0, &mut open)?;
        let told = match &form.meaning {
            Meaning::Take { cost, names } => {
                format!("take {cost} {:?}", names.iter().zip(open.values.iter().copied()).collect::<Vec<_>>())
            }
            Meaning::Limit(limit) => format!("limit {limit} {:?}", open.key),
            Meaning::Throttle(throttle) => format!("{throttle:?} {:?}", open.key),
        };
        Some((format!("{told} {}", form.arguments), end))
    }

    #[test]
    fn only_the_open_words_of_a_form_differ() {
        let mut forms = Forms::new();
        let mut told = |words: &[&str]| meaning(&mut forms, &encode(words)).map(|(told, _)| told);
        let take = |cost: u64, fields: &str| Some(format!("take {cost} {fields}"));
        for user in ["1", "22", "", "\u{e9}"] {
            let fields = format!("[(\"act\", \"post\"), (\"user\", {user:?})] 5");
            assert_eq!(told(&["FG.TAKE", "1", "act", "post", "user", user]), take(1, &fields));
        }
        assert_eq!(told(&["fg.take", "2", "act", "1"]), take(2, "[(\"act\", \"1\")] 3"));
        assert_eq!(told(&["fg.take", "2"]), take(2, "[] 1"));
        assert_eq!(told(&["FG.LIMIT", "k", "5/60s"]), Some("limit sliding 5/60s [107] 2".into()));
        assert_eq!(told(&["FG.LIMIT", "kk", "6/60s"]), Some("limit sliding 6/60s [107, 107] 2".into()));
        assert!(told(&["CL.THROTTLE", "k", "15", "30", "60"]).is_some());
        for refused in [&["FG.TAKE", "1", "act"][..], &["FG.TAKE", "x"], &["FG.LIMIT", "k", "5/60s", "2"], &["PING"]] {
            assert_eq!(told(refused), None, "{refused:?}");
        }
    }

    #[test]
    fn value_that_is_no_text_is_refused() {
        let mut forms = Forms::new();
        let binary = b"*4\r\n$7\r\nFG.TAKE\r\n$1\r\n1\r\n$4\r\nuser\r\n$1\r\n\xff\r\n";
        assert!(meaning(&mut forms, &encode(&["FG.TAKE", "1", "user", "1"])).is_some());
        assert_eq!(meaning(&mut forms, binary), None);
        assert!(meaning(&mut forms, b"*3\r\n$8\r\nFG.LIMIT\r\n$1\r\n\xff\r\n$5\r\n5/60s\r\n").is_some());
    }

    /// An `FG.LIMIT` has a key that is not UTF-8; the takes after it in the same group are planned.
    #[test]
    fn group_is_read_behind_a_word_that_is_no_text() {
        let (mut forms, mut at) = (Forms::new(), 0);
        let binary = b"*3\r\n$8\r\nFG.LIMIT\r\n$1\r\n\xff\r\n$5\r\n5/60s\r\n".to_vec();
        let take = encode(&["FG.TAKE", "1", "user", "\u{e9}"]);
        let bytes = [take.clone(), binary.clone(), take.clone(), binary, take.clone(), take].concat();
        let mut open = OpenWords::new(&bytes);
        for is_take in [true, false, true, false, true, true] {
            let (form, end) = forms.read(at, &mut open).unwrap();
            assert_eq!(matches!(form.meaning, Meaning::Take { .. }), is_take);
            assert_eq!(open.values.as_slice(), if is_take { &["\u{e9}"][..] } else { &[] });
            at = end;
        }
        assert_eq!(at, bytes.len());
    }

    #[test]
    fn event_loop_remembers_a_few_forms() {
        let mut forms = Forms::new();
        for round in 0..3 {
            for cost in 0..2 * MAX_FORMS {
                let command = encode(&["FG.TAKE", &cost.to_string(), "user", "1"]);
                let told = format!("take {cost} [(\"user\", \"1\")] 3");
                assert_eq!(meaning(&mut forms, &command), Some((told, command.len())), "round {round}");
            }
            assert_eq!(forms.forms.len(), MAX_FORMS);
        }
    }

    proptest! {
        /// Forms that were met before change nothing.
        #[test]
        fn remembered_forms_read_as_fresh_ones(
            commands in proptest::collection::vec((0..6, proptest::collection::vec("[a1\u{e9}]{0,2}", 0..4), 0..80_usize), 1..40),
        ) {
            let mut remembered = Forms::new();
            for (kind, words, cut) in commands {
                let name: &[&str] = match kind {
                    0 => &["FG.TAKE", "1"],
                    1 => &["FG.TAKE", "2", "a"],
                    2 => &["FG.LIMIT"],
                    3 => &["CL.THROTTLE", "k", "15", "30"],
                    4 => &["FG.LIMIT", "k", "5/60s"],
                    _ => &["PING"],
                };
                let words: Vec<&str> = name.iter().copied().chain(words.iter().map(String::as_str)).collect();
                let bytes = [encode(&words), encode(&["FG.TAKE", "1"])].concat();
                let bytes = &bytes[..bytes.len().min(cut)];
                prop_assert_eq!(meaning(&mut remembered, bytes), meaning(&mut Forms::new(), bytes));
            }
        }
    }
}
