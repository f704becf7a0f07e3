//! A decision as JSON, fast.
//!
//! serde_json checks every byte of a key for escapes. For a decision that is a third of the work of writing it, so the
//! keys of this document are written directly; a test checks that they are the keys of the type.

use std::io;

use serde::Serialize;

use crate::Decision;

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
    /// As [`Decision::write_json`].
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
        write_member(out, "\"allowed\":", allowed)?;
        write_member(out, ",\"action\":", action)?;
        write_member(out, ",\"rule\":", rule)?;
        write_member(out, ",\"matched\":", matched)?;
        if let Some(code) = code {
            write_member(out, ",\"code\":", code)?;
        }
        if let Some(message) = message {
            write_member(out, ",\"message\":", message)?;
        }
        write_member(out, ",\"limit\":", limit)?;
        write_member(out, ",\"remaining\":", remaining)?;
        write_member(out, ",\"retry_after\":", retry_after)?;
        if *never {
            write_member(out, ",\"never\":", never)?;
        }
        write_member(out, ",\"reset_after\":", reset_after)?;
        write_member(out, ",\"delay\":", delay)?;
        write_member(out, ",\"exceeded\":", exceeded)?;
        write_member(out, ",\"shadow\":", shadow)?;
        write_member(out, ",\"banned_until\":", banned_until)?;
        write_member(out, ",\"degraded\":", degraded)
    }
}

fn write_member(out: &mut Vec<u8>, key: &'static str, value: &impl Serialize) -> io::Result<()> {
    out.extend_from_slice(key.as_bytes());
    Ok(serde_json::to_writer(out, value)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExceededLimit, Millis};

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
}
