//! Koala's rules in virtual time: conditions, methods, and what each endpoint asks.
//!
//! A test is a rule file and a script. `at` counts from [`START`], an hour before midnight in Shanghai:
//!
//! ```text
//! at 5s  browse  act=ask qid=7  -> 111      the rule that decides; `pass`: matched, not exceeded; `none`: no match
//!        through ..             -> ..       as browse, and counts (`_writeThrough`)
//!        complete ..            -> 1 2      every exceeded rule
//!        update ..                          counts
//!        erase1 ..                          gives back
//!        value 111 ..           -> 3        what is in the counter
//! ```

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod conditions;
mod fuzz;
mod import;
mod messages;
mod methods;
mod results;
#[cfg(feature = "redis")]
mod shared;

use std::path::Path;

use flowgate::{MemoryStore, Span, Time};
use flowgate_engine::config::Input;
use flowgate_engine::{Engine, Policy, Request};
use flowgate_koala::{KoalaAnswer, KoalaAsk, KoalaErase, KoalaFile, KoalaRules};

/// 2023-11-14, 23:00 in Shanghai.
const START: u64 = 1_699_974_000;

const RESULTS: &str = r#"
[result]
2 : { "Ret_type":2, "Ret_code":0, "Err_no":10, "Err_msg":"", "Str_reason":"Deny", "Need_vcode":0, "Vcode_len":0, "Vcode_type":0, "Other":"", "Version":0 }
3 : { "Ret_type":3, "Ret_code":0, "Err_no":20, "Err_msg":"", "Str_reason":"Vcode", "Need_vcode":1, "Vcode_len":4, "Vcode_type":0, "Other":"", "Version":0 }
"#;

/// A file of these rules, with two dicts: `vip` (7, 42, 10.0.0.0/8) and `staff` (boss).
fn file(rules: &str) -> KoalaFile {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/koala");
    let text = format!("[dicts]\nvip : dicts/vip.dat\nstaff : dicts/staff.dat\n[rules]\n{rules}\n{RESULTS}");
    match KoalaFile::load(Input::Text { name: "test.conf", base: &base, text: &text }, "Asia/Shanghai") {
        Ok(loaded) => loaded.file,
        Err(report) => panic!("{report}"),
    }
}

fn engine() -> Engine {
    Engine::new(&Policy::default(), MemoryStore::default()).unwrap()
}

/// `act=ask qid=7`.
fn request(fields: &str) -> Request<'_> {
    fields.split_whitespace().map(|field| field.split_once('=').unwrap()).collect()
}

fn time(text: &str) -> Time {
    let mut nanos = 0;
    for part in text.split_inclusive(['h', 'm', 's']) {
        let (number, unit) = part.split_at(part.len() - 1);
        let unit = [("h", 3600), ("m", 60), ("s", 1)].iter().find(|(name, _)| *name == unit).unwrap().1;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let fraction: u64 = format!("{fraction:0<9}").parse().unwrap();
        nanos += unit * (whole.parse::<u64>().unwrap() * 1_000_000_000 + fraction);
    }
    Time::from_secs(START) + Span::from_nanos(nanos)
}

fn shown(rules: &KoalaRules, answer: &KoalaAnswer) -> String {
    match answer.decided() {
        Some(rule) => rules.number(rule).to_string(),
        None if answer.matched() => "pass".to_owned(),
        None => "none".to_owned(),
    }
}

/// A store for the counters of Koala's rules.
trait Counters {
    fn ask(&mut self, rules: &KoalaRules, ask: KoalaAsk, request: &Request<'_>, now: Time) -> KoalaAnswer;
    fn erase(&mut self, rules: &KoalaRules, erase: KoalaErase, request: &Request<'_>, now: Time);
    fn value(&mut self, rules: &KoalaRules, number: u32, request: &Request<'_>, now: Time) -> Option<u64>;
}

impl Counters for Engine {
    fn ask(&mut self, rules: &KoalaRules, ask: KoalaAsk, request: &Request<'_>, now: Time) -> KoalaAnswer {
        rules.decide(self, ask, request, now)
    }

    fn erase(&mut self, rules: &KoalaRules, erase: KoalaErase, request: &Request<'_>, now: Time) {
        rules.feedback(self, erase, request, now);
    }

    fn value(&mut self, rules: &KoalaRules, number: u32, request: &Request<'_>, now: Time) -> Option<u64> {
        rules.value(self, number, request, now)
    }
}

/// Runs a script against a file, on every store.
#[track_caller]
fn check(rules: &str, script: &str) {
    let mut engine = engine();
    let rules = KoalaRules::new(file(rules), engine.memory(), None).unwrap();
    run(&mut engine, &rules, script, "in memory");
    #[cfg(feature = "redis")]
    run(&mut shared::Shared::start(), &rules, script, "in Redis");
}

#[track_caller]
fn run(counters: &mut impl Counters, rules: &KoalaRules, script: &str, place: &str) {
    let mut now = time("0s");
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (asked, expected) = line.split_once("->").unwrap_or((line, ""));
        let mut words = asked.trim();
        if let Some(rest) = words.strip_prefix("at ") {
            let (at, rest) = rest.split_once(' ').unwrap();
            (now, words) = (time(at), rest.trim());
        }
        let (verb, rest) = words.split_once(' ').unwrap();
        let found = match verb {
            "browse" => shown(rules, &counters.ask(rules, KoalaAsk::Browse, &request(rest), now)),
            "through" => shown(rules, &counters.ask(rules, KoalaAsk::BrowseAndCount, &request(rest), now)),
            "complete" => {
                let answer = counters.ask(rules, KoalaAsk::Complete, &request(rest), now);
                answer.exceeded().map(|rule| rules.number(rule).to_string()).collect::<Vec<_>>().join(" ")
            }
            "update" => {
                counters.ask(rules, KoalaAsk::Update, &request(rest), now);
                String::new()
            }
            "erase1" | "erase2" => {
                let erase = if verb == "erase1" { KoalaErase::Erase1 } else { KoalaErase::Erase2 };
                counters.erase(rules, erase, &request(rest), now);
                String::new()
            }
            "value" => {
                let (number, rest) = rest.split_once(' ').unwrap();
                let value = counters.value(rules, number.parse().unwrap(), &request(rest), now);
                value.map_or("unknown".to_owned(), |value| value.to_string())
            }
            other => panic!("no such verb: {other}"),
        };
        assert_eq!(found, expected.trim(), "{line} ({place})");
    }
}
