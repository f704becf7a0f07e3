//! The library against `governor`, in one process, in rounds that take turns.
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml --bin library [unkeyed | keyed | hot]
//! ```
//!
//! Keys are inserted in one order and visited in another, and the strings asked for are not those that were
//! inserted: as when they arrive over a network. Limits are such that no key expires during the run, and, but for
//! the deny path, that every take passes.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use flowgate::{Clock, Limiter, Single, Time};
use flowgate_bench::{Contestant, median, race_rounds, scramble};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

const KEYS: u64 = 1_000_000;
const ROUNDS: usize = 9;
const MAX_BYTES: usize = 256 << 20;

fn main() {
    println!("median of {ROUNDS} rounds that take turns; ratios above 1 are in flowgate's favour\n");
    let wanted = std::env::args().nth(1);
    let parts: [(&str, fn()); 3] = [("unkeyed", unkeyed), ("keyed", keyed), ("hot", hot_key)];
    for (name, run) in parts {
        if wanted.as_ref().is_none_or(|wanted| wanted == name) {
            run();
        }
    }
}

fn unkeyed() {
    let governor = RateLimiter::direct(quota(u32::MAX));
    let single = |limit| Single::new(limit).expect("valid");
    // A counter each: takes at different times would deny each other.
    let [supplied, clocked, busy] =
        [single("bucket 1000000000/s"), single("bucket 1000000000/s"), single("bucket 1/d")];
    let now = Clock::System.now().as_nanos();
    busy.take_at(1, Time::from_nanos(now));
    table(
        "one counter without a key",
        20_000_000,
        &mut [
            Contestant::new("governor, check (reads its clock)", |_| governor.check().is_ok()),
            Contestant::new("flowgate, take, time supplied", |i| {
                supplied.take_at(1, Time::from_nanos(now + i)).allowed()
            }),
            Contestant::new("flowgate, take with the clock", |_| clocked.take().allowed()),
            Contestant::new("flowgate, denied, time supplied", |_| busy.take_at(1, Time::from_nanos(now)).allowed()),
        ],
    );
}

fn keyed() {
    let keys: Vec<String> = (0..KEYS).map(|i| format!("user:{:011}", scramble(i) % 100_000_000_000)).collect();
    let visit: Vec<String> = (0..2 * KEYS).map(|i| keys[(scramble(i + 77) % KEYS) as usize].clone()).collect();
    let visited = |i: u64| &visit[(i % (2 * KEYS)) as usize];
    // Two threads visit different halves, so that they never want the same key at once for long.
    let halves = |thread: u64, i: u64| visited(thread * KEYS + i);

    let governor: DefaultKeyedRateLimiter<String> = RateLimiter::dashmap(quota(1_000_000));
    let limiter = |limits: &[&str]| {
        let limiter = Limiter::builder(limits).max_bytes(MAX_BYTES).build().expect("valid");
        let now = limiter.clock().now();
        keys.iter().for_each(|key| _ = limiter.take_at(key, 1, now));
        limiter
    };
    let one = limiter(&["bucket 1000000/366d"]);
    let three = limiter(&["bucket 1000000/366d", "bucket 1000000/300d", "fixed 1000000/30d"]);
    let busy = limiter(&["bucket 1/366d"]);
    let sliding = Limiter::builder("sliding 100/60s").max_bytes(1 << 30).build().expect("valid");
    keys.iter().for_each(|key| _ = governor.check_key(key));
    let now = one.clock().now();

    table(
        "1,000,000 string keys, one thread",
        1_000_000,
        &mut [
            Contestant::new("governor, keyed check", |i| governor.check_key(visited(i)).is_ok()),
            Contestant::new("flowgate, take, time supplied", |i| one.take_at(visited(i), 1, now).allowed()),
            Contestant::new("flowgate, take with the clock", |i| one.take(visited(i)).allowed()),
            Contestant::new("flowgate, take_each, 16 keys at a time", |i| {
                if i % 16 == 0 {
                    one.take_each((i..i + 16).map(visited), |decision| _ = black_box(decision.allowed()));
                }
            }),
            Contestant::new("flowgate, denied", |i| busy.take_at(visited(i), 1, now).allowed()),
            Contestant::new("flowgate, three limits at once", |i| three.take_at(visited(i), 1, now).allowed()),
            Contestant::new("flowgate, sliding 100/60s", |i| sliding.take_at(visited(i), 1, now).allowed()),
        ],
    );
    table(
        "1,000,000 string keys, two threads (time until both have done as many)",
        1_000_000,
        &mut [
            Contestant::threads("governor, keyed check", 2, |thread, i| governor.check_key(halves(thread, i)).is_ok()),
            Contestant::threads("flowgate, take, time supplied", 2, |thread, i| {
                one.take_at(halves(thread, i), 1, now).allowed()
            }),
            Contestant::threads("flowgate, take with the clock", 2, |thread, i| one.take(halves(thread, i)).allowed()),
            Contestant::threads("flowgate, take, time supplied, one thread", 1, |thread, i| {
                one.take_at(halves(thread, i), 1, now).allowed()
            }),
        ],
    );
}

fn hot_key() {
    let governor: DefaultKeyedRateLimiter<String> = RateLimiter::dashmap(quota(u32::MAX));
    let limiter = Limiter::new("bucket 1000000000/s").expect("valid");
    let single = Single::new("bucket 1000000000/s").expect("valid");
    let key = String::from("everybody");
    table(
        "one hot key, two threads",
        2_000_000,
        &mut [
            Contestant::threads("governor, keyed check", 2, |_, _| governor.check_key(&key).is_ok()),
            Contestant::threads("flowgate, Limiter", 2, |_, _| limiter.take(&key).allowed()),
            Contestant::threads("flowgate, Single", 2, |_, _| single.take().allowed()),
        ],
    );
}

/// `burst` at once, refilled over a year: nothing expires, nothing runs out.
fn quota(burst: u32) -> Quota {
    let burst = NonZeroU32::new(burst).expect("not zero");
    Quota::with_period(Duration::from_secs(366 * 86_400) / burst.get()).expect("not zero").allow_burst(burst)
}

/// Prints the median of nanoseconds, and how many times as fast as the first each is: the median of the rounds, and their range.
fn table(title: &str, operations: u64, contestants: &mut [Contestant<'_>]) {
    let rounds = race_rounds(contestants, operations, ROUNDS);
    println!("{title}");
    for (contestant, own) in contestants.iter().zip(&rounds) {
        let mut ratios: Vec<f64> = rounds[0].iter().zip(own).map(|(first, own)| first / own).collect();
        let (nanos, ratio) = (median(&mut own.clone()), median(&mut ratios));
        let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
        println!("  {:<44} {nanos:>8.1} ns  {ratio:>6.2}x  {least:.2} to {most:.2}", contestant.name);
    }
    println!();
}
