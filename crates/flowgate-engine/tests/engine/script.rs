//! Tests as scripts: rules, then one request a line with what must come of it, on virtual time.
//!
//! ```text
//! at 100s  take act=reply user=42       -> allow by reply, 4 left
//! at 100s  take act=reply user=42 x6    -> deny by reply, never
//! at 200s  take act=reply user=42 *4    -> allow by reply
//! ```
//!
//! `x6` is a cost of six, `*4` the same request four times.
//!
//! What is expected is a list of phrases, each of which must be among those that describe the decision.
//!
//! Several requests with `+` between them are one joint step, and `|` separates what is expected of each:
//!
//! ```text
//! at 100s  take user=42 + peek ip=::1   -> allow by user | deny by ip
//! ```

use flowgate::{MemoryStore, Op, Retry, Span, Time, Verdict};
use flowgate_engine::{
    Decision, Engine, JointDecision, Limits, Policy, Request, RuleDef,
    rules::{Action, BanDef, BanScope, Condition, Matcher},
};

/// Scripts count their seconds from here.
pub(crate) const START: u64 = 1_700_000_000;

pub(crate) fn at(seconds: u64) -> Time {
    Time::from_secs(START + seconds)
}

/// Runs a script against fresh counters: in memory, and in Redis where that is built in.
#[track_caller]
pub(crate) fn check(rules: &[RuleDef], script: &str) {
    run(&engine(rules), script);
    #[cfg(feature = "redis")]
    {
        let server = flowgate_testkit::redis::Redis::start();
        let mut redis = crate::redis_engine::RedisEngine::new(rules, server.connect());
        run_with("Redis", script, |requests, now| match requests {
            [("reset", request)] => vec![redis.reset(request, now)],
            [(op, request)] => vec![redis.decide(operation(op), request, now)],
            requests => panic!("{} requests at once", requests.len()),
        });
    }
}

pub(crate) fn engine(rules: &[RuleDef]) -> Engine {
    Engine::new(&policy(rules), MemoryStore::default()).unwrap()
}

pub(crate) fn policy(rules: &[RuleDef]) -> Policy {
    Policy { rules: rules.to_vec(), ..Policy::default() }
}

/// Runs a script; what an earlier one has left stays.
#[track_caller]
pub(crate) fn run(engine: &Engine, script: &str) {
    run_with("memory", script, |requests, now| match requests {
        [("reset", request)] => vec![engine.reset(request, now)],
        [(op, request)] => vec![engine.decide(operation(op), request, now)],
        requests => decisions(engine.decide_joint(&operations(requests), now)),
    });
}

#[track_caller]
fn run_with(store: &str, script: &str, mut decide: impl FnMut(&[(&str, Request<'_>)], Time) -> Vec<Decision>) {
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (step, expected) = line.split_once("->").unwrap_or_else(|| panic!("no `->` in: {line}"));
        let step = step.trim_start().strip_prefix("at ").unwrap_or_else(|| panic!("no `at` in: {line}")).trim_start();
        let (now, requests) = step.split_once(' ').unwrap_or_else(|| panic!("no request in: {line}"));
        let mut times = 1;
        let requests: Vec<_> = requests.split(" + ").map(|words| request(words, &mut times)).collect();
        for _ in 0..times {
            let found = decide(&requests, time(now));
            assert_eq!(found.len(), expected.split('|').count(), "{line}");
            for (found, expected) in found.iter().map(phrases).zip(expected.split('|')) {
                for phrase in expected.split(',').map(str::trim) {
                    let is_there = found.iter().any(|found| found == phrase);
                    assert!(is_there, "{line}\n  found in {store}: {}", found.join(", "));
                }
            }
        }
    }
}

/// `take act=reply user=42 x6 *4`
fn request<'a>(words: &'a str, times: &mut usize) -> (&'a str, Request<'a>) {
    let mut words = words.split_whitespace();
    let (op, mut request) = (words.next().unwrap_or_default(), Request::new());
    for word in words {
        match word.split_once('=') {
            Some((name, value)) => request.push(name, value),
            None => match word.split_at(1) {
                ("x", cost) => request = request.cost(cost.parse().unwrap()),
                ("*", count) => *times = count.parse().unwrap(),
                _ => panic!("neither a field nor a cost nor a count: {word}"),
            },
        }
    }
    (op, request)
}

fn operations<'a>(requests: &[(&str, Request<'a>)]) -> Vec<(Op, Request<'a>)> {
    requests.iter().map(|(op, request)| (operation(op), request.clone())).collect()
}

fn decisions(joint: JointDecision) -> Vec<Decision> {
    joint.parts().iter().map(|part| part.decision.clone()).collect()
}

fn operation(op: &str) -> Op {
    match op {
        "take" => Op::Take,
        "peek" => Op::Peek,
        "record" => Op::Record,
        "refund" => Op::Refund,
        other => panic!("unknown operation {other}"),
    }
}

/// `90s`, `1500ms`, `2m`, `1h` or `3d` after the start.
fn time(text: &str) -> Time {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let number: u64 = digits.parse().unwrap_or_else(|_| panic!("no time: {text}"));
    let nanos = match &text[digits.len()..] {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        unit => panic!("no unit: {unit}"),
    };
    at(0) + Span::from_nanos(number * nanos)
}

/// Everything there is to say about a decision.
fn phrases(decision: &Decision) -> Vec<String> {
    let mut phrases = vec![match decision.rule() {
        Some(rule) => format!("{} by {}", decision.action(), rule.name()),
        None => decision.action().to_owned(),
    }];
    let mut say = |phrase: String| phrases.push(phrase);
    say(if decision.matched() { "matched" } else { "unmatched" }.into());
    say(decision.remaining().map_or("no limit".into(), |remaining| format!("{remaining} left")));
    say(decision.limit().map_or("unlimited".into(), |limit| format!("of {limit}")));
    match decision.verdict() {
        Verdict::Deny(Retry::Never) => say("never".into()),
        Verdict::Deny(Retry::After(wait)) => say(format!("retry in {wait}")),
        Verdict::Allow { delay } if delay.is_zero() => say("at once".into()),
        Verdict::Allow { delay } => say(format!("after {delay}")),
    }
    say(format!("reset in {}", decision.reset_after()));
    say(decision.code().map_or("no code".into(), |code| format!("code {code}")));
    say(decision.message().as_ref().map_or("no message".into(), |message| format!("says {message}")));
    let exceeded = decision.exceeded().iter().map(|e| format!("{}: {}", e.rule.name(), e.limit));
    say(format!("exceeded [{}]", exceeded.collect::<Vec<_>>().join("; ")));
    let shadow = decision.shadow.iter().map(|rule| rule.name());
    say(format!("shadow [{}]", shadow.collect::<Vec<_>>().join(" ")));
    say(match decision.banned_until() {
        Some(until) => format!("banned until {}", until.since(at(0))),
        None => "not banned".into(),
    });
    phrases
}

/// A rule, written in a line.
pub(crate) trait Written: Sized {
    fn when(self, field: &str, matcher: &str) -> Self;
    fn by(self, fields: &str) -> Self;
    fn limits(self, limits: &[&str]) -> Self;
    fn action(self, word: &str) -> Self;
    fn count_denied(self) -> Self;
    fn shadow(self) -> Self;
    fn ban(self, after: u64, within: u64, lengths: &[u64], forget: u64) -> Self;
    fn everywhere(self) -> Self;
}

pub(crate) fn rule(name: &str) -> RuleDef {
    RuleDef::named(name)
}

impl Written for RuleDef {
    fn when(mut self, field: &str, matcher: &str) -> RuleDef {
        self.when.push(Condition::new(field, Matcher::parse(matcher).unwrap()));
        self
    }

    fn by(self, fields: &str) -> RuleDef {
        RuleDef { by: fields.split_whitespace().map(str::to_owned).collect(), ..self }
    }

    fn limits(self, limits: &[&str]) -> RuleDef {
        RuleDef { limits: Limits::Fixed(limits.iter().map(|limit| limit.parse().unwrap()).collect()), ..self }
    }

    fn action(self, word: &str) -> RuleDef {
        RuleDef { action: Action::from(word), ..self }
    }

    fn count_denied(self) -> RuleDef {
        RuleDef { count_denied: true, ..self }
    }

    fn shadow(self) -> RuleDef {
        RuleDef { shadow: true, ..self }
    }

    fn ban(self, after: u64, within: u64, lengths: &[u64], forget: u64) -> RuleDef {
        let s = Span::from_secs;
        let lengths = lengths.iter().copied().map(s).collect();
        RuleDef {
            ban: Some(BanDef { after, within: s(within), lengths, forget: s(forget), scope: BanScope::Rule }),
            ..self
        }
    }

    fn everywhere(mut self) -> RuleDef {
        self.ban.iter_mut().for_each(|ban| ban.scope = BanScope::Subject);
        self
    }
}
