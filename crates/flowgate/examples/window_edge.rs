//! Three in five seconds, counted in two ways. At the edge of a fixed window five pass within two seconds; a sliding
//! window never lets more than three through in any five.

#![allow(clippy::print_stdout, reason = "an example shows something")]

use flowgate::{Limiter, ManualClock, Span, Time};

fn main() -> Result<(), flowgate::LimitError> {
    for limit in ["fixed 3/5s", "sliding 3/5s"] {
        let clock = ManualClock::new(Time::from_secs(1_700_000_000));
        let limiter = Limiter::builder(limit).clock(clock.clone()).build()?;
        print!("{limit:<14}");
        // One attempt opens the window; from four seconds on there are two a second.
        for half_second in 0..=16 {
            let busy = half_second == 0 || half_second >= 8;
            let mark = match busy && limiter.take("user:42").allowed() {
                true => '#',
                false if busy => '-',
                false => ' ',
            };
            print!("{mark}");
            clock.advance(Span::from_millis(500));
        }
        println!("  (# passed, - denied; two marks a second)");
    }
    Ok(())
}
