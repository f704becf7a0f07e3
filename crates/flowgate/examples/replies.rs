//! Five replies a minute for a user: of ten in a row, five pass.

#![allow(clippy::print_stdout, reason = "an example shows something")]

use flowgate::{Limiter, Retry, Verdict};

fn main() -> Result<(), flowgate::LimitError> {
    let replies = Limiter::new("5/60s")?;
    for reply in 1..=10 {
        let decision = replies.take("user:42");
        match decision.verdict {
            Verdict::Allow { .. } => println!("reply {reply:>2}: passes, {} left", decision.remaining.unwrap_or(0)),
            Verdict::Deny(Retry::After(wait)) => println!("reply {reply:>2}: denied, next one in {}", wait),
            Verdict::Deny(Retry::Never) => println!("reply {reply:>2}: denied for good"),
        }
    }
    Ok(())
}
