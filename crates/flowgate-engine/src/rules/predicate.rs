//! Compiled conditions: a [`Matcher`] whose lists are at hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;

use super::fields::Value;
use super::glob::Glob;
use super::matcher::{AddressMatcher, Matcher};
use super::number::NumberRange;
use crate::address::AddressRange;
use crate::lists::List;

/// What must hold of a value.
#[derive(Clone, Debug)]
pub(crate) enum Predicate {
    Equal(Box<str>),
    Present,
    Absent,
    Not(Box<Predicate>),
    /// One of many texts (sorted), or one of other predicates.
    OneOf {
        texts: Box<[Box<str>]>,
        others: Box<[Predicate]>,
    },
    Number(NumberRange),
    Address(AddressRange),
    Glob(Glob),
    Regex(Arc<Regex>),
    List(Arc<List>),
}

impl Predicate {
    /// The predicate of a matcher. The error is the name of a list that does not exist.
    pub(crate) fn compile<'m>(matcher: &'m Matcher, lists: &BTreeMap<String, Arc<List>>) -> Result<Predicate, &'m str> {
        Ok(match matcher {
            Matcher::Equal(text) => Predicate::Equal(text.clone()),
            Matcher::Present => Predicate::Present,
            Matcher::Absent => Predicate::Absent,
            Matcher::Not(inner) => Predicate::Not(Box::new(Predicate::compile(inner, lists)?)),
            Matcher::OneOf(matchers) => {
                let (mut texts, mut others) = (Vec::new(), Vec::new());
                for matcher in matchers {
                    match Predicate::compile(matcher, lists)? {
                        Predicate::Equal(text) => texts.push(text),
                        other => others.push(other),
                    }
                }
                texts.sort_unstable();
                Predicate::OneOf { texts: texts.into(), others: others.into() }
            }
            Matcher::Number(range) => Predicate::Number(range.clone()),
            Matcher::Address(AddressMatcher(range)) => Predicate::Address(*range),
            Matcher::Glob(glob) => Predicate::Glob(glob.clone()),
            Matcher::Regex(regex) => Predicate::Regex(Arc::clone(regex)),
            Matcher::List(name) => Predicate::List(Arc::clone(lists.get(&**name).ok_or(&**name)?)),
        })
    }

    /// Whether the predicate holds for a field's value, or for an absent field.
    pub(crate) fn holds(&self, value: Option<Value<'_, '_>>) -> bool {
        match value {
            Some(value) => self.holds_of(value),
            None => self.holds_of_nothing(),
        }
    }

    fn holds_of(&self, value: Value<'_, '_>) -> bool {
        match self {
            Predicate::Equal(text) => **text == *value.text,
            Predicate::Present => !value.text.is_empty(),
            Predicate::Absent => value.text.is_empty(),
            Predicate::Not(inner) => !inner.holds_of(value),
            Predicate::OneOf { texts, others } => {
                texts.binary_search_by(|text| (**text).cmp(value.text)).is_ok()
                    || others.iter().any(|other| other.holds_of(value))
            }
            Predicate::Number(range) => range.contains(value.text),
            Predicate::Address(range) => value.address().is_some_and(|address| range.contains(address)),
            Predicate::Glob(glob) => glob.matches(value.text),
            Predicate::Regex(regex) => regex.is_match(value.text),
            Predicate::List(list) => list.holds(value.text, || value.address()),
        }
    }

    fn holds_of_nothing(&self) -> bool {
        match self {
            Predicate::Absent => true,
            Predicate::OneOf { others, .. } => others.iter().any(Predicate::holds_of_nothing),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fields::FieldNames;
    use super::*;
    use crate::Request;

    fn predicate(matcher: &Matcher) -> Predicate {
        let vip = List::parse("7\n42\n10.0.0.0/8").unwrap();
        Predicate::compile(matcher, &BTreeMap::from([("vip".to_owned(), Arc::new(vip))])).unwrap()
    }

    fn holds(matcher: &str, value: Option<&str>) -> bool {
        with_value(value, |value| predicate(&Matcher::parse(matcher).unwrap()).holds(value))
    }

    /// Lends a value, as a request would.
    fn with_value<R>(text: Option<&str>, look: impl FnOnce(Option<Value<'_, '_>>) -> R) -> R {
        let mut names = FieldNames::default();
        let id = names.number("x").unwrap();
        let request: Request<'_> = text.map(|text| ("x", text)).into_iter().collect();
        look(names.read(&request).get(id))
    }

    #[test]
    fn every_form_matches_what_it_says() {
        let table: &[(&str, &[&str], &[&str])] = &[
            ("reply", &["reply"], &["Reply", "reply ", ""]),
            ("*", &["x", "*"], &[""]),
            ("!*", &[""], &["x"]),
            ("!x", &["y", ""], &["x"]),
            ("> 100", &["101", "100.5", "99999999999999999999999"], &["100", "5", "x", "", "1e9"]),
            (">=100", &["100", "100.0"], &["99.999"]),
            ("< 5", &["4.9", "-5"], &["5", "x"]),
            ("<= 5", &["5.000"], &["5.001"]),
            ("1..100", &["1", "100", "50.5", "+7"], &["0", "101", "x"]),
            ("-5..-1", &["-3"], &["0", "-6"]),
            ("!1..100", &["0", "x"], &["50"]),
            ("10.0.0.0/8", &["10.1.2.3", "::ffff:10.1.2.3"], &["11.0.0.0", "10.0.0.0/8", "x"]),
            ("!10.0.0.0/8", &["11.0.0.0", "x"], &["10.1.2.3"]),
            ("10.0.0.1..10.0.0.9", &["10.0.0.1", "10.0.0.9"], &["10.0.0.10"]),
            ("10.0.24.*", &["10.0.24.0", "10.0.24.255"], &["10.0.25.0"]),
            ("10.0.0.1", &["10.0.0.1", "::ffff:10.0.0.1", "::ffff:a00:1"], &["10.0.0.2"]),
            ("2001:db8::/32", &["2001:db8::1", "2001:0DB8:0:0:0:0:0:1"], &["2001:db9::"]),
            ("::1", &["0:0:0:0:0:0:0:1"], &["::2"]),
            ("/api/*", &["/api/x"], &["/api/x/y"]),
            ("!/api/**", &["/"], &["/api/x/y"]),
            ("1.2.*", &["1.2.9"], &["1.3.0"]),
            ("~^/v[0-9]+/", &["/v1/x"], &["/vx/", "x/v1/"]),
            ("!~bot", &["human"], &["a bot b"]),
            ("@vip", &["7", "42", "10.9.9.9"], &["8", "11.0.0.1"]),
            ("!@vip", &["8", ""], &["7"]),
            ("a..b", &["a..b"], &["a", "b"]),
        ];
        for (matcher, yes, no) in table {
            assert!(yes.iter().all(|value| holds(matcher, Some(value))), "{matcher} {yes:?}");
            assert!(no.iter().all(|value| !holds(matcher, Some(value))), "{matcher} {no:?}");
            assert_eq!(holds(matcher, None), *matcher == "!*", "{matcher} of an absent field");
        }
    }

    #[test]
    fn one_of_takes_any_form() {
        let parts = ["b", "a", "10.0.0.0/8", "/x/*"].map(|part| Matcher::parse(part).unwrap());
        let any = predicate(&Matcher::OneOf(parts.to_vec()));
        for (value, expected) in [("a", true), ("b", true), ("10.2.3.4", true), ("/x/y", true), ("c", false)] {
            assert_eq!(with_value(Some(value), |value| any.holds(value)), expected, "{value}");
        }
        assert!(!any.holds(None));
        let or_absent = predicate(&Matcher::OneOf(vec![Matcher::equal("a"), Matcher::Absent]));
        assert!(or_absent.holds(None) && with_value(Some("a"), |value| or_absent.holds(value)));
    }

    #[test]
    fn a_literal_is_taken_as_it_is() {
        for text in ["*literal", "!x", "10.0.0.0/8", "~x", "@vip", "> 5", ""] {
            let literal = predicate(&Matcher::equal(text));
            assert!(with_value(Some(text), |value| literal.holds(value)), "{text}");
            assert!(!literal.holds(None), "{text}");
        }
    }

    #[test]
    fn what_begins_like_a_form_but_is_wrong_is_an_error() {
        let wrong = [
            ("10.0.0.0/33", "address `10.0.0.0/33`: expected a prefix length from 0 to 32 after the slash"),
            ("> x", "number `> x`: expected a number after the sign, such as > 100"),
            ("9..1", "number `9..1`: expected two numbers, the lower one first, such as 1..100"),
            ("1..x", "number `1..x`: expected two numbers, the lower one first, such as 1..100"),
            ("@", "list ``: expected the name of a list after the `@`: letters, digits, _ . -"),
            ("!!x", "negation `!!x`: expected one `!` only; { eq = \"..\" } takes a text literally"),
            ("~(", "regex `(`: expected a regular expression (unclosed group)"),
            (
                "~(a{1000}){1000}",
                "regex `(a{1000}){1000}`: expected a smaller regular expression: at most 1 MB compiled",
            ),
        ];
        for (text, message) in wrong {
            assert_eq!(Matcher::parse(text).unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_shown_reads_back(
            text in r"[!~@<>=*/.:\-a-f0-9(){} ]{0,12}|\PC{0,12}", value in r"[*/.:\-a-f0-9]{0,12}|\PC{0,8}"
        ) {
            if let Ok(matcher) = Matcher::parse(&text) {
                if matcher.lists().next().is_some() {
                    return Ok(());
                }
                let found = with_value(Some(&value), |value| predicate(&matcher).holds(value));
                let again = Matcher::parse(&matcher.to_string()).unwrap();
                prop_assert_eq!(with_value(Some(&value), |value| predicate(&again).holds(value)), found);
            }
        }

        #[test]
        fn no_list_panics(text in r"([0-9a-f./:*# ]{0,20}\r?\n){0,5}|\PC{0,40}", value in r"[0-9a-f.:]{0,12}") {
            if let Ok(list) = List::parse(&text) {
                list.contains(&value);
            }
        }
    }
}
