//! Ten workers share 500 calls a second towards a weak backend: a leaky bucket as a queue.
//!
//! `pace` gives each caller its turn; the caller holds the request until then. Calls leave 2 ms apart.

#![allow(clippy::print_stdout, reason = "an example shows something")]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use flowgate::{Single, Verdict};

const WORKERS: usize = 10;
const SECONDS: usize = 3;

fn main() -> Result<(), flowgate::LimitError> {
    let backend = Single::new("pace 500/s")?;
    let calls: [AtomicUsize; SECONDS] = Default::default();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let asked = start.elapsed();
                    // With ten workers no call waits longer than 20 ms. Were it more than `max_wait`, a second unless
                    // said otherwise, the call would be denied, and must not be made.
                    let Verdict::Allow { delay } = backend.take().verdict else { continue };
                    let turn = asked + Duration::from(delay);
                    std::thread::sleep(turn.saturating_sub(start.elapsed()));
                    match calls.get(turn.as_secs() as usize) {
                        Some(second) => second.fetch_add(1, Relaxed),
                        None => break,
                    };
                }
            });
        }
    });
    for (second, calls) in calls.iter().enumerate() {
        println!("second {}: {} calls", second + 1, calls.load(Relaxed));
    }
    Ok(())
}
