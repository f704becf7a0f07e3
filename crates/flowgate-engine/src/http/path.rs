//! One spelling for a path: `//api`, `/%61pi` and `/./api` are `/api`, so no spelling slips past a rule.
//!
//! Rule       Percent escapes are decoded once (`%2561` becomes `%61`, not `a`), then empty and dot segments are
//!            resolved as a file system would: `..` takes the segment before it along and stops at the root.
//! Rule       Many servers also ignore other differences: `/login/`, `/LOGIN`, `/login;x` and `/login%20` reach the
//!            page of `/login`. A [`PathSpelling`] says which of these are ignored; by default all are. To count two
//!            pages together is safe, while two counters for one page would double its limit.
//! Rule       Every path has a spelling: a wrong escape stays as it is, and bytes that are not UTF-8 are
//!            [escaped](escaped_text).

use std::borrow::Cow;

use percent_encoding::percent_decode;

use super::text::escaped_text;

/// The field that holds a path, at the gate, in the tower layer and in access logs.
pub(crate) const PATH_FIELD: &str = "path";

/// A difference between two spellings of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPart {
    /// `/LOGIN`.
    Case,
    /// `/login;x`: what follows a semicolon within a segment.
    Parameters,
    /// `/login%20`: blanks and control characters around a segment.
    Spaces,
    /// `/login/`.
    TrailingSlash,
}

/// The differences that are ignored when a path is written in its one spelling.
///
/// ```
/// use flowgate_engine::http::{PathPart, PathSpelling};
///
/// for spelling in ["/login", "//login/", "/%4cogin", "/x/../login;jsessionid=1?page=2", "/login%20"] {
///     assert_eq!(PathSpelling::default().spell(spelling), "/login");
/// }
/// assert_eq!(PathSpelling::ignoring([PathPart::Case]).spell("/Login/"), "/login/");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSpelling {
    /// By the number of the part.
    ignored: [bool; 4],
}

impl Default for PathSpelling {
    /// Ignores all differences.
    fn default() -> PathSpelling {
        PathSpelling { ignored: [true; 4] }
    }
}

impl PathSpelling {
    /// Ignores these differences.
    pub fn ignoring(parts: impl IntoIterator<Item = PathPart>) -> PathSpelling {
        let mut ignored = [false; 4];
        parts.into_iter().for_each(|part| ignored[part as usize] = true);
        PathSpelling { ignored }
    }

    /// True if a difference is ignored.
    pub fn ignores(self, part: PathPart) -> bool {
        self.ignored[part as usize]
    }

    /// The one spelling of a path. A query or a fragment behind it is left out.
    pub fn spell<T: AsRef<[u8]> + ?Sized>(self, path: &T) -> Cow<'_, str> {
        let path = path.as_ref();
        let end = path.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(path.len());
        let path = &path[..end];
        match std::str::from_utf8(path) {
            Ok(text) if self.is_plain(path) => Cow::Borrowed(text),
            _ => {
                let path = self.without_parameters(path);
                let decoded: Cow<'_, [u8]> = percent_decode(&path).into();
                Cow::Owned(self.resolved(&decoded))
            }
        }
    }

    /// The text of a rule's condition in the spelling of paths. It may hold stars.
    pub(crate) fn of_written(self, written: &str) -> String {
        let segments: Vec<&str> = written.split('/').map(|segment| self.name(segment)).collect();
        let mut spelled = segments.join("/");
        if self.ignores(PathPart::TrailingSlash) && spelled.len() > 1 {
            spelled.truncate(spelled.trim_end_matches('/').len().max(1));
        }
        self.in_case(spelled)
    }

    /// True if servers find different pages for a path. Honest clients do not send such paths: they send `..`, if at
    /// all, between plain names, and browsers send a backslash as a slash.
    ///
    /// * A backslash is a slash to some servers.
    /// * `..` with parameters or blanks around it is `..` to some servers and a name to others: `/static/..;/` is `/`
    ///   in Tomcat.
    /// * `..` removes the segment before it. Servers differ in which one that is if a segment is empty, or empty
    ///   without its parameters or blanks (`/login/%20/..`), or holds an escaped slash (`/search/x%2f..%2f..%2fy`).
    pub fn is_ambiguous<T: AsRef<[u8]> + ?Sized>(self, path: &T) -> bool {
        let path = path.as_ref();
        if path.contains(&b'\\') {
            return true;
        }
        if !path.contains(&b'%') && !path.windows(2).any(|pair| pair == b"..") {
            return false;
        }
        let decoded = |segment| percent_decode(segment).collect();
        let segments: Vec<Vec<u8>> = path.split(|byte| *byte == b'/').map(decoded).collect();
        let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
        let leads_up = |segment: &Vec<u8>| segment.split(is_slash).any(|part| self.name_bytes(part) == b"..");
        let Some(last) = segments.iter().rposition(leads_up) else { return false };
        let is_plain = |segment: &Vec<u8>| !segment.iter().any(is_slash) && self.name_bytes(segment) == *segment;
        // The part before the first slash is empty in every path.
        segments[..=last]
            .iter()
            .enumerate()
            .any(|(index, segment)| index > 0 && segment.is_empty() || !is_plain(segment))
    }

    /// True if a path is in its one spelling already.
    fn is_plain(self, path: &[u8]) -> bool {
        let [case, parameters, spaces, trailing_slash] = self.ignored;
        let is_odd = |&byte: &u8| match byte {
            b'%' => true,
            b'A'..=b'Z' => case,
            b';' => parameters,
            0..=b' ' | 0x7f => spaces,
            // Other alphabets have upper case, too, and a replacement character must be escaped.
            0x80.. => true,
            _ => false,
        };
        let has_detour = path.windows(2).any(|pair| matches!(pair, b"//" | b"/."));
        let has_slash_too_many = trailing_slash && path.len() > 1 && path.ends_with(b"/");
        path.first() == Some(&b'/') && !has_detour && !has_slash_too_many && !path.iter().any(is_odd)
    }

    /// The path without parameters, before escapes are decoded: an escaped slash in a parameter does not end a segment.
    fn without_parameters(self, path: &[u8]) -> Cow<'_, [u8]> {
        if !self.ignores(PathPart::Parameters) || !path.contains(&b';') {
            return Cow::Borrowed(path);
        }
        let names = path.split(|byte| *byte == b'/').map(|segment| segment.split(|byte| *byte == b';').next());
        Cow::Owned(names.map(Option::unwrap_or_default).collect::<Vec<&[u8]>>().join(&b'/'))
    }

    /// Resolves a decoded path.
    fn resolved(self, decoded: &[u8]) -> String {
        let mut resolved: Vec<u8> = Vec::with_capacity(decoded.len() + 1);
        let mut ends_with_slash = true;
        for segment in decoded.split(|byte| *byte == b'/') {
            let name = self.name_bytes(segment);
            ends_with_slash = matches!(name, b"" | b"." | b"..");
            match name {
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
        if resolved.is_empty() || ends_with_slash && !self.ignores(PathPart::TrailingSlash) {
            resolved.push(b'/');
        }
        self.in_case(escaped_text(&resolved).into_owned())
    }

    /// A segment without its parameters and the blanks around it.
    fn name_bytes(self, segment: &[u8]) -> &[u8] {
        let mut name = segment;
        if self.ignores(PathPart::Parameters) {
            name = name.split(|byte| *byte == b';').next().unwrap_or_default();
        }
        if self.ignores(PathPart::Spaces) {
            let is_blank = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
            let start = name.iter().position(|byte| !is_blank(byte)).unwrap_or(name.len());
            let end = name.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
            name = &name[start..end];
        }
        name
    }

    fn name(self, segment: &str) -> &str {
        // The name is cut at ASCII characters only, so it stays UTF-8.
        std::str::from_utf8(self.name_bytes(segment.as_bytes())).unwrap_or(segment)
    }

    /// Lower case, character by character, so that the spelling of a part does not depend on its neighbours.
    fn in_case(self, text: String) -> String {
        if self.ignores(PathPart::Case) { text.chars().flat_map(char::to_lowercase).collect() } else { text }
    }
}

/// A name or a value of a query, decoded: `+` is a blank, percent escapes are decoded once.
///
/// ```
/// assert_eq!(flowgate_engine::http::decoded_query("a+b%2Bc"), "a b+c");
/// ```
pub fn decoded_query<T: AsRef<[u8]> + ?Sized>(text: &T) -> Cow<'_, str> {
    let text = text.as_ref();
    if !text.iter().any(|byte| matches!(byte, b'+' | b'%')) {
        return escaped_text(text);
    }
    let blanks: Vec<u8> = text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
    let decoded: Cow<'_, [u8]> = percent_decode(&blanks).into();
    Cow::Owned(escaped_text(&decoded).into_owned())
}

/// The values of a parameter of a query, decoded, in their order.
///
/// ```
/// let values: Vec<_> = flowgate_engine::http::query_values(b"a=1&b=x+y&%61=2", "a").collect();
/// assert_eq!(values, ["1", "2"]);
/// ```
pub fn query_values<'q>(query: &'q [u8], name: &str) -> impl Iterator<Item = Cow<'q, str>> {
    query.split(|byte| *byte == b'&').filter_map(move |part| {
        let equals = part.iter().position(|byte| *byte == b'=');
        let (key, value) = equals.map_or((part, &b""[..]), |at| (&part[..at], &part[at + 1..]));
        (decoded_query(key) == name).then(|| decoded_query(value))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact() -> PathSpelling {
        PathSpelling::ignoring([])
    }

    #[test]
    fn paths_have_one_spelling() {
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
            ("/%ff", "/\u{fffd}ff"),
            ("/%fe", "/\u{fffd}fe"),
            ("/%E4%BD%A0", "/你"),
            ("/Login;x /", "/Login;x /"),
        ] {
            assert_eq!(exact().spell(written), path, "{written}");
        }
        assert_eq!(exact().spell(b"/\xff"), exact().spell("/%ff"));
    }

    #[test]
    fn each_part_is_ignored_by_itself() {
        use PathPart::{Case, Parameters, Spaces, TrailingSlash};
        for (part, written, path, otherwise) in [
            (Case, "/LOGIN", "/login", "/LOGIN"),
            (Case, "/%C3%84", "/\u{e4}", "/\u{c4}"),
            (Parameters, "/login;x=1/a;b", "/login/a", "/login;x=1/a;b"),
            (Parameters, "/a/;x", "/a/", "/a/;x"),
            (Parameters, "/login;%2fx", "/login", "/login;/x"),
            (Parameters, "/login;%2f..%2fx/a", "/login/a", "/x/a"),
            (Spaces, "/login%20", "/login", "/login "),
            (Spaces, "/%09login%00/x", "/login/x", "/\tlogin\0/x"),
            (TrailingSlash, "/login/", "/login", "/login/"),
            (TrailingSlash, "/login/x/..", "/login", "/login/"),
            (TrailingSlash, "/", "/", "/"),
        ] {
            assert_eq!(PathSpelling::ignoring([part]).spell(written), path, "{part:?} {written}");
            assert_eq!(exact().spell(written), otherwise, "{part:?} {written}");
        }
        for written in ["/login", "/Login/", "/LOGIN;x", "/login%20", "//login;a;b/%20/"] {
            assert_eq!(PathSpelling::default().spell(written), "/login", "{written}");
        }
    }

    #[test]
    fn dots_that_hide_are_ambiguous() {
        let all = PathSpelling::default();
        for path in ["/static/..;/admin", "/static/..%20/admin", "/static/%2e%2e;x/admin", "/static/%20../admin"] {
            assert!(all.is_ambiguous(path) && !exact().is_ambiguous(path), "{path}");
            assert_eq!(all.spell(path), "/admin", "{path}");
        }
        for path in
            ["/static/../admin", "/a..b;c", "/...;", "/%2e%2e/", "/", "/x/../login;x", "/a%2fb", "/a%5cb", "//a/;"]
        {
            assert!(!all.is_ambiguous(path), "{path}");
        }
    }

    /// Servers differ in what `..` takes along.
    #[test]
    fn dots_behind_what_may_be_a_segment_are_ambiguous() {
        let all = PathSpelling::default();
        for path in ["/login/%20/..", "/login/;/..", "/login/.;x/..", "/login/a;%2f.."] {
            assert!(all.is_ambiguous(path), "{path}");
        }
        for path in
            ["/login//..", "/search/x%2f..%2f..%2fa", "/login%2f..", "/x%5c..%5clogin", "/x\\..\\login", "/api\\login"]
        {
            assert!(all.is_ambiguous(path) && exact().is_ambiguous(path), "{path}");
        }
    }

    #[test]
    fn conditions_are_spelled_like_paths() {
        let all = PathSpelling::default();
        for (written, spelled) in [
            ("/Login", "/login"),
            ("/login/", "/login"),
            ("/Admin/**", "/admin/**"),
            ("/a;x/*", "/a/*"),
            ("/", "/"),
            ("**.PNG", "**.png"),
            ("", ""),
        ] {
            assert_eq!(all.of_written(written), spelled, "{written}");
            assert_eq!(exact().of_written(written), written, "{written}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_path_without_detours(written in "[/.%a2efA; ?\u{e4}]{0,24}", ignored in any::<[bool; 4]>()) {
            let spelling = PathSpelling { ignored };
            let path = spelling.spell(&written).into_owned();
            prop_assert!(path.starts_with('/'));
            prop_assert!(!path.contains("//"));
            prop_assert!(!path.split('/').any(|segment| matches!(segment, "." | "..")), "{}", path);
        }

        /// What has no escapes left is in its one spelling.
        #[test]
        fn a_spelling_is_its_own_spelling(written in "[/.aA; \u{c4}]{0,24}", ignored in any::<[bool; 4]>()) {
            let spelling = PathSpelling { ignored };
            let path = spelling.spell(&written).into_owned();
            prop_assert_eq!(spelling.spell(&path), path.as_str());
            prop_assert_eq!(spelling.of_written(&path), path.as_str());
        }
    }
}
