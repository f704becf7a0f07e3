//! Conditions: `act=ask,answer{~}; qid>100; ip=10.0.24.*,10.1.0.0/16; uid !@ staff`.
//!
//! ```text
//! k=v              equal                       k!=v             not equal
//! k=a,b            one of                      k!=a,b           none of
//! k=+              any value
//! k=1-100          a number from 1 to 100      k!=1-100         not one of those
//! k>5   k<5        a number above, below       k!>5  k!<5       not one of those
//! k=10.0.24.*      k=10.0.0.1-10.0.0.9         k=10.0.0.1/24    addresses, also of IPv6; negated likewise
//! k @ dict         in the dict                 k !@ dict        not in it
//! k-IN-dict        (older) in the dict         k-NOTIN-dict     (older) not in it
//! {~} behind it    all values are counted together (older: {*})
//! ```
//!
//! Rule       A field that is missing or empty matches nothing, negated or not.
//! Rule       All conditions of a rule must hold, also several on one field.

use flowgate_engine::front::{Report, check_field, did_you_mean, quoted};
use flowgate_engine::rules::{AddressMatcher, Condition, Matcher, NumberRange};

use super::dict::Dicts;
use super::piece::Piece;

/// What a rule asks of one field.
pub(super) struct KoalaCondition<'t> {
    pub(super) field: &'t str,
    /// The matchers, which must all hold.
    pub(super) matchers: Vec<Matcher>,
    /// True if the rule does not count by this field (`{~}`).
    pub(super) combined: bool,
}

impl KoalaCondition<'_> {
    pub(super) fn conditions(self) -> impl Iterator<Item = Condition> {
        let field = self.field;
        self.matchers.into_iter().map(move |matcher| Condition::new(field, matcher))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Equal,
    Above,
    Below,
    In,
}

/// The operator between a field and its value.
struct Operator {
    sign: Sign,
    negated: bool,
    /// Where the operator starts, a `!` included, and where the value starts.
    start: usize,
    end: usize,
}

const SIGNS: [(&str, Sign, bool); 6] = [
    ("-NOTIN-", Sign::In, true),
    ("-IN-", Sign::In, false),
    ("=", Sign::Equal, false),
    (">", Sign::Above, false),
    ("<", Sign::Below, false),
    ("@", Sign::In, false),
];

/// A longer text is not a range: two IPv6 addresses are shorter. This bounds the work on a text of a million dashes.
const MAX_RANGE_BYTES: usize = 128;

/// The field whose values are addresses. Other fields can have texts such as `10.0.22621.1`, the version of a system.
const ADDRESS_FIELD: &str = "ip";

const PARTS: &str = "an IPv4 address has four numbers from 0 to 255";

const FORMS: &str = "such as act=ask, qid=+, qid>100, ip=10.0.24.* or uid @ dict";

/// Reads one condition. If it is wrong, reports it and returns `None`.
pub(super) fn read<'t>(report: &mut Report, piece: Piece<'t>, dicts: &Dicts) -> Option<KoalaCondition<'t>> {
    let Some(operator) = operator(piece.text) else {
        let message = format!("expected a condition, found {}", quoted(piece.text));
        return report.error(piece.at(), message).hint(FORMS).refuse();
    };
    let field = piece.part(0, operator.start).trim();
    if !check_field(report, field.text, if field.text.is_empty() { piece.at() } else { field.at() }) {
        return None;
    }
    let (value, combined) = without_mark(piece.from(operator.end).trim());
    if value.text.is_empty() {
        let message = format!("a value is missing behind {}", quoted(field.text));
        return report.error(piece.at(), message).hint("for any value write +").refuse();
    }
    if let Some(next) = swallowed(value.text) {
        let (at, hint) = (value.from(next).at(), "a `;` is missing before it");
        return report.error(at, "another condition begins within this one").hint(hint).refuse();
    }
    let matchers = match operator.sign {
        Sign::In => vec![dict(report, value, dicts)?],
        Sign::Above => vec![comparison(report, '>', value)?],
        Sign::Below => vec![comparison(report, '<', value)?],
        Sign::Equal => items(report, field.text, value, operator.negated)?,
    };
    let matchers = if operator.negated { negated(matchers) } else { one_of(matchers) };
    Some(KoalaCondition { field: field.text, matchers, combined })
}

/// Finds the first sign. A `!` before the sign belongs to it, also with blanks in between.
fn operator(text: &str) -> Option<Operator> {
    let found = SIGNS.iter().filter_map(|&(word, sign, negated)| Some((text.find(word)?, word, sign, negated)));
    let (start, word, sign, negated) = found.min_by_key(|&(start, ..)| start)?;
    let end = start + word.len();
    match text[..start].trim_end().strip_suffix('!') {
        Some(before) => Some(Operator { sign, negated: !negated, start: before.len(), end }),
        None => Some(Operator { sign, negated, start, end }),
    }
}

/// The value without its mark `{~}`, and whether it had the mark.
fn without_mark(value: Piece<'_>) -> (Piece<'_>, bool) {
    for mark in ["{~}", "{*}"] {
        if let Some(rest) = value.text.strip_suffix(mark) {
            return (value.part(0, rest.len()).trim(), true);
        }
    }
    (value, false)
}

/// Finds a second condition inside a value, as in `ask ip=+` (a separator is missing), and returns its position. Such a
/// rule would never match.
fn swallowed(value: &str) -> Option<usize> {
    let blank = value.find(char::is_whitespace)?;
    let rest = value[blank..].trim_start();
    let word = rest.find(|char: char| !char.is_alphanumeric() && char != '_')?;
    let sign = rest[word..].trim_start().trim_start_matches('!');
    (word > 0 && sign.starts_with(['=', '>', '<', '@'])).then_some(value.len() - rest.len())
}

fn dict(report: &mut Report, name: Piece<'_>, dicts: &Dicts) -> Option<Matcher> {
    if dicts.is_known(name.text) {
        return Some(Matcher::List(name.text.into()));
    }
    let hint = did_you_mean(name.text, dicts.names().filter(|_| !report.is_full()));
    let hint = hint.unwrap_or_else(|| format!("name it and its file in [dicts]: {} : conf/list.dat", name.text).into());
    report
        .error(name.at(), format!("there is no dict {}", quoted(name.text)))
        .maybe_hint(Some(hint).filter(|hint| hint.text.len() < 100))
        .done();
    None
}

fn comparison(report: &mut Report, sign: char, value: Piece<'_>) -> Option<Matcher> {
    let range = match NumberRange::is_number(value.text) {
        true => NumberRange::comparison(&format!("{sign}{}", value.text)),
        false => None,
    };
    if range.is_none() {
        let message = format!("expected a number, found {}", quoted(value.text));
        let hint = "there is > and <, no >= and <=: for 5 and above write >4";
        report.error(value.at(), message).maybe_hint(value.text.starts_with('=').then(|| hint.to_owned())).done();
    }
    range.map(Matcher::Number)
}

/// Reads the values between the commas.
fn items(report: &mut Report, field: &str, value: Piece<'_>, negated: bool) -> Option<Vec<Matcher>> {
    if value.text == "+" {
        if negated {
            let hint = "a field that is missing or empty matches nothing; leave the condition out";
            return report.error(value.at(), "\"not any value\" never matches").hint(hint).refuse();
        }
        return Some(vec![Matcher::Present]);
    }
    let mut matchers = Vec::new();
    let before = report.errors();
    for item in value.items(',') {
        match matcher(item.text) {
            Ok(Matcher::Equal(text)) if field == ADDRESS_FIELD && begins_like_an_address(&text) => {
                report.error(item.at(), format!("expected an address, found {}", quoted(item.text))).hint(PARTS).done();
            }
            Ok(matcher) => matchers.push(matcher),
            Err(expected) => {
                report.error(item.at(), format!("expected {expected}, found {}", quoted(item.text))).done();
            }
        }
    }
    if matchers.is_empty() && report.errors() == before {
        report.error(value.at(), "there is no value between the commas").done();
    }
    (report.errors() == before).then_some(matchers)
}

/// Whether a text begins with a number and a dot. If such a text is not an address, no address equals it.
fn begins_like_an_address(text: &str) -> bool {
    let rest = text.trim_start_matches(|char: char| char.is_ascii_digit());
    rest.len() < text.len() && rest.starts_with('.')
}

/// Reads one value. The error says what was expected.
fn matcher(text: &str) -> Result<Matcher, &'static str> {
    const RANGE: &str = "two numbers or two addresses, the lower one first";
    const STAR: &str = "a `*` for the last parts of an IPv4 address only, such as 10.0.24.*";
    if text == "+" {
        return Err("a value, for which + among others does not stand: by itself it is any value");
    }
    if let Some(range) = dashes(text)? {
        return Ok(range);
    }
    match AddressMatcher::parse(text) {
        // Koala has no ranges with two dots.
        Ok(Some(range)) if !text.contains("..") => Ok(Matcher::Address(range)),
        Err(expected) if !text.contains("..") => Err(expected),
        _ if text.contains('*') => Err(STAR),
        _ if text.starts_with(['{', '}', '[']) => Err("a value"),
        _ => Ok(Matcher::equal(text)),
    }
    .map_err(|expected| if expected.starts_with("two addresses") { RANGE } else { expected })
}

/// `1-100` or `10.0.0.1-10.0.0.9`. A text with dashes whose parts are neither numbers nor addresses is a text.
fn dashes(text: &str) -> Result<Option<Matcher>, &'static str> {
    const NUMBERS: &str = "two numbers, the lower one first, such as 1-100";
    const ADDRESSES: &str = "two addresses of one family, the lower one first, such as 10.0.0.1-10.0.0.9";
    if text.len() > MAX_RANGE_BYTES {
        return Ok(None);
    }
    let mut half = None;
    for (at, _) in text.match_indices('-').filter(|&(at, _)| at > 0) {
        let (low, high) = (text[..at].trim_end(), text[at + 1..].trim_start());
        match (NumberRange::is_number(low), NumberRange::is_number(high)) {
            (true, true) => {
                return NumberRange::between(low, high).map(|range| Some(Matcher::Number(range))).ok_or(NUMBERS);
            }
            (false, false) => {}
            _ => half = half.or(Some(NUMBERS)),
        }
        match (addresses(low), addresses(high)) {
            (Some(low), Some(high)) => {
                return low.up_to(&high).map(|range| Some(Matcher::Address(range))).ok_or(ADDRESSES);
            }
            (None, None) => {}
            _ => half = Some(ADDRESSES),
        }
    }
    half.map_or(Ok(None), Err)
}

/// Reads an address or a wildcard. Neither a network nor a range with two dots may stand beside a dash.
fn addresses(text: &str) -> Option<AddressMatcher> {
    if text.contains('/') || text.contains("..") {
        return None;
    }
    AddressMatcher::parse(text).ok().flatten()
}

fn one_of(mut matchers: Vec<Matcher>) -> Vec<Matcher> {
    match matchers.len() {
        1 => matchers,
        _ => vec![Matcher::OneOf(std::mem::take(&mut matchers))],
    }
}

/// Negates matchers: the field is present, and no matcher holds.
fn negated(matchers: Vec<Matcher>) -> Vec<Matcher> {
    let none = matchers.into_iter().map(|matcher| Matcher::Not(Box::new(matcher)));
    std::iter::once(Matcher::Present).chain(none).collect()
}
