//! The client's side of the Redis protocol, RESP2: commands to bytes, bytes to replies.
//!
//! Rule       A reply that is cut off is asked for again from its first byte once more has arrived: replies are short,
//!            and a parser without memory cannot get out of step.
//! Bound      A text has at most [`MAX_TEXT`] bytes, a list [`MAX_ELEMENTS`] elements, and lists lie at most
//!            [`MAX_DEPTH`] deep; a longer or deeper one is not an answer to us, and ends the connection.

use smallvec::SmallVec;

/// A reply of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A null reply.
    Nil,
    /// A number.
    Integer(i64),
    /// Any bytes.
    Text(Text),
    /// An error; its first word is the kind.
    Error(String),
    /// A list of replies.
    List(Vec<Reply>),
}

/// The bytes of a text: what a script answers to a plain take fits without an allocation.
pub(crate) type Text = SmallVec<[u8; 56]>;

/// The received bytes are not a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what Redis sent cannot be read as a reply: {0}")]
pub(crate) struct NoReply(&'static str);

const MAX_TEXT: usize = 16 << 20;
const MAX_ELEMENTS: usize = 1 << 20;
const MAX_DEPTH: usize = 8;
/// The longest line. A line other than an error holds a number or a word.
const MAX_LINE: usize = 64 << 10;

/// Appends a command.
pub(crate) fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    header(out, words.len());
    words.iter().for_each(|text| word(out, text));
}

/// Appends the header of a command of `words` words.
pub(crate) fn header(out: &mut Vec<u8>, words: usize) {
    length(out, b'*', words);
}

/// Appends a word of a command.
pub(crate) fn word(out: &mut Vec<u8>, text: &[u8]) {
    length(out, b'$', text.len());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Appends a word that is a number.
pub(crate) fn number_word(out: &mut Vec<u8>, number: usize) {
    let (line, start) = line_of(b'0', number);
    word(out, &line[start + 1..line.len() - 2]);
}

fn length(out: &mut Vec<u8>, kind: u8, length: usize) {
    let (line, start) = line_of(kind, length);
    out.extend_from_slice(&line[start..]);
}

/// A line of a kind and a number, at the end of an array, and where it starts: one copy is cheaper than three.
fn line_of(kind: u8, number: usize) -> ([u8; 24], usize) {
    let (mut line, mut start, mut rest) = ([0; 24], 22, number);
    loop {
        start -= 1;
        line[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    start -= 1;
    line[start] = kind;
    line[22..].copy_from_slice(b"\r\n");
    (line, start)
}

/// The first reply in `bytes`, and its length in bytes; `None`: it is incomplete.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>, NoReply> {
    let mut rest = Rest { bytes, at: 0 };
    Ok(rest.reply(0)?.map(|reply| (reply, rest.at)))
}

struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn reply(&mut self, depth: usize) -> Result<Option<Reply>, NoReply> {
        let Some(line) = self.line()? else { return Ok(None) };
        let Some((&kind, rest)) = line.split_first() else { return Err(NoReply("an empty line")) };
        Ok(Some(match kind {
            b'+' => Reply::Text(Text::from_slice(rest)),
            b'-' => Reply::Error(String::from_utf8_lossy(rest).into_owned()),
            b':' => Reply::Integer(number(rest)?),
            b'$' => match size(rest, MAX_TEXT)? {
                None => Reply::Nil,
                Some(length) => match self.text(length)? {
                    None => return Ok(None),
                    Some(text) => Reply::Text(Text::from_slice(text)),
                },
            },
            b'*' if depth >= MAX_DEPTH => return Err(NoReply("lists in lists")),
            b'*' => match size(rest, MAX_ELEMENTS)? {
                None => Reply::Nil,
                Some(length) => {
                    // The client announces the length, so memory grows only as elements arrive.
                    let mut list = Vec::with_capacity(length.min(64));
                    for _ in 0..length {
                        let Some(element) = self.reply(depth + 1)? else { return Ok(None) };
                        list.push(element);
                    }
                    Reply::List(list)
                }
            },
            _ => return Err(NoReply("an unknown kind")),
        }))
    }

    fn line(&mut self) -> Result<Option<&'a [u8]>, NoReply> {
        let rest = &self.bytes[self.at..];
        let looked_at = &rest[..rest.len().min(MAX_LINE)];
        match looked_at.windows(2).position(|pair| pair == b"\r\n") {
            Some(end) => {
                self.at += end + 2;
                Ok(Some(&rest[..end]))
            }
            None if rest.len() >= MAX_LINE => Err(NoReply("an endless line")),
            None => Ok(None),
        }
    }

    fn text(&mut self, length: usize) -> Result<Option<&'a [u8]>, NoReply> {
        let rest = &self.bytes[self.at..];
        if rest.len() < length + 2 {
            return Ok(None);
        }
        if &rest[length..length + 2] != b"\r\n" {
            return Err(NoReply("a text of another length"));
        }
        self.at += length + 2;
        Ok(Some(&rest[..length]))
    }
}

fn number(text: &[u8]) -> Result<i64, NoReply> {
    let text = std::str::from_utf8(text).map_err(|_| NoReply("no number"))?;
    text.parse().map_err(|_| NoReply("no number"))
}

/// A length; -1 stands for a null reply.
fn size(text: &[u8], max: usize) -> Result<Option<usize>, NoReply> {
    match number(text)? {
        -1 => Ok(None),
        length => usize::try_from(length).ok().filter(|length| *length <= max).map(Some).ok_or(NoReply("its length")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(reply: &Reply, out: &mut Vec<u8>) {
        match reply {
            Reply::Nil => out.extend_from_slice(b"$-1\r\n"),
            Reply::Integer(number) => out.extend_from_slice(format!(":{number}\r\n").as_bytes()),
            Reply::Text(text) => word(out, text),
            Reply::Error(text) => out.extend_from_slice(format!("-{text}\r\n").as_bytes()),
            Reply::List(list) => {
                header(out, list.len());
                list.iter().for_each(|reply| encode(reply, out));
            }
        }
    }

    fn replies() -> impl Strategy<Value = Reply> {
        let leaf = prop_oneof![
            Just(Reply::Nil),
            any::<i64>().prop_map(Reply::Integer),
            proptest::collection::vec(any::<u8>(), 0..80).prop_map(|text| Reply::Text(text.into())),
            "[A-Z]{2,9} [a-z ]{0,20}".prop_map(Reply::Error),
        ];
        leaf.prop_recursive(3, 20, 5, |inner| proptest::collection::vec(inner, 0..5).prop_map(Reply::List))
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_however_it_is_cut(first in replies(), second in replies()) {
            let mut bytes = Vec::new();
            encode(&first, &mut bytes);
            let end = bytes.len();
            encode(&second, &mut bytes);
            for cut in 0..end {
                prop_assert_eq!(parse(&bytes[..cut]), Ok(None));
            }
            prop_assert_eq!(parse(&bytes), Ok(Some((first, end))));
            prop_assert_eq!(parse(&bytes[end..]), Ok(Some((second, bytes.len() - end))));
        }

        #[test]
        fn nothing_that_arrives_does_harm(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn what_is_no_reply_is_told_from_what_is_cut_off() {
        assert_eq!(parse(b"+OK\r\n"), Ok(Some((Reply::Text(Text::from_slice(b"OK")), 5))));
        assert_eq!(parse(b"*-1\r\n"), Ok(Some((Reply::Nil, 5))));
        for bytes in [&b"HTTP/1.1 400\r\n"[..], b"\r\n", b":x\r\n", b"$-2\r\n", b"$99999999\r\n", b"$1\r\nabc"] {
            assert!(parse(bytes).is_err(), "{bytes:?}");
        }
        assert!(parse(&b"*1\r\n".repeat(9)).is_err());
        assert!(parse(&vec![b'+'; MAX_LINE]).is_err());
    }
}
