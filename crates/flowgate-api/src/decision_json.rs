//! A decision as JSON, fast.
//!
//! serde_json checks every byte of a key for escapes and writes seconds by the shortest double. For a decision that is more than
//! half of the work of writing it, so this document is written directly; tests compare it with what serde writes.

use std::io;

use serde::Serialize;

use crate::{Decision, Millis, write_text};

impl Decision<'_> {
    /// Appends the decision as an object.
    ///
    /// # Errors
    /// None: a buffer that grows takes any document.
    pub fn write_json(&self, out: &mut Vec<u8>) -> io::Result<()> {
        out.push(b'{');
        self.write_members(out)?;
        out.push(b'}');
        Ok(())
    }

    /// Appends the members without braces, for an object that has further members.
    ///
    /// # Errors
    /// The same as for [`Decision::write_json`].
    pub fn write_members(&self, out: &mut Vec<u8>) -> io::Result<()> {
        // A new member of the decision fails to compile here.
        let Decision {
            allowed,
            action,
            rule,
            matched,
            code,
            message,
            limit,
            remaining,
            retry_after,
            never,
            reset_after,
            delay,
            exceeded,
            shadow,
            banned_until,
            degraded,
        } = self;
        push(out, if *allowed { "\"allowed\":true,\"action\":" } else { "\"allowed\":false,\"action\":" });
        write_text(out, action)?;
        match rule {
            Some(rule) => {
                push(out, ",\"rule\":");
                write_text(out, rule)?;
            }
            None => push(out, ",\"rule\":null"),
        }
        push(out, if *matched { ",\"matched\":true" } else { ",\"matched\":false" });
        if let Some(code) = code {
            write_member(out, ",\"code\":", code)?;
        }
        if let Some(message) = message {
            write_member(out, ",\"message\":", message)?;
        }
        push(out, ",\"limit\":");
        write_number(out, *limit);
        push(out, ",\"remaining\":");
        write_number(out, *remaining);
        push(out, ",\"retry_after\":");
        write_seconds(out, *retry_after);
        if *never {
            push(out, ",\"never\":true");
        }
        push(out, ",\"reset_after\":");
        write_seconds(out, Some(*reset_after));
        push(out, ",\"delay\":");
        write_seconds(out, Some(*delay));
        if exceeded.is_empty() && shadow.is_empty() && banned_until.is_none() {
            push(out, ",\"exceeded\":[],\"shadow\":[],\"banned_until\":null");
        } else {
            write_member(out, ",\"exceeded\":", exceeded)?;
            write_member(out, ",\"shadow\":", shadow)?;
            push(out, ",\"banned_until\":");
            write_seconds(out, *banned_until);
        }
        push(out, if *degraded { ",\"degraded\":true" } else { ",\"degraded\":false" });
        Ok(())
    }
}

fn write_member(out: &mut Vec<u8>, key: &'static str, value: &impl Serialize) -> io::Result<()> {
    push(out, key);
    Ok(serde_json::to_writer(out, value)?)
}

#[inline]
fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

fn write_number(out: &mut Vec<u8>, number: Option<u64>) {
    match number {
        Some(number) => push(out, itoa::Buffer::new().format(number)),
        None => push(out, "null"),
    }
}

/// Appends seconds with at most three decimals, as [`Millis`] is serialized up to 10^15: from there on a double keeps fewer
/// digits.
fn write_seconds(out: &mut Vec<u8>, seconds: Option<Millis>) {
    let Some(Millis(millis)) = seconds else { return push(out, "null") };
    push(out, itoa::Buffer::new().format(millis / 1000));
    let (mut rest, mut unit) = (millis % 1000, 100);
    if rest > 0 {
        out.push(b'.');
    }
    while rest > 0 {
        // A digit.
        out.push(b'0' + (rest / unit) as u8);
        (rest, unit) = (rest % unit, unit / 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExceededLimit;

    #[test]
    fn object_is_the_one_that_serde_writes() {
        let allowed = Decision { allowed: true, action: "allow".into(), limit: Some(5), ..Decision::default() };
        let denied = Decision {
            action: "ban \"x\"".into(),
            rule: Some("per\\user".into()),
            matched: true,
            code: Some(-7),
            message: Some("slow\ndown".into()),
            remaining: Some(0),
            retry_after: Some(Millis(1_250)),
            reset_after: Millis(60_001),
            exceeded: vec![ExceededLimit { limit: "1/s".into(), never: true, ..ExceededLimit::default() }],
            shadow: vec!["all".into()],
            banned_until: Some(Millis(1_700_000_000_500)),
            degraded: true,
            ..Decision::default()
        };
        for decision in [allowed, Decision { never: true, ..denied.clone() }, denied] {
            let mut out = Vec::new();
            decision.write_json(&mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&decision).unwrap());
        }
    }
    #[test]
    fn seconds_are_those_that_serde_writes() {
        let last = 999_999_999_999_999;
        for millis in (0..2100).chain((0..last).step_by(999_999_999_989)).chain([last]) {
            let mut out = Vec::new();
            write_seconds(&mut out, Some(Millis(millis)));
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&Millis(millis)).unwrap());
        }
    }
}
