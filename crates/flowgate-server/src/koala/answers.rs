//! The answers as bytes. The answer of a rule depends on its file alone, so it is written once.

use bytes::Bytes;
use flowgate_koala::{KoalaAnswer, KoalaResult, KoalaRules, KoalaValue};
use serde::Serializer;
use serde_json::Value;

/// The answer of a ban by hand if the file has no denial, as in Koala's sample file.
const BANNED: &[u8] = br#"{"Ret_type":2,"Ret_code":0,"Err_no":10,"Err_msg":"","Str_reason":"Deny","Need_vcode":0,"Vcode_len":0,"Vcode_type":0,"Other":"","Version":0}"#;

/// The answer of each rule.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    /// The answers of the rules, by the rule's position.
    of_rules: Vec<Bytes>,
    unmatched: Bytes,
    passed: Bytes,
    banned: Bytes,
}

impl Answers {
    /// The answers of these rules.
    pub(super) fn new(rules: &KoalaRules) -> Answers {
        let of_rule = |rule| written(rules.result_of(rule), rules.number(rule));
        Answers {
            of_rules: (0..rules.file.number_of_rules()).map(of_rule).collect(),
            unmatched: written(rules.pass(false), 0),
            passed: written(rules.pass(true), 0),
            banned: rules.denial().map_or_else(|| Bytes::from_static(BANNED), |denial| written(denial, 0)),
        }
    }

    /// The answer of the rule that decided.
    pub(super) fn one(&self, answer: &KoalaAnswer) -> Bytes {
        match answer.decided() {
            _ if answer.banned => self.banned.clone(),
            Some(rule) => self.of_rules[rule].clone(),
            None if answer.matched() => self.passed.clone(),
            None => self.unmatched.clone(),
        }
    }

    /// The answers of all exceeded rules, or the answer when none is.
    pub(super) fn list(&self, answer: &KoalaAnswer) -> Bytes {
        let mut exceeded = answer.exceeded().map(|rule| &self.of_rules[rule]).peekable();
        match exceeded.peek() {
            Some(_) => list(exceeded),
            None if answer.banned => list([&self.banned]),
            None => list([&self.unmatched]),
        }
    }
}

/// A list of answers that are JSON already.
fn list<'a>(answers: impl IntoIterator<Item = &'a Bytes>) -> Bytes {
    let mut out = Vec::with_capacity(256);
    for answer in answers {
        out.push(if out.is_empty() { b'[' } else { b',' });
        out.extend_from_slice(answer);
    }
    out.push(b']');
    out.into()
}

fn written(result: &KoalaResult, rule: u32) -> Bytes {
    let fields = result.fields(rule).map(|(name, value)| match value {
        KoalaValue::Number(number) => (name, Value::from(number)),
        KoalaValue::Text(text) => (name, Value::from(&*text)),
    });
    let mut out = Vec::with_capacity(192);
    // Neither a buffer that grows nor a text as a key can fail.
    let _ = serde_json::Serializer::new(&mut out).collect_map(fields);
    out.into()
}
