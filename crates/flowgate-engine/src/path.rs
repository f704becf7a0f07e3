//! One spelling for a path: `//api`, `/%61pi` and `/./api` are `/api`, so no spelling slips past a rule.
//!
//! Rule       Percent escapes are decoded once (`%2561` becomes `%61`, not `a`), then empty and dot segments are
//!            resolved as a file system would: `..` takes the segment before it along and stops at the root.
//! Rule       Nothing is refused: a wrong escape stays as it is, bytes that are no UTF-8 become U+FFFD. A slash at the
//!            end stays, for `/api/` may well be another resource than `/api`.

use std::borrow::Cow;

/// The one spelling of a path. A query or a fragment behind it is left out.
///
/// ```
/// use flowgate_engine::normalized_path;
///
/// for spelling in ["/api/users", "//api///users", "/%61pi/users", "/./x/../api/users?page=2"] {
///     assert_eq!(normalized_path(spelling), "/api/users");
/// }
/// ```
pub fn normalized_path(path: &str) -> Cow<'_, str> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if is_plain(path.as_bytes()) {
        return Cow::Borrowed(path);
    }
    let decoded = decoded(path.as_bytes());
    let mut resolved: Vec<u8> = Vec::with_capacity(decoded.len() + 1);
    let mut ends_with_slash = true;
    for segment in decoded.split(|byte| *byte == b'/') {
        ends_with_slash = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => {
                let parent = resolved.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                resolved.truncate(parent);
            }
            name => {
                resolved.push(b'/');
                resolved.extend_from_slice(name);
            }
        }
    }
    if ends_with_slash {
        resolved.push(b'/');
    }
    Cow::Owned(match String::from_utf8(resolved) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// A name or a value of a query, decoded: `+` is a blank, percent escapes are decoded once.
///
/// ```
/// assert_eq!(flowgate_engine::decoded_query("a+b%2Bc"), "a b+c");
/// ```
pub fn decoded_query(text: &str) -> Cow<'_, str> {
    if !text.contains(['+', '%']) {
        return Cow::Borrowed(text);
    }
    let decoded = decoded(text.replace('+', " ").as_bytes());
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

/// Whether a path is in its one spelling already: no escape, no empty segment, none that begins with a dot.
fn is_plain(path: &[u8]) -> bool {
    path.first() == Some(&b'/') && !path.contains(&b'%') && !path.windows(2).any(|pair| matches!(pair, b"//" | b"/."))
}

fn decoded(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = if byte == b'%' { after.first_chunk().and_then(|[high, low]| hex(*high, *low)) } else { None };
        out.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    out
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_spelling() {
        for (written, path) in [
            ("/api", "/api"),
            ("/", "/"),
            ("", "/"),
            ("api", "/api"),
            ("//api", "/api"),
            ("/%61pi", "/api"),
            ("/./api", "/api"),
            ("/%2e/api", "/api"),
            ("/x/../api", "/api"),
            ("/x/%2E%2e/api", "/api"),
            ("/x%2f..%2fapi", "/api"),
            ("/../../api", "/api"),
            ("/api/", "/api/"),
            ("/api//", "/api/"),
            ("/api/.", "/api/"),
            ("/api/x/..", "/api/"),
            ("/..", "/"),
            ("/api?x=/..", "/api"),
            ("/api#x", "/api"),
            ("/api%3Fx", "/api?x"),
            ("/%2561pi", "/%61pi"),
            ("/.hidden/...", "/.hidden/..."),
            ("/100%", "/100%"),
            ("/%zz/%4", "/%zz/%4"),
            ("/%ff", "/\u{fffd}"),
            ("/%E4%BD%A0", "/你"),
        ] {
            assert_eq!(normalized_path(written), path, "{written}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_path_without_detours(written in "[/.%a2ef?\u{e4}]{0,24}") {
            let path = normalized_path(&written).into_owned();
            prop_assert!(path.starts_with('/'));
            prop_assert!(!path.contains("//"));
            prop_assert!(!path.split('/').any(|segment| matches!(segment, "." | "..")), "{}", path);
        }
    }
}
