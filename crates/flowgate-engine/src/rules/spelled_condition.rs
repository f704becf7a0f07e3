//! Conditions on the fields `path`, `host` and `method`, in the spelling that the gate gives their values.
//!
//! Rule       A condition matches its text as written and in its [`Spelling`]: `/Login` matches `/Login`, which a caller
//!            of the API may send, and `/login`, which the gate makes of it. `Example.com:443` matches `example.com`,
//!            `get` matches `GET`.
//! Rule       A glob of paths that ends in `/**` also matches the path before it: `/admin/**` matches `/admin`. If the
//!            spelling ignores a slash at the end, a glob that ends in `/*` does so, too: `/api/*` matches `/api`.
//! Rule       A regular expression ignores case if the spelling does. The spelling changes nothing else in it.

use regex::RegexBuilder;

use super::glob::Glob;
use super::matcher::{MAX_REGEX_BYTES, Matcher};
use crate::http::{HOST_FIELD, METHOD_FIELD, PATH_FIELD, PathPart, PathSpelling, normalized_host, normalized_method};
use crate::lists::List;

/// How the gate spells the values of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spelling {
    Path(PathSpelling),
    Host,
    Method,
}

impl Spelling {
    /// `None`: the values of the field are as the client sends them.
    pub(crate) fn of_field(field: &str, paths: PathSpelling) -> Option<Spelling> {
        match field {
            PATH_FIELD => Some(Spelling::Path(paths)),
            HOST_FIELD => Some(Spelling::Host),
            METHOD_FIELD => Some(Spelling::Method),
            _ => None,
        }
    }

    /// The spelling of a value, or of a glob.
    pub(crate) fn of_written(self, text: &str) -> String {
        match self {
            Spelling::Path(paths) => paths.of_written(text),
            Spelling::Host => match normalized_host(text) {
                // `*:443` names a port, and the gate removes ports from hosts. Without its port the condition would
                // match every host, so it keeps the port and matches none.
                host if text.contains('*') && host.bytes().all(|byte| b"*.".contains(&byte)) => text.to_owned(),
                host => host.into_owned(),
            },
            Spelling::Method => normalized_method(text).into_owned(),
        }
    }

    fn ignores_case(self) -> bool {
        match self {
            Spelling::Path(paths) => paths.ignores(PathPart::Case),
            Spelling::Host | Spelling::Method => true,
        }
    }
}

/// The matcher for values in this spelling.
pub(crate) fn spelled(matcher: &Matcher, spelling: Spelling) -> Matcher {
    match matcher {
        Matcher::Equal(text) => any_of(vec![text.to_string(), spelling.of_written(text)], Matcher::equal),
        Matcher::Glob(glob) => any_of(globs(&glob.to_string(), spelling), text_or_glob),
        Matcher::Not(inner) => Matcher::Not(Box::new(spelled(inner, spelling))),
        Matcher::OneOf(matchers) => {
            let all = matchers.iter().flat_map(|matcher| match spelled(matcher, spelling) {
                Matcher::OneOf(several) => several,
                one => vec![one],
            });
            Matcher::OneOf(all.collect())
        }
        Matcher::Regex(regex) if spelling.ignores_case() => {
            let mut builder = RegexBuilder::new(regex.as_str());
            let builder = builder.case_insensitive(true).size_limit(MAX_REGEX_BYTES).dfa_size_limit(MAX_REGEX_BYTES);
            // An expression that would become too large without case stays as it is, and matches only its own case.
            builder.build().map_or_else(|_| matcher.clone(), |regex| Matcher::Regex(regex.into()))
        }
        other => other.clone(),
    }
}

/// The list with the spellings of its entries added; `None` if every entry is already in its spelling.
pub(super) fn spelled_list(list: &List, spelling: Spelling) -> Option<List> {
    let mut more = list.texts().filter_map(|text| Some(spelling.of_written(text)).filter(|spelled| spelled != text));
    let first = more.next()?;
    let mut spelled = list.clone();
    for text in std::iter::once(first).chain(more) {
        // A list that has reached its bound in bytes takes no more entries.
        spelled.add_text(&text);
    }
    Some(spelled)
}

fn globs(written: &str, spelling: Spelling) -> Vec<String> {
    let spelled = spelling.of_written(written);
    let mut globs = vec![written.to_owned()];
    if let Spelling::Path(paths) = spelling {
        for glob in [written, &spelled] {
            let within = if paths.ignores(PathPart::TrailingSlash) { glob.strip_suffix("/*") } else { None };
            if let Some(parent) = glob.strip_suffix("/**").or(within) {
                globs.push(if parent.is_empty() { "/" } else { parent }.to_owned());
            }
        }
    }
    globs.push(spelled);
    globs
}

fn text_or_glob(text: String) -> Matcher {
    if text.contains('*') { Matcher::Glob(Glob::new(&text)) } else { Matcher::equal(text) }
}

fn any_of(mut texts: Vec<String>, matcher: impl Fn(String) -> Matcher) -> Matcher {
    texts.sort_unstable();
    texts.dedup();
    match <[String; 1]>::try_from(texts) {
        Ok([only]) => matcher(only),
        Err(several) => Matcher::OneOf(several.into_iter().map(matcher).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_paths() -> Spelling {
        Spelling::Path(PathSpelling::default())
    }

    #[test]
    fn hosts_have_no_port_and_methods_have_upper_case() {
        for (spelling, written, expected) in [
            (Spelling::Host, "example.com", "example.com"),
            (Spelling::Host, "Example.com", "[Example.com, example.com]"),
            (Spelling::Host, "!example.com:443", "![example.com, example.com:443]"),
            (Spelling::Host, "*.Example.com:443", "[*.Example.com:443, *.example.com]"),
            (Spelling::Host, "*:443", "*:443"),
            (Spelling::Host, "*", "*"),
            (Spelling::Method, "get", "[GET, get]"),
            (Spelling::Method, "P*", "P*"),
        ] {
            let matcher = Matcher::parse(written).unwrap();
            assert_eq!(spelled(&matcher, spelling).to_string(), expected, "{written}");
        }
    }

    #[test]
    fn conditions_hold_of_what_is_written_and_of_its_spelling() {
        for (written, expected) in [
            ("/login", "/login"),
            ("/Login", "[/Login, /login]"),
            ("!/Login/", "![/Login/, /login]"),
            ("/admin/**", "[/admin, /admin/**]"),
            ("/API/*", "[/API, /API/*, /api, /api/*]"),
            ("/**", "[/, /**]"),
            ("/*/Edit", "[/*/Edit, /*/edit]"),
            ("*", "*"),
            ("!*", "!*"),
            ("@paths", "@paths"),
        ] {
            let matcher = Matcher::parse(written).unwrap();
            assert_eq!(spelled(&matcher, all_paths()).to_string(), expected, "{written}");
        }
        let exact = Spelling::Path(PathSpelling::ignoring([]));
        let exact = |written| spelled(&Matcher::parse(written).unwrap(), exact).to_string();
        assert_eq!((exact("/Login/").as_str(), exact("/Api/*").as_str()), ("/Login/", "/Api/*"));
        assert_eq!(exact("/Admin/**"), "[/Admin, /Admin/**]");
        let Matcher::Regex(regex) = spelled(&Matcher::parse("~^/V[0-9]+/").unwrap(), all_paths()) else {
            panic!("not a regular expression");
        };
        assert!(regex.is_match("/v1/x"));
    }

    #[test]
    fn lists_hold_both() {
        let list = List::from_values(["/Login", "/a"]).unwrap();
        let spelled = spelled_list(&list, all_paths()).unwrap();
        assert!(["/Login", "/login", "/a"].iter().all(|path| spelled.contains(path)));
        assert!(spelled_list(&list, Spelling::Path(PathSpelling::ignoring([]))).is_none());
    }
}
