//! A funnel that holds 15 and leaks one every two seconds: of 20 at once, 15 pass; four seconds later, two more.

#![allow(clippy::print_stdout, reason = "an example shows something")]

use flowgate::{Limiter, ManualClock, Span, Time};

fn main() -> Result<(), flowgate::LimitError> {
    let clock = ManualClock::new(Time::from_secs(1_700_000_000));
    let funnel = Limiter::builder("funnel 30/60s capacity=15").clock(clock.clone()).build()?;
    let passed = |attempts: u32| (0..attempts).filter(|_| funnel.take("user:42").allowed()).count();
    println!("of 20 at once: {} passed", passed(20));
    clock.advance(Span::from_secs(4));
    println!("of 20 four seconds later: {} passed", passed(20));
    Ok(())
}
