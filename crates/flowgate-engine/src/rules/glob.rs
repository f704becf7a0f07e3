//! Globs: `*` is any text within a segment, `**` any text at all.
//!
//! Rule       A glob covers the whole value. `*` matches any text without `/`, including the empty text. `**` (or more
//!            stars) matches any text, including the empty text. Everything else, `?` and `[` included, is itself.
//!            `/a/**` therefore matches `/a/` but not `/a`; in conditions on paths it is joined by `/a`.
//! Bound      Matching takes at most pattern times value steps and no memory, whatever the pattern.

use std::fmt;

/// A pattern with stars.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob {
    /// Runs of three and more stars are written as two.
    pattern: Box<str>,
}

impl Glob {
    pub(crate) fn new(pattern: &str) -> Glob {
        let mut short = String::with_capacity(pattern.len());
        for c in pattern.chars() {
            if c != '*' || !short.ends_with("**") {
                short.push(c);
            }
        }
        Glob { pattern: short.into() }
    }

    /// What every value that matches begins with.
    pub(crate) fn literal_prefix(&self) -> &str {
        self.pattern.split('*').next().unwrap_or_default()
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        matches(self.pattern.as_bytes(), value.as_bytes(), |wanted, found| wanted == found)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pattern)
    }
}

/// Walks pattern and value once, remembering where the last `*` and the last `**` could take one byte more.
///
/// After a later star of the same kind, an earlier one need not be tried again: whatever the earlier star could still
/// match, the later one can match as well. After a `**`, no star before it need be tried again. `fits` compares a byte
/// of the pattern, other than a star, with one of the value.
pub(crate) fn matches(pattern: &[u8], value: &[u8], fits: impl Fn(u8, u8) -> bool) -> bool {
    let (mut p, mut v) = (0, 0);
    let (mut within, mut across): (Option<Retry>, Option<Retry>) = (None, None);
    loop {
        if pattern[p..].starts_with(b"**") {
            p += 2;
            (within, across) = (None, Some(Retry { p, v }));
        } else if pattern[p..].starts_with(b"*") {
            p += 1;
            within = Some(Retry { p, v });
        } else if p == pattern.len() && v == value.len() {
            return true;
        } else if p < pattern.len() && v < value.len() && fits(pattern[p], value[v]) {
            (p, v) = (p + 1, v + 1);
        } else if let Some(retry) = within.as_mut().filter(|retry| value.get(retry.v).is_some_and(|&b| b != b'/')) {
            retry.v += 1;
            (p, v) = (retry.p, retry.v);
        } else if let Some(retry) = across.as_mut().filter(|retry| retry.v < value.len()) {
            retry.v += 1;
            (p, v, within) = (retry.p, retry.v, None);
        } else {
            return false;
        }
    }
}

/// Where to go on after a star takes one more byte: the position in the pattern after the star, and the end of the
/// star's text in the value.
struct Retry {
    p: usize,
    v: usize,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_stay_within_a_segment_and_double_stars_cross() {
        let table: &[(&str, &[&str], &[&str])] = &[
            ("/api/*", &["/api/", "/api/x"], &["/api", "/api/x/y", "/apix", "x/api/y"]),
            ("/api/**", &["/api/", "/api/x", "/api/x/y"], &["/api"]),
            ("/**/edit", &["/a/edit", "/a/b/edit", "//edit"], &["/edit", "/a/edit/"]),
            ("/*/edit", &["/a/edit", "//edit"], &["/a/b/edit"]),
            ("**.png", &[".png", "/a/b.png"], &["/a/b.png?x"]),
            ("/a*b*c", &["/abc", "/axbxc"], &["/ab/c", "/axb"]),
            ("**/x/*", &["/x/1", "a/x/x/1"], &["/x/1/2"]),
            ("*", &["", "ab"], &["a/b"]),
            ("a?*", &["a?", "a?b"], &["ab"]),
            ("日*", &["日本"], &["月"]),
        ];
        for (pattern, yes, no) in table {
            let glob = Glob::new(pattern);
            assert!(yes.iter().all(|value| glob.matches(value)), "{pattern} {yes:?}");
            assert!(no.iter().all(|value| !glob.matches(value)), "{pattern} {no:?}");
        }
    }

    fn naive(pattern: &[u8], value: &[u8]) -> bool {
        match pattern {
            [] => value.is_empty(),
            [b'*', b'*', rest @ ..] => (0..=value.len()).any(|taken| naive(rest, &value[taken..])),
            [b'*', rest @ ..] => {
                let segment = value.iter().take_while(|&&b| b != b'/').count();
                (0..=segment).any(|taken| naive(rest, &value[taken..]))
            }
            [first, rest @ ..] => value.first() == Some(first) && naive(rest, &value[1..]),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn a_glob_agrees_with_trying_every_split(pattern in "[ab/*]{0,10}", value in "[ab/]{0,12}") {
            let glob = Glob::new(&pattern);
            prop_assert_eq!(glob.matches(&value), naive(glob.pattern.as_bytes(), value.as_bytes()));
        }

        #[test]
        fn nothing_that_matches_lacks_the_prefix(pattern in "[ab/]{0,3}[ab/*]{0,6}", value in "[ab/]{0,9}") {
            let glob = Glob::new(&pattern);
            prop_assert!(!glob.matches(&value) || value.starts_with(glob.literal_prefix()));
        }
    }

    #[test]
    fn a_hostile_pattern_ends_soon() {
        let glob = Glob::new(&"**a*".repeat(200));
        assert!(!glob.matches(&"a/".repeat(100).repeat(20).replace('/', "b")[..100]));
    }
}
