//! What the comparisons share: rounds that take turns, medians, tables.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// A contestant: a name and a function that runs `n` operations and says how long they took.
pub struct Contestant<'a> {
    pub name: &'a str,
    pub run: Box<dyn FnMut(u64) -> Duration + 'a>,
}

impl<'a> Contestant<'a> {
    /// Times `op` called with 0, 1, 2 ...
    pub fn new<T>(name: &'a str, mut op: impl FnMut(u64) -> T + 'a) -> Contestant<'a> {
        let run = move |n| {
            let start = Instant::now();
            for i in 0..n {
                black_box(op(black_box(i)));
            }
            start.elapsed()
        };
        Contestant { name, run: Box::new(run) }
    }

    /// Times `threads` threads that each call `op(thread, 0..n)`: the time until the last is done.
    pub fn threads<T>(name: &'a str, threads: u64, op: impl Fn(u64, u64) -> T + Sync + 'a) -> Contestant<'a> {
        let run = move |n| {
            let barrier = std::sync::Barrier::new(threads as usize + 1);
            let (op, barrier) = (&op, &barrier);
            std::thread::scope(|scope| {
                let work = |thread| {
                    move || {
                        barrier.wait();
                        for i in 0..n {
                            black_box(op(thread, black_box(i)));
                        }
                    }
                };
                let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
                barrier.wait();
                let start = Instant::now();
                for handle in handles {
                    handle.join().expect("a worker does not panic");
                }
                start.elapsed()
            })
        };
        Contestant { name, run: Box::new(run) }
    }
}

/// Nanoseconds per operation of each contestant: the median over `rounds` in which all take turns.
pub fn race(contestants: &mut [Contestant<'_>], operations: u64, rounds: usize) -> Vec<f64> {
    race_rounds(contestants, operations, rounds).iter_mut().map(|samples| median(samples)).collect()
}

/// Nanoseconds per operation of each contestant in each of `rounds` in which all take turns.
pub fn race_rounds(contestants: &mut [Contestant<'_>], operations: u64, rounds: usize) -> Vec<Vec<f64>> {
    let mut nanos = vec![Vec::new(); contestants.len()];
    for contestant in contestants.iter_mut() {
        (contestant.run)(operations / 4);
    }
    for _ in 0..rounds {
        for (contestant, samples) in contestants.iter_mut().zip(&mut nanos) {
            samples.push((contestant.run)(operations).as_nanos() as f64 / operations as f64);
        }
    }
    nanos
}

pub fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// A cheap stream of numbers that visits keys in no order.
pub fn scramble(i: u64) -> u64 {
    let mut x = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 32;
    x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

/// The memory of this process, in bytes.
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096
}
