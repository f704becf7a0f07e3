//! Five replies a minute for a user: of ten in a row, five pass.

#![allow(clippy::print_stdout, reason = "an example shows something")]

use flowgate::Limiter;

fn main() -> Result<(), flowgate::LimitError> {
    let replies = Limiter::new("5/60s")?;
    for reply in 1..=10 {
        let decision = replies.take("user:42");
        match decision.retry_after() {
            None => println!("reply {reply:>2}: passes, {} left", decision.remaining.unwrap_or(0)),
            Some(wait) => println!("reply {reply:>2}: denied, next one in {} s", wait.as_secs_ceil()),
        }
    }
    Ok(())
}
