//! A bracket that is not closed: a parser that goes on without it finds a mistake in every line that follows.
//!
//! Rule       Only brackets within values count; `[section]` and `[[rule]]` are lines of their own. A bracket is
//!            missing where another kind closes, where such a line or, without a comma before it, a `key =` begins, and
//!            at the end of the text.
//! Rule       Texts and comments are passed over. A text without its closing quote ends the search: that is another
//!            mistake.

use super::comments::{line_end, string_end};

/// A bracket without its counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnclosedBracket {
    /// The place of the bracket.
    pub(super) at: usize,
    /// The bracket that is missing.
    pub(super) missing: char,
    /// The place before which it is missing.
    pub(super) before: usize,
}

/// The first bracket of a text that is not closed.
pub(super) fn unclosed(text: &str) -> Option<UnclosedBracket> {
    let mut open: Vec<usize> = Vec::new();
    // The last character that is neither blank nor in a comment, and whether the current character is the first on its
    // line.
    let (mut last, mut is_first) = ('\n', true);
    let mut at = 0;
    while let Some(sign) = text[at..].chars().next() {
        let missing = |from: &usize| Some(UnclosedBracket { at: *from, missing: counterpart(text, *from), before: at });
        let starts_line = is_first && !sign.is_whitespace();
        is_first = sign == '\n' || is_first && sign.is_whitespace();
        if let Some(top) = open.last()
            && starts_line
            && begins_elsewhere(&text[at..], text.as_bytes()[*top], last)
        {
            return missing(top);
        }
        match sign {
            '"' | '\'' => {
                at = string_end(text.as_bytes(), at).ok()?;
                last = sign;
                continue;
            }
            '#' => {
                at = line_end(text, at);
                continue;
            }
            '[' if open.is_empty() && starts_line => {
                at = line_end(text, at);
                continue;
            }
            '[' | '{' => open.push(at),
            ']' | '}' => match open.pop() {
                Some(from) if counterpart(text, from) != sign => return missing(&from),
                Some(_) => {}
                None => return None,
            },
            _ => {}
        }
        if !sign.is_whitespace() {
            last = sign;
        }
        at += sign.len_utf8();
    }
    open.last().map(|from| UnclosedBracket {
        at: *from,
        missing: counterpart(text, *from),
        before: text.trim_end().len(),
    })
}

fn counterpart(text: &str, at: usize) -> char {
    if text.as_bytes()[at] == b'[' { ']' } else { '}' }
}

/// True if a line cannot belong to the value whose innermost bracket is `open`: a section, or a key without a comma
/// before it.
fn begins_elsewhere(line: &str, open: u8, last: char) -> bool {
    let line = line.lines().next().unwrap_or_default();
    let code = line.split_once('#').map_or(line, |(code, _)| code).trim_end();
    if let Some(name) = code.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let name = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name).trim();
        let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
        return is_word && !["true", "false", "inf", "nan"].contains(&name);
    }
    let key = key_length(code);
    let is_key = key > 0 && code[key..].trim_start().starts_with('=');
    is_key && (open == b'[' || ![',', '{'].contains(&last))
}

/// The length of the key that a line begins with.
fn key_length(line: &str) -> usize {
    let is_key = |c: char| c.is_ascii_alphanumeric() || "_-.\"'".contains(c);
    line.find(|c| !is_key(c)).unwrap_or(line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place is marked with a `^` before the bracket, and the place before which it is missing with a `|`.
    #[track_caller]
    fn check(marked: &str) {
        let at = marked.find('^').unwrap();
        let before = marked.replacen('^', "", 1).find('|').unwrap();
        let text = marked.replacen('^', "", 1).replacen('|', "", 1);
        let missing = counterpart(&text, at);
        assert_eq!(unclosed(&text), Some(UnclosedBracket { at, missing, before }), "{text}");
    }

    #[test]
    fn the_bracket_that_opened_is_named() {
        check("a = ^{ b = 1\n|c = 2\n");
        check("a = ^[1, 2\n|c = 2\n");
        check("a = ^[1,\n 2,\n|c = 2\n");
        check("[[rule]]\nwhen = ^{ ip = \"}\" # }\n\n|by = [\"ip\"]\n");
        check("lists = { a = { values = ^['x' |} }\nb = 1");
        check("rule = [\n  ^{ name = 'a', by = [\"x\"]\n|]\n");
        check("a = ^[\n 'x',\n|[[rule]]\nname = 'a'\n");
        check("a = ^[[1], [2]\n|[server] # x\n");
        check("a = ^{ b = 1|");
        check("a = ^[|\n\n");
    }

    #[test]
    fn what_is_closed_is_fine() {
        for text in [
            "",
            "[a]\nb = [1, [2, 3], { c = ']' }]\n[[d]]\n",
            "a = {\n  b = 1,\n  c = 2,\n}\n",
            "a = [\n  [true],\n  [1],\n  ['x'], # ]\n]\nb = '''[\n{'''\nc = \"\"\"\\\"\"\"{\"\"\"\n",
            "a = \"\\\\\" # {\nb = \"{\\\"\"\n",
            "a = 'x\nb = [1\n",
            "a = 1 ]\nb = [1\n",
        ] {
            assert_eq!(unclosed(text), None, "{text}");
        }
    }
}
