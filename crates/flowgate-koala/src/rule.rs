//! `[rules]`: `rule : [method] [conditions] [numbers] [result]`, and what each becomes in the engine.
//!
//! ```text
//! direct   a rule without limits
//! count    fixed count/time           time=86400 is the calendar day: fixed count/day tz=ZONE
//! base     fixed count/time after=base/day tz=ZONE
//! leak     sliding count/time
//! ```
//!
//! Invariant  A rule is called `koala-` and its number, and counts by its fields without those marked `{~}`: together
//!            they are Koala's key of a counter.

use flowgate::Limit;
use flowgate_engine::front::{Location, Report, did_you_mean, quoted};
use flowgate_engine::rules::{Action, Condition, Matcher};
use flowgate_engine::{Limits, RuleDef};

use super::condition;
use super::dict::Dicts;
use super::numbers::Numbers;
use super::piece::Piece;
use super::result::{KoalaResult, Results};
use super::sections::RuleLine;

/// A rule as it is written, and the engine's rule that it becomes.
#[derive(Clone, Debug)]
pub(crate) struct KoalaRule {
    /// The rule's number, from `return`. No two rules have the same number.
    pub(crate) number: u32,
    pub(crate) method: Method,
    /// The number of the rule's result.
    pub(crate) result: u32,
    /// The units that the two kinds of feedback give back.
    pub(crate) erase: [u64; 2],
    pub(crate) def: RuleDef,
    /// The text of the conditions.
    pub(crate) conditions: String,
    /// `time`, `count` and `base`; `None`: the rule does not give it.
    pub(crate) numbers: [Option<u64>; 3],
    /// The rule's whole line.
    pub(crate) written: String,
    /// The number of the rule's line in the file, from 1.
    pub(crate) line: u64,
    /// The comment above the rule's line.
    pub(crate) comment: Vec<String>,
}

/// How a rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Direct,
    Count,
    Base,
    Leak,
}

pub(crate) const METHODS: [(&str, Method); 4] =
    [("direct", Method::Direct), ("count", Method::Count), ("base", Method::Base), ("leak", Method::Leak)];

const FORM: &str = "rule : [count] [act=ask; qid=+] [time=60; count=5] [result=2; return=111]";

/// The most conditions of a rule, and the most fields by which a rule counts.
const MAX_CONDITIONS: usize = 32;

/// A rule with a `time` of this many seconds counts by calendar days.
const SECONDS_PER_DAY: u64 = 86_400;

/// What the reader of a rule needs from the rest of the file.
pub(super) struct Context<'a> {
    pub(super) dicts: &'a Dicts,
    pub(super) results: &'a Results,
    pub(super) tz: &'a str,
}

/// A rule and the place of its number.
pub(super) struct PlacedRule {
    pub(super) rule: KoalaRule,
    pub(super) number_at: Location,
}

/// Reads one rule. If it is wrong, reports it and returns `None`.
pub(super) fn read(report: &mut Report, line: &RuleLine<'_>, context: &Context<'_>) -> Option<PlacedRule> {
    let [method, conditions, limit, result] = brackets(report, line.line)?;
    let method = read_method(report, method.trim());
    let (when, by) = read_conditions(report, conditions, context.dicts).unzip();
    let conditions = conditions.trim().text.to_owned();
    let limit = Numbers::of_limit(report, limit);
    let limits = method.zip(limit.as_ref()).and_then(|(method, limit)| {
        check_limit(report, method, limit)?;
        limits(report, method, limit, context.tz)
    });
    let result = Numbers::of_result(report, result);
    let number = result.as_ref().and_then(|result| read_number(report, result));
    let answer = result.as_ref().and_then(|result| read_result(report, result, context.results));

    let (method, limits, limit) = (method?, limits?, limit?);
    let (number, answer, number_at) = (number?, answer?, result?.place("return"));
    let erase = ["erase1", "erase2"].map(|key| limit.get(key).unwrap_or(0));
    let numbers = ["time", "count", "base"].map(|key| limit.get(key));
    let (action, message) = match context.results.by_number.get(&answer) {
        Some(result) => (action(method, result), result.message().map(str::to_owned)),
        // The result is wrong, and its own line is already reported.
        None => (Action::Deny, None),
    };
    let def = RuleDef {
        when: when?,
        by: by?,
        limits,
        action,
        code: Some(number.into()),
        message,
        ..RuleDef::named(format!("koala-{number}"))
    };
    let (written, line_number) = (line.line.text.to_owned(), line.number);
    let comment = line.comment.iter().map(|text| (*text).to_owned()).collect();
    let rule = KoalaRule {
        number,
        method,
        result: answer,
        erase,
        def,
        conditions,
        numbers,
        written,
        line: line_number,
        comment,
    };
    Some(PlacedRule { rule, number_at })
}

/// The texts of the four brackets.
fn brackets<'t>(report: &mut Report, line: Piece<'t>) -> Option<[Piece<'t>; 4]> {
    let rest = match line.split_once(':') {
        Some((word, rest)) if word.trim().text.eq_ignore_ascii_case("rule") => rest,
        _ => {
            let message = format!("expected `rule : ..`, found {}", quoted(line.text));
            return report.error(line.at(), message).hint(FORM).refuse();
        }
    };
    let (mut found, mut rest) = (Vec::new(), rest.trim());
    while found.len() < 4 && rest.text.starts_with('[') {
        let Some(end) = rest.text.find(']') else {
            return report.error(rest.part(0, 1).at(), "this bracket is not closed").hint(FORM).refuse();
        };
        found.push(rest.part(1, end));
        rest = rest.from(end + 1).trim();
    }
    let count = found.len();
    match <[Piece<'t>; 4]>::try_from(found) {
        Ok(brackets) if rest.is_blank() => Some(brackets),
        Ok(_) => report.error(rest.at(), "nothing is expected behind the fourth bracket").hint(FORM).refuse(),
        Err(_) if !rest.is_blank() => {
            let message = format!("expected a bracket, found {}", quoted(rest.text));
            report.error(rest.at(), message).hint(FORM).refuse()
        }
        Err(_) => report.error(line.at(), format!("expected four brackets, found {count}")).hint(FORM).refuse(),
    }
}

fn read_method(report: &mut Report, piece: Piece<'_>) -> Option<Method> {
    let known = METHODS.iter().find(|(name, _)| *name == piece.text);
    if known.is_none() {
        let hint = did_you_mean(piece.text, METHODS.map(|(name, _)| name));
        let hint = hint.unwrap_or_else(|| "there are direct, count, base and leak".into());
        report.error(piece.at(), format!("unknown method {}", quoted(piece.text))).hint(hint).done();
    }
    known.map(|(_, method)| *method)
}

/// The conditions, and the fields that the rule counts by.
fn read_conditions(report: &mut Report, bracket: Piece<'_>, dicts: &Dicts) -> Option<(Vec<Condition>, Vec<String>)> {
    let before = report.errors();
    let (mut when, mut by, mut combined) = (Vec::<Condition>::new(), Vec::<&str>::new(), Vec::<&str>::new());
    for (index, item) in bracket.items(';').enumerate() {
        if index == MAX_CONDITIONS {
            report.error(item.at(), format!("a rule has at most {MAX_CONDITIONS} conditions")).done();
            break;
        }
        let Some(condition) = condition::read(report, item, dicts) else { continue };
        if condition.combined {
            combined.push(condition.field);
        } else if !by.contains(&condition.field) {
            by.push(condition.field);
        }
        when.extend(condition.conditions());
    }
    if when.is_empty() && report.errors() == before {
        let hint = "it would match every request; name a field, such as act=ask or ip=+";
        report.error(bracket.at(), "a rule needs a condition").hint(hint).done();
    }
    by.retain(|field| !combined.contains(field));
    by.sort_unstable();
    // Every condition except a negation fails on an empty value, so it already requires that the field is present.
    let positive = |condition: &Condition| !matches!(condition.matcher, Matcher::Present | Matcher::Not(_));
    let said: Vec<String> = when.iter().filter(|one| positive(one)).map(|one| one.field.clone()).collect();
    when.retain(|one| !matches!(one.matcher, Matcher::Present) || !said.contains(&one.field));
    (report.errors() == before).then(|| (when, by.into_iter().map(str::to_owned).collect()))
}

/// Reports numbers that do not fit the method, and warns of numbers without an effect.
fn check_limit(report: &mut Report, method: Method, numbers: &Numbers<'_>) -> Option<()> {
    if method == Method::Direct {
        return Some(());
    }
    if numbers.get("time").unwrap_or(0) == 0 {
        let message = "count, base and leak need a time of at least a second";
        let hint = "such as time=60, or time=86400 for the day";
        return report.error(numbers.place("time"), message).hint(hint).refuse();
    }
    if numbers.get("count").unwrap_or(0) == 0 {
        let message = "this rule is never exceeded: count is 0";
        let hint = "a rule that decides whenever it matches is a [direct] one";
        report.warning(numbers.place("count"), message).hint(hint).done();
    }
    if method == Method::Base && numbers.get("base").unwrap_or(0) == 0 {
        report.warning(numbers.place("base"), "without a base the rule works as a [count] one").done();
    }
    let idle = [("base", Method::Base), ("erase1", Method::Leak), ("erase2", Method::Leak)];
    for (key, owner) in idle.into_iter().filter(|(key, owner)| *owner != method && numbers.get(key).is_some()) {
        let name = METHODS.iter().find(|(_, known)| *known == owner).map_or("", |(name, _)| name);
        report.warning(numbers.place(key), format!("\"{key}\" has an effect on [{name}] rules only")).done();
    }
    Some(())
}

fn limits(report: &mut Report, method: Method, numbers: &Numbers<'_>, tz: &str) -> Option<Limits> {
    let get = |key| numbers.get(key).unwrap_or(0);
    let (time, count, base) = (get("time"), get("count"), get("base"));
    if method == Method::Direct {
        return Some(Limits::None);
    }
    if count == 0 {
        return Some(Limits::Fixed(vec![Limit::unlimited()]));
    }
    // With a zone, `1s` would mean a second of the calendar instead of a second from the first request.
    let plain = if time == 1 { "1000ms".to_owned() } else { format!("{time}s") };
    let text = match method {
        Method::Leak => format!("sliding {count}/{plain}"),
        Method::Base if base > 0 => format!("fixed {count}/{plain} after={base}/day tz={tz}"),
        _ if time == SECONDS_PER_DAY => format!("fixed {count}/day tz={tz}"),
        _ => format!("fixed {count}/{plain}"),
    };
    match text.parse() {
        Ok(limit) => Some(Limits::Fixed(vec![limit])),
        Err(error) => report.error(numbers.place("count"), error.to_string()).refuse(),
    }
}

fn read_number(report: &mut Report, numbers: &Numbers<'_>) -> Option<u32> {
    let number = numbers.get("return").and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
    if number.is_none() {
        let message = "a rule needs a return of at least 1";
        report.error(numbers.place("return"), message).hint("its number, which no other rule has").done();
    }
    number
}

fn read_result(report: &mut Report, numbers: &Numbers<'_>, results: &Results) -> Option<u32> {
    let Some(number) = numbers.get("result").and_then(|number| u32::try_from(number).ok()) else {
        let hint = "the number of a line of [result], such as result=2";
        return report.error(numbers.place("result"), "a rule needs a result").hint(hint).refuse();
    };
    if !results.is_known(number) {
        let known: Vec<String> = results.by_number.keys().take(20).map(u32::to_string).collect();
        let hint = format!("there are {}", known.join(", "));
        return report.error(numbers.place("result"), format!("[result] has no {number}")).hint(hint).refuse();
    }
    Some(number)
}

/// The action of an exceeded or direct rule, for a caller that does not use Koala's protocol.
fn action(method: Method, result: &KoalaResult) -> Action {
    match method {
        Method::Direct if result.passes() => Action::Allow,
        _ if result.wants_captcha() => Action::from("captcha"),
        _ => Action::Deny,
    }
}
