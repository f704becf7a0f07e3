//! What a `take` costs while a million keys expire, against a control in which none does.
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml --bin expiry
//! ```

use std::time::Instant;

use flowgate::{Limiter, Span};
use flowgate_bench::scramble;

const KEYS: u64 = 1_000_000;
const TAKES: u64 = 4_000_000;

fn main() {
    println!("take, {TAKES} times, {KEYS} keys in the table; the system's own hiccups are in both lines");
    run("none expires", "bucket 1000/366d");
    run("all expire meanwhile", "bucket 1000/1000s burst=1000");
}

fn run(name: &str, limit: &str) {
    let limiter = Limiter::builder(limit).max_bytes(256 << 20).build().expect("valid");
    let start = limiter.clock().now();
    for i in 0..KEYS {
        limiter.take_at(i.to_le_bytes(), 1, start);
    }
    // Two seconds and the grace later, what is not touched again has expired; ten keys stay in use.
    let later = start + Span::from_secs(10);
    let before = limiter.stats().counters;
    let mut nanos: Vec<u64> = (0..TAKES)
        .map(|i| {
            let key = (scramble(i) % 10_000 + KEYS).to_le_bytes();
            let begun = Instant::now();
            limiter.take_at(key, 1, later + Span::from_nanos(i));
            begun.elapsed().as_nanos() as u64
        })
        .collect();
    nanos.sort_unstable();
    let at = |share: f64| nanos[((nanos.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
    println!(
        "  {name:<22} p50 {:>6.2}  p99 {:>6.2}  p99.99 {:>7.2}  max {:>8.1} us; counters {before} -> {}",
        at(0.5),
        at(0.99),
        at(0.9999),
        at(1.0),
        limiter.stats().counters
    );
}
