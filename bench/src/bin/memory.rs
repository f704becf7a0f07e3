//! How much memory a key takes, as growth of the process.
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml --bin memory
//! ```
//!
//! Each figure comes from a process of its own, so that nothing is measured twice or reused.

use std::process::Command;

use flowgate::{Limiter, Span};
use flowgate_bench::resident_bytes;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("bucket") => keys("bucket 1000/d", argument(2), &"k".repeat(argument(3) as usize - 16)),
        Some("sliding") => keys("5/60s", argument(2), ""),
        Some("log") => one_log(),
        _ => {
            let runs: [&[&str]; 8] = [
                &["bucket", "1000000", "16"],
                &["bucket", "1000000", "200"],
                &["bucket", "3000000", "16"],
                &["bucket", "10000000", "16"],
                &["sliding", "1000000", "1"],
                &["sliding", "1000000", "3"],
                &["sliding", "1000000", "5"],
                &["log"],
            ];
            for arguments in runs {
                let this = std::env::current_exe().expect("this program");
                assert!(Command::new(this).args(arguments).status().expect("it runs").success());
            }
        }
    }
}

fn argument(index: usize) -> u64 {
    std::env::args().nth(index).and_then(|text| text.parse().ok()).expect("a number")
}

/// Live keys of one limit; for `sliding`, each has the third argument's number of units at different times.
fn keys(limit: &str, count: u64, pad: &str) {
    let units = if limit.starts_with("bucket") { 1 } else { argument(3) };
    let limiter = Limiter::builder(limit).max_bytes(1 << 30).build().expect("valid");
    let start = limiter.clock().now();
    let before = resident_bytes();
    for unit in 0..units {
        let now = start + Span::from_secs(unit);
        for i in 0..count {
            limiter.take_at(format!("{pad}{i:016}"), 1, now);
        }
    }
    let stats = limiter.stats();
    assert_eq!((stats.counters as u64, stats.evicted), (count, 0));
    let grown = (resident_bytes() - before) as f64 / count as f64;
    let accounted = stats.bytes as f64 / count as f64;
    println!(
        "{limit:<16} {count:>9} keys of {:>3} bytes, {units} unit(s) each: {grown:>6.1} bytes a key ({accounted:.1} accounted)",
        pad.len() + 16
    );
}

/// One key under full load: a million a minute, spread over ten minutes.
fn one_log() {
    let limiter = Limiter::new("sliding 1000000/60s").expect("valid");
    let start = limiter.clock().now();
    limiter.take_at("warm", 1, start);
    let before = limiter.stats().bytes;
    let mut most = 0;
    for i in 0..10_000_000_u64 {
        limiter.take_at("key", 1, start + Span::from_micros(i * 60));
        if i % 10_000 == 0 {
            most = most.max(limiter.stats().bytes - before);
        }
    }
    println!(
        "sliding 1000000/60s under full load: {:.1} KiB for the key (accounted, the most seen)",
        most as f64 / 1024.0
    );
}
