//! Comments of a TOML text: their places, and whether one may hold a secret.

use std::ops::Range;

/// Words beside which comments mention secrets, in lower case.
const SECRET_WORDS: [&str; 9] =
    ["password", "passwd", "passphrase", "token", "secret", "credential", "密码", "密钥", "令牌"];

/// A shorter secret occurs by chance in too many comments.
const MIN_SECRET_CHARS: usize = 4;

/// The place of each comment, without its `#` and the end of its line.
pub(crate) fn find(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut comments, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        at = match bytes[at] {
            b'#' => {
                let end = line_end(text, at);
                comments.push(at + 1..end);
                end
            }
            b'"' | b'\'' => string_end(bytes, at).unwrap_or_else(|end| end),
            _ => at + 1,
        };
    }
    comments
}

/// The place of `[auth]`: from its header to the next header, or to the comment right above that.
pub(crate) fn auth_sections(text: &str) -> Vec<Range<usize>> {
    let (mut sections, mut open) = (Vec::new(), None);
    // The start of the current line, and of the comment that ends right above it.
    let (mut start, mut comment) = (0, 0);
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or_default().trim();
        if code.starts_with('[') && code.ends_with(']') {
            sections.extend(open.take().map(|from| from..comment));
            let name = code.trim_matches(['[', ']']).split('.').next().unwrap_or_default();
            open = (name.trim().trim_matches(['"', '\'']) == "auth").then_some(start);
        }
        start += line.len();
        if !code.is_empty() || !line.contains('#') {
            comment = start;
        }
    }
    sections.extend(open.map(|from| from..text.len()));
    sections
}

/// The end of the line that holds `at`.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    end - usize::from(text[at..end].ends_with('\r'))
}

/// The end of the string that begins at `start`, behind its closing quotes.
///
/// # Errors
/// If the string is not closed: the end of its line or, in triple quotes, of the text.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> Result<usize, usize> {
    let quote = bytes[start];
    let count = |at: usize| bytes[at..].iter().take(5).take_while(|byte| **byte == quote).count();
    let is_long = count(start) >= 3;
    let mut at = start + if is_long { 3 } else { 1 };
    while at < bytes.len() {
        match bytes[at] {
            // A line break is never escaped: a short text ends there, and a long one goes on.
            b'\\' if quote == b'"' && bytes.get(at + 1) != Some(&b'\n') => at += 2,
            b'\n' if !is_long => return Err(at),
            byte if byte == quote && !is_long => return Ok(at + 1),
            // Up to two quotes may stand right before the three that close it.
            byte if byte == quote && count(at) >= 3 => return Ok(at + count(at)),
            _ => at += 1,
        }
    }
    Err(bytes.len())
}

/// True if a comment may hold a secret: it repeats a secret, names one, or has an address with a login.
pub(crate) fn may_hold_secret(comment: &str, known: &[&str]) -> bool {
    // The tokens of a token bucket are not secrets.
    let plain = comment.to_lowercase().replace("token bucket", "");
    known.iter().any(|secret| secret.len() >= MIN_SECRET_CHARS && comment.contains(secret))
        || SECRET_WORDS.iter().any(|word| plain.contains(word))
        || comment.contains("://") && comment.contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = find(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn comments_are_found_outside_strings() {
        check("# a\r\nb = 1 #c\n#\n", &[" a", "c", ""]);
        check(r##"a = "# no" # yes"##, &[" yes"]);
        check(r##"a = "\" # no" # yes"##, &[" yes"]);
        check(r##"a = '\' # yes ''"##, &[" yes ''"]);
        check("a = \"\"\"\n# no \" \\\"\"\" # no\n\"\"\"\"\" # yes\n", &[" yes"]);
        check("a = '''\n# no ' '' \\''' # yes\n", &[" yes"]);
        check("a = \"\" # yes", &[" yes"]);
        check("a = [ # one\n 1, # two \"\n]", &[" one", " two \""]);
    }

    #[test]
    fn a_string_that_is_not_closed_ends_with_its_line() {
        check("a = \"x # no\nb = 1 # yes", &[" yes"]);
        check("a = \"\"\"x # no\nb = 1 # no", &[]);
        check("a = \"x\\", &[]);
    }

    #[test]
    fn auth_reaches_to_the_comment_of_the_next_section() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<&str> = auth_sections(text).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("a = 1\n# b\n[store]\n# c\n", &[]);
        check("[auth] # a\n# b\n\n# c\nx = 1 # d\n# e\n# f\n[store]\n# g\n", &["[auth] # a\n# b\n\n# c\nx = 1 # d\n"]);
        check("[auth]\n# a\n\n[[rule]]\n[ auth ]\r\n# b", &["[auth]\n# a\n\n", "[ auth ]\r\n# b"]);
    }

    #[test]
    fn comments_beside_which_secrets_stand() {
        let known = ["hunter2", "abc"];
        for comment in
            ["the Password was x", "api_token = \"x\"", "SECRETS", "redis://u:x@h", "not hunter2 again", "旧密码 x"]
        {
            assert!(may_hold_secret(comment, &known), "{comment}");
        }
        for comment in ["", "for the shop", "a Token Bucket", "\"@vip\" are friends", "https://a.example", "abc"] {
            assert!(!may_hold_secret(comment, &known), "{comment}");
        }
    }
}
