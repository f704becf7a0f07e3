//! A decision as values of HTTP headers. This module formats numbers and knows no HTTP.
//!
//! ```text
//! RateLimit-Policy: "reply";q=5;w=60       what is granted: at most 5 at once, as much again in 60 seconds
//! RateLimit: "reply";r=3;t=30              what is left, and after how many seconds that changes for the better
//! X-RateLimit-Limit: 5                     the same for older clients
//! X-RateLimit-Remaining: 3
//! X-RateLimit-Reset: 30
//! Retry-After: 12                          on a denial that a wait helps against
//! ```
//!
//! Rule       Names and parameters follow draft-ietf-httpapi-ratelimit-headers; both `RateLimit` fields are structured
//!            fields (RFC 9651), whose integers have 15 digits at most.
//! Rule       Seconds are rounded up, remaining units down. On a denial `t` is the wait of `Retry-After`, so a client
//!            that obeys either header is never early.
//! Rule       For a window below a second `w` is left out: rounded up to a second, a limit of 1 in 2 ms would read as
//!            1 a second instead of 500.

use std::fmt;

use flowgate::{Retry, Span, Verdict};

use crate::decision::Decision;

/// The largest integer of a structured field.
const MAX_STRUCTURED_INTEGER: u64 = 999_999_999_999_999;

/// The limit behind a decision, as numbers for headers.
///
/// ```
/// use flowgate::{MemoryStore, Op, Time};
/// use flowgate_engine::{Engine, Limits, Policy, Request, RuleDef, http::Quota};
///
/// let reply = RuleDef { limits: Limits::Fixed(vec!["5/60s".parse()?]), ..RuleDef::named("reply") };
/// let engine = Engine::new(&Policy { rules: vec![reply], ..Policy::default() }, MemoryStore::default())?;
/// let decision = engine.decide(Op::Take, &Request::new(), Time::from_secs(1_700_000_000));
///
/// let quota = Quota::from_decision(&decision).expect("a limit was asked");
/// assert_eq!(quota.policy_header().to_string(), r#""reply";q=5;w=60"#);
/// assert_eq!(quota.header().to_string(), r#""reply";r=4;t=60"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota<'d> {
    /// The rule's name, which is also the name of its policy.
    pub policy: &'d str,
    /// The most units at once: `q`, `X-RateLimit-Limit`.
    pub limit: u64,
    /// The seconds in which as much is granted again: `w`.
    pub window: Option<u64>,
    /// The remaining units: `r`, `X-RateLimit-Remaining`.
    pub remaining: u64,
    /// The seconds until a denied request passes, or all is as if never used: `t`, `X-RateLimit-Reset`.
    pub reset: u64,
}

impl<'d> Quota<'d> {
    /// The numbers of a decision by rules; `None` if no limit took part in it.
    pub fn from_decision(decision: &'d Decision) -> Option<Quota<'d>> {
        let policy = decision.rule()?.name();
        let (limit, remaining) = (decision.limit()?, decision.remaining()?);
        let reset = match decision.verdict() {
            Verdict::Deny(Retry::After(wait)) => at_least_one_second(wait),
            _ => decision.reset_after().as_secs_ceil(),
        };
        let whole = |window: &Span| *window >= Span::from_secs(1);
        let window = decision.window().filter(whole).map(Span::as_secs_ceil);
        Some(Quota {
            policy,
            limit: limit.min(MAX_STRUCTURED_INTEGER),
            window,
            remaining: remaining.min(MAX_STRUCTURED_INTEGER),
            reset,
        })
    }

    /// The value of `RateLimit-Policy`.
    pub fn policy_header(self) -> impl fmt::Display + 'd {
        fmt::from_fn(move |f| self.write_policy(f))
    }

    /// Writes the value of `RateLimit-Policy`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_policy(&self, out: &mut impl fmt::Write) -> fmt::Result {
        write_name(out, self.policy)?;
        write_parameter(out, ";q=", self.limit)?;
        match self.window {
            Some(window) => write_parameter(out, ";w=", window),
            None => Ok(()),
        }
    }

    /// The value of `RateLimit`.
    pub fn header(self) -> impl fmt::Display + 'd {
        fmt::from_fn(move |f| self.write(f))
    }

    /// Writes the value of `RateLimit`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        write_name(out, self.policy)?;
        write_parameter(out, ";r=", self.remaining)?;
        write_parameter(out, ";t=", self.reset)
    }
}

fn write_name(out: &mut impl fmt::Write, policy: &str) -> fmt::Result {
    out.write_str("\"")?;
    out.write_str(policy)?;
    out.write_str("\"")
}

/// Numbers are written by `itoa`: every answer of a gate has four of them, and `write!` takes several times as long.
fn write_parameter(out: &mut impl fmt::Write, name: &str, number: u64) -> fmt::Result {
    out.write_str(name)?;
    out.write_str(itoa::Buffer::new().format(number))
}

impl Decision {
    /// The value of `Retry-After`: seconds, rounded up, at least 1; `None` when it was allowed or no wait helps.
    pub fn retry_after_header(&self) -> Option<u64> {
        self.retry_after().map(at_least_one_second)
    }

    /// The names of the rules that denied it, each once, for `violated-policies` of a problem document.
    pub fn violated_policies(&self) -> impl Iterator<Item = &str> {
        // Those of a rule stand next to each other.
        let exceeded = self.exceeded().iter().enumerate().filter_map(|(index, exceeded)| {
            let before = index.checked_sub(1).map(|before| self.exceeded()[before].rule.name());
            Some(exceeded.rule.name()).filter(|name| before != Some(name))
        });
        let decided = self.rule().filter(|_| !self.allowed() && self.exceeded().is_empty());
        exceeded.chain(decided.map(|rule| rule.name()))
    }
}

fn at_least_one_second(wait: Span) -> u64 {
    wait.as_secs_ceil().max(1)
}

#[cfg(test)]
mod tests {
    use flowgate::{MemoryStore, Op, Time};

    use super::*;
    use crate::{Engine, Request, config::Config};

    const START: Time = Time::from_secs(1_700_000_000);

    /// The two `RateLimit` fields and `Retry-After` of the last of `takes` requests under `limits`.
    #[track_caller]
    fn check(limits: &str, takes: usize, policy: &str, left: &str, retry_after: Option<u64>) {
        let toml = format!("rule = [{{ name = \"reply\", limits = {limits} }}]");
        let engine = Engine::new(&Config::from_toml(&toml).unwrap().policy, MemoryStore::default()).unwrap();
        let decide = |_| engine.decide(Op::Take, &Request::new(), START);
        let decision = (0..takes).map(decide).last().unwrap();
        let quota = Quota::from_decision(&decision).unwrap();
        assert_eq!(quota.policy_header().to_string(), policy);
        assert_eq!(quota.header().to_string(), left);
        assert_eq!(decision.retry_after_header(), retry_after);
        if let Some(wait) = retry_after {
            let then = START + Span::from_secs(wait);
            assert!(engine.decide(Op::Peek, &Request::new(), then).allowed(), "Retry-After is early");
        }
    }

    #[test]
    fn headers_are_right_for_every_algorithm() {
        check("[\"5/60s\"]", 1, "\"reply\";q=5;w=60", "\"reply\";r=4;t=60", None);
        check("[\"5/60s\"]", 6, "\"reply\";q=5;w=60", "\"reply\";r=0;t=60", Some(60));
        check("[\"bucket 30/60s burst=15\"]", 1, "\"reply\";q=15;w=30", "\"reply\";r=14;t=2", None);
        check("[\"bucket 30/60s burst=15\"]", 16, "\"reply\";q=15;w=30", "\"reply\";r=0;t=2", Some(2));
        check("[\"pace 500/s\"]", 2, "\"reply\";q=1", "\"reply\";r=0;t=1", None);
        check("[\"approx 9/1500ms\"]", 1, "\"reply\";q=9;w=2", "\"reply\";r=8;t=3", None);
        check("[\"fixed 2/day tz=UTC\"]", 3, "\"reply\";q=2;w=86400", "\"reply\";r=0;t=6400", Some(6400));
        check("[\"fixed 2/month tz=UTC\"]", 1, "\"reply\";q=2", "\"reply\";r=1;t=1388800", None);
        check("[\"fixed 1/5s after=10/day\"]", 1, "\"reply\";q=10", "\"reply\";r=9;t=86400", None);
    }

    #[test]
    fn a_wait_below_a_second_is_one() {
        check("[\"bucket 10/s burst=1\"]", 2, "\"reply\";q=1", "\"reply\";r=0;t=1", Some(1));
    }

    #[test]
    fn the_tightest_of_several_and_the_longest_wait() {
        check("[\"5/60s\", \"1/h\"]", 1, "\"reply\";q=1;w=3600", "\"reply\";r=0;t=3600", None);
        check("[\"1/60s\", \"1/h\"]", 2, "\"reply\";q=1;w=3600", "\"reply\";r=0;t=3600", Some(3600));
    }

    #[test]
    fn nothing_to_tell_without_a_limit() {
        let toml = r#"rule = [{ name = "no", when = { a = "1" }, action = "deny" }, { name = "free", limits = ["unlimited"] }]"#;
        let engine = Engine::new(&Config::from_toml(toml).unwrap().policy, MemoryStore::default()).unwrap();
        let denied = engine.decide(Op::Take, &Request::new().field("a", "1"), START);
        assert_eq!((Quota::from_decision(&denied), denied.retry_after_header()), (None, None));
        assert_eq!(denied.violated_policies().collect::<Vec<_>>(), ["no"]);
        let free = engine.decide(Op::Take, &Request::new(), START);
        assert_eq!((Quota::from_decision(&free), free.violated_policies().count()), (None, 0));
    }

    #[test]
    fn violated_policies_are_named_once() {
        let toml = r#"
            rule = [{ name = "a", limits = ["1/60s", "1/h"] }, { name = "b", limits = ["1/s"] }, { name = "c", limits = ["9/s"] }]
        "#;
        let engine = Engine::new(&Config::from_toml(toml).unwrap().policy, MemoryStore::default()).unwrap();
        engine.decide(Op::Take, &Request::new(), START);
        let denied = engine.decide(Op::Take, &Request::new(), START);
        assert_eq!(denied.violated_policies().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn integers_fit_structured_fields() {
        let limit = "bucket 1000000000000/us burst=1000000000000";
        check(&format!("[\"{limit}\"]"), 1, "\"reply\";q=1000000000000", "\"reply\";r=999999999999;t=1", None);
    }
}
