//! `[result]`: `2 : { "Ret_type":2, "Err_no":10, .. }`, what callers are answered.
//!
//! Rule       The ten fields that clients read go by their names in any letter case and are written as they stand
//!            here. One that is missing is 0 or empty, `Ret_type` the number of the line. Fields of other names
//!            are answered as they are. `Ret_code` is that of the rule that decided.
//! Invariant  Numbers and texts only, in the order of the file; missing fields follow.

use std::collections::BTreeMap;

use flowgate_engine::front::{Location, Report, quoted};

use super::flat_object;
use super::piece::Piece;

/// The fields that clients know, and whether they are texts.
const FIELDS: [(&str, bool); 10] = [
    ("Ret_type", false),
    (RET_CODE, false),
    ("Err_no", false),
    (ERR_MSG, true),
    (STR_REASON, true),
    (NEED_VCODE, false),
    ("Vcode_len", false),
    ("Vcode_type", false),
    ("Other", true),
    ("Version", false),
];

const RET_CODE: &str = "Ret_code";
const ERR_MSG: &str = "Err_msg";
const STR_REASON: &str = "Str_reason";
const NEED_VCODE: &str = "Need_vcode";

/// The highest number of a result; Koala's are 32 bits wide.
const MAX_RESULT_NUMBER: i64 = i32::MAX as i64;

/// The most fields of a result.
const MAX_FIELDS: usize = 100;

/// A result object: the answer to a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KoalaResult {
    fields: Vec<(String, KoalaValue)>,
}

/// A captcha that the caller shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KoalaCaptcha {
    pub(crate) length: i64,
    pub(crate) kind: i64,
}

/// The value of a field of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KoalaValue {
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
}

impl KoalaResult {
    /// The fields in order, with the number of the rule that decided (0: none did).
    pub fn fields(&self, rule: u32) -> impl Iterator<Item = (&str, KoalaValue)> {
        self.fields.iter().map(move |(name, value)| {
            let value = if name == RET_CODE { KoalaValue::Number(rule.into()) } else { value.clone() };
            (name.as_str(), value)
        })
    }

    /// Whether callers read the result as a pass: `Err_no` is 0.
    pub fn passes(&self) -> bool {
        self.number("Err_no") == 0
    }

    /// Whether the caller shows a captcha.
    pub fn wants_captcha(&self) -> bool {
        self.number(NEED_VCODE) != 0
    }

    /// The captcha to show, if the result gives its length or its type.
    pub(crate) fn captcha(&self) -> Option<KoalaCaptcha> {
        let captcha = KoalaCaptcha { length: self.number("Vcode_len"), kind: self.number("Vcode_type") };
        (self.wants_captcha() && (captcha.length, captcha.kind) != (0, 0)).then_some(captcha)
    }

    /// The message for people; `None`: the result has none.
    pub fn message(&self) -> Option<&str> {
        [ERR_MSG, STR_REASON].into_iter().map(|name| self.text(name)).find(|text| !text.is_empty())
    }

    /// The result of a request that passes. Number 0: no rule matched. Number 1: no rule that matched was exceeded.
    fn pass(number: u32) -> KoalaResult {
        let mut pass = KoalaResult { fields: Vec::new() }.complete(number);
        if let Some((_, reason)) = pass.fields.iter_mut().find(|(name, _)| name == STR_REASON) {
            *reason = KoalaValue::Text("Allow".to_owned());
        }
        pass
    }

    /// Adds the missing fields. If no field was given, all are in their usual order.
    fn complete(mut self, number: u32) -> KoalaResult {
        for (name, is_text) in FIELDS {
            if !self.fields.iter().any(|(known, _)| known == name) {
                let value = match name {
                    "Ret_type" => KoalaValue::Number(number.into()),
                    _ if is_text => KoalaValue::Text(String::new()),
                    _ => KoalaValue::Number(0),
                };
                self.fields.push((name.to_owned(), value));
            }
        }
        self
    }

    fn number(&self, name: &str) -> i64 {
        if let Some(KoalaValue::Number(number)) = self.get(name) { *number } else { 0 }
    }

    fn text(&self, name: &str) -> &str {
        if let Some(KoalaValue::Text(text)) = self.get(name) { text } else { "" }
    }

    fn get(&self, name: &str) -> Option<&KoalaValue> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// The results of a file.
#[derive(Default)]
pub(super) struct Results {
    pub(super) by_number: BTreeMap<u32, KoalaResult>,
    /// The place of every number, also of wrong results.
    places: BTreeMap<u32, Location>,
}

impl Results {
    pub(super) fn read(report: &mut Report, lines: &[Piece<'_>]) -> Results {
        let mut results = Results::default();
        for line in lines {
            results.read_one(report, *line);
        }
        for number in [0, 1] {
            results.by_number.entry(number).or_insert_with(|| KoalaResult::pass(number));
        }
        results
    }

    pub(super) fn is_known(&self, number: u32) -> bool {
        self.by_number.contains_key(&number) || self.places.contains_key(&number)
    }

    fn read_one(&mut self, report: &mut Report, line: Piece<'_>) {
        const FORM: &str = "such as 2 : { \"Ret_type\":2, \"Err_no\":10, \"Str_reason\":\"Deny\" }";
        let Some((name, object)) = line.split_once(':') else {
            let message = format!("expected `number : {{ .. }}`, found {}", quoted(line.text));
            report.error(line.at(), message).hint(FORM).done();
            return;
        };
        let name = name.trim();
        let number = name.text.parse::<i64>().ok().filter(|number| (0..=MAX_RESULT_NUMBER).contains(number));
        let Some(number) = number.and_then(|number| u32::try_from(number).ok()) else {
            let message = format!("expected the number of a result, found {}", quoted(name.text));
            report.error(name.at(), message).hint(FORM).done();
            return;
        };
        if let Some(first) = self.places.insert(number, name.at()) {
            let message = format!("the result {number} is given twice; the last one counts");
            report.warning(name.at(), message).place("the first one is at", first).done();
        }
        if let Some(fields) = read_fields(report, object.trim()) {
            self.by_number.insert(number, KoalaResult { fields }.complete(number));
        }
    }
}

fn read_fields(report: &mut Report, object: Piece<'_>) -> Option<Vec<(String, KoalaValue)>> {
    let (entries, rest) = match flat_object::read(object) {
        Ok(read) => read,
        Err(wrong) => {
            return report.error(wrong.at.at(), format!("expected {}", wrong.expected)).refuse();
        }
    };
    if !rest.is_blank() {
        return report.error(rest.trim().at(), "nothing is expected behind the closing brace").refuse();
    }
    if entries.len() > MAX_FIELDS {
        return report.error(object.at(), format!("a result has at most {MAX_FIELDS} fields")).refuse();
    }
    let before = report.errors();
    let mut fields: Vec<(String, KoalaValue)> = Vec::new();
    for entry in entries {
        let known = FIELDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&entry.name));
        let value = match (known, entry.value) {
            (Some((name, true)), KoalaValue::Number(_)) => {
                report.error(entry.at.at(), format!("\"{name}\" is a text")).hint("put it in double quotes").done();
                continue;
            }
            (Some((name, false)), KoalaValue::Text(_)) => {
                report.error(entry.at.at(), format!("\"{name}\" is a whole number")).done();
                continue;
            }
            (_, value) => value,
        };
        let name = known.map_or(entry.name, |(name, _)| (*name).to_owned());
        match fields.iter_mut().find(|(earlier, _)| *earlier == name) {
            Some(earlier) => {
                let message = format!("{} is given twice; the last one counts", quoted(&name));
                report.warning(entry.at.at(), message).done();
                earlier.1 = value;
            }
            None => fields.push((name, value)),
        }
    }
    (report.errors() == before).then_some(fields)
}
