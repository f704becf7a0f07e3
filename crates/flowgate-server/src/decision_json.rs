//! A decision as JSON: the one encoder for whoever answers in it (HTTP, a replay's decision lines).
//!
//! Rule       Durations are seconds, rounded **up** to the millisecond, so whoever waits that long passes; an instant
//!            is seconds since the epoch, rounded up likewise. Numbers are written from integers, never from floats.
//! Rule       `retry_after` is null when allowed, and null with `"never":true` when no waiting helps. `code` and
//!            `message` stand only where the deciding rule has them.

use flowgate::{Retry, Span, Time};
use flowgate_engine::{Decision, Exceeded};

/// Appends the decision as an object.
///
/// ```
/// use flowgate::{MemoryStore, Op, Time};
/// use flowgate_engine::{Engine, Request, config::Config};
/// use flowgate_server::decision_json;
///
/// let config = Config::from_toml(r#"rule = [{ name = "reply", by = ["user"], limits = ["1/60s"] }]"#).unwrap();
/// let engine = Engine::new(&config.policy, MemoryStore::default())?;
/// let mut out = Vec::new();
/// let decision = engine.decide(Op::Take, &Request::new().field("user", "42"), Time::from_secs(1_700_000_000));
/// decision_json::write(&mut out, &decision);
/// assert_eq!(
///     String::from_utf8(out).unwrap(),
///     r#"{"allowed":true,"action":"allow","rule":"reply","matched":true,"limit":1,"remaining":0,"retry_after":null,"#
///         .to_owned()
///         + r#""reset_after":60,"delay":0,"exceeded":[],"shadow":[],"banned_until":null,"degraded":false}"#,
/// );
/// # Ok::<(), flowgate_engine::PolicyError>(())
/// ```
pub fn write(out: &mut Vec<u8>, decision: &Decision) {
    out.push(b'{');
    write_members(out, decision);
    out.push(b'}');
}

/// Appends the members without the braces, for an object that has others, too.
pub fn write_members(out: &mut Vec<u8>, decision: &Decision) {
    text(out, "\"allowed\":", if decision.allowed() { "true" } else { "false" });
    out.extend_from_slice(b",\"action\":");
    write_text(out, decision.action());
    out.extend_from_slice(b",\"rule\":");
    match &decision.rule {
        Some(rule) => write_text(out, rule.name()),
        None => out.extend_from_slice(b"null"),
    }
    text(out, ",\"matched\":", if decision.matched { "true" } else { "false" });
    if let Some(code) = decision.code {
        out.extend_from_slice(b",\"code\":");
        write_signed(out, code);
    }
    if let Some(message) = &decision.message {
        out.extend_from_slice(b",\"message\":");
        write_text(out, message);
    }
    out.extend_from_slice(b",\"limit\":");
    count(out, decision.limit);
    out.extend_from_slice(b",\"remaining\":");
    count(out, decision.remaining);
    wait(out, decision.retry_after(), decision.never());
    out.extend_from_slice(b",\"reset_after\":");
    write_span(out, decision.reset_after);
    out.extend_from_slice(b",\"delay\":");
    write_span(out, decision.delay());
    out.extend_from_slice(b",\"exceeded\":[");
    list(out, &decision.exceeded, exceeded);
    out.extend_from_slice(b"],\"shadow\":[");
    list(out, &decision.shadow, |out, rule| write_text(out, rule.name()));
    out.extend_from_slice(b"],\"banned_until\":");
    match decision.banned_until {
        Some(until) => write_instant(out, until),
        None => out.extend_from_slice(b"null"),
    }
    text(out, ",\"degraded\":", if decision.degraded { "true" } else { "false" });
}

fn exceeded(out: &mut Vec<u8>, exceeded: &Exceeded) {
    out.extend_from_slice(b"{\"rule\":");
    write_text(out, exceeded.rule.name());
    out.extend_from_slice(b",\"limit\":");
    write_text(out, &exceeded.limit.to_string());
    match exceeded.retry {
        Retry::After(span) => wait(out, Some(span), false),
        Retry::Never => wait(out, None, true),
    }
    out.push(b'}');
}

fn wait(out: &mut Vec<u8>, retry_after: Option<Span>, never: bool) {
    out.extend_from_slice(b",\"retry_after\":");
    match retry_after {
        Some(span) => write_span(out, span),
        None => out.extend_from_slice(b"null"),
    }
    if never {
        out.extend_from_slice(b",\"never\":true");
    }
}

fn list<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
}

fn text(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(value.as_bytes());
}

fn count(out: &mut Vec<u8>, count: Option<u64>) {
    match count {
        Some(count) => write_number(out, count),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends seconds, rounded up to the millisecond: `12.25`, `0`, `0.001`.
pub fn write_span(out: &mut Vec<u8>, span: Span) {
    write_millis(out, span.as_millis_ceil());
}

/// Appends an instant as seconds since the epoch, rounded up to the millisecond.
pub fn write_instant(out: &mut Vec<u8>, time: Time) {
    write_span(out, time.since(Time::EPOCH));
}

fn write_millis(out: &mut Vec<u8>, millis: u64) {
    write_number(out, millis / 1000);
    let rest = (millis % 1000) as u16;
    if rest > 0 {
        let digits = [b'.', digit(rest / 100), digit(rest / 10 % 10), digit(rest % 10)];
        let length = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        out.extend_from_slice(&digits[..length]);
    }
}

fn digit(value: u16) -> u8 {
    b'0' + value as u8
}

/// Appends a whole number.
pub fn write_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a whole number that may be negative.
pub fn write_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    write_number(out, number.unsigned_abs());
}

/// Appends a text in quotes, escaped as JSON asks for.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            control => {
                let hex = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[hex(control >> 4), hex(control & 15)]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use flowgate::{MemoryStore, Op};
    use flowgate_engine::config::Config;
    use flowgate_engine::{BanOrder, Engine, Request};

    use super::*;

    #[track_caller]
    fn check(toml: &str, takes: &[u64], expected: &str) {
        let config = Config::from_toml(toml).unwrap();
        let engine = Engine::new(&config.policy, MemoryStore::default()).unwrap();
        let mut out = Vec::new();
        for cost in takes {
            out.clear();
            let request = Request::new().field("user", "42").cost(*cost);
            write(&mut out, &engine.decide(Op::Take, &request, Time::from_secs(1_700_000_000)));
        }
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_denial_says_all() {
        check(
            r#"rule = [{ name = "reply", by = ["user"], limits = ["bucket 3/10s"], code = -201, message = "Too \"fast\"\\.\n" },
                { name = "quiet", by = ["user"], limits = ["1/s"], shadow = true }]"#,
            &[1, 1, 2],
            concat!(
                r#"{"allowed":false,"action":"deny","rule":"reply","matched":true,"code":-201,"message":"Too \"fast\"\\.\n","#,
                r#""limit":3,"remaining":1,"retry_after":3.334,"reset_after":6.667,"delay":0,"#,
                r#""exceeded":[{"rule":"reply","limit":"bucket 3/10s","retry_after":3.334}],"shadow":["quiet"],"#,
                r#""banned_until":null,"degraded":false}"#
            ),
        );
    }

    #[test]
    fn never_and_delays_and_no_numbers() {
        check(
            "rule = [{ name = 'big', limits = ['5/60s'] }]",
            &[9],
            concat!(
                r#"{"allowed":false,"action":"deny","rule":"big","matched":true,"limit":5,"remaining":5,"#,
                r#""retry_after":null,"never":true,"reset_after":0,"delay":0,"#,
                r#""exceeded":[{"rule":"big","limit":"sliding 5/60s","retry_after":null,"never":true}],"#,
                r#""shadow":[],"banned_until":null,"degraded":false}"#
            ),
        );
        check(
            "rule = [{ name = 'p', limits = ['pace 500/s'] }]",
            &[1, 1],
            concat!(
                r#"{"allowed":true,"action":"allow","rule":"p","matched":true,"limit":1,"remaining":0,"retry_after":null,"#,
                r#""reset_after":0.004,"delay":0.002,"exceeded":[],"shadow":[],"banned_until":null,"degraded":false}"#
            ),
        );
        check(
            "",
            &[1],
            concat!(
                r#"{"allowed":true,"action":"allow","rule":null,"matched":false,"limit":null,"remaining":null,"#,
                r#""retry_after":null,"reset_after":0,"delay":0,"exceeded":[],"shadow":[],"banned_until":null,"#,
                r#""degraded":false}"#
            ),
        );
    }

    #[test]
    fn a_ban_ends_at_an_instant() {
        let engine = Engine::new(&Config::default().policy, MemoryStore::default()).unwrap();
        let now = Time::from_nanos(1_700_000_000_000_000_001);
        let order = BanOrder { field: "user", value: "42", length: Span::from_millis(1500), reason: "\u{1}é" };
        engine.ban(order, now).unwrap();
        let mut out = Vec::new();
        write(&mut out, &engine.decide(Op::Take, &Request::new().field("user", "42"), now));
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r#""message":"\u0001é""#), "{text}");
        assert!(text.contains(r#""retry_after":1.5,"#), "{text}");
        assert!(text.contains(r#""banned_until":1700000001.501,"#), "{text}");
    }

    #[test]
    fn numbers_to_the_digit() {
        for (millis, expected) in
            [(0, "0"), (1, "0.001"), (10, "0.01"), (1200, "1.2"), (u64::MAX, "18446744073709551.615")]
        {
            let mut out = Vec::new();
            write_millis(&mut out, millis);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
