//! One kind of decision in a loop, for a profiler that counts instructions: timed runs of a few hundred nanoseconds differ
//! by a tenth on a busy machine, instructions do not.
//!
//! ```text
//! cargo build --release --manifest-path bench/Cargo.toml --bin instructions
//! valgrind --tool=callgrind --toggle-collect='*measured*' bench/target/release/instructions take
//! ```
//!
//! The number of instructions that callgrind collects, divided by 20,000, is that of one decision. Names of decisions: run it
//! without arguments.

use std::hint::black_box;

use flowgate::{Limiter, MemoryStore, Op, Single, Span, Time};
use flowgate_bench::scramble;
use flowgate_engine::{
    Engine, HitBuffer, Limits, PlannedTake, Policy, Request, RequestNames, RuleDef, TakeAnswer,
    rules::{Condition, Matcher},
};

const CALLS: u64 = 20_000;
const KEYS: u64 = 20_000;
const TEN_BUCKETS: [&str; 10] = [
    "bucket 1000000/366d",
    "bucket 1000000/365d",
    "bucket 1000000/364d",
    "bucket 1000000/363d",
    "bucket 1000000/362d",
    "bucket 1000000/361d",
    "bucket 1000000/360d",
    "bucket 1000000/359d",
    "bucket 1000000/358d",
    "bucket 1000000/357d",
];
const START: Time = Time::from_secs(1_700_000_000);

fn main() {
    let decisions: [(&str, fn()); 18] = [
        ("take", || limiter(&["bucket 1000000/366d"])),
        ("fixed", || limiter(&["fixed 1000000/30d"])),
        ("denied", || limiter(&["bucket 1/366d"])),
        ("sliding", || limiter(&["sliding 100/60s"])),
        ("two-sliding", || limiter(&["sliding 300/60s", "sliding 100/5s"])),
        ("three", || limiter(&["bucket 1000000/366d", "bucket 1000000/300d", "fixed 1000000/30d"])),
        ("ten", || limiter(&TEN_BUCKETS)),
        ("full-log", full_log),
        ("two-full-logs", two_full_logs),
        ("none-expires", || expiry("bucket 1000/366d")),
        ("all-expire", || expiry("bucket 1000/1000s burst=1000")),
        ("clock", clock),
        ("single", single),
        ("rule", || rules(&["bucket 1000000/60s"], 1)),
        ("rule-sliding", || rules(&["100/60s"], 1)),
        ("rule-two-sliding", || rules(&["300/60s", "100/5s"], 1)),
        ("rule-ten-limits", || rules(&["bucket 1000000/60s"], 10)),
        ("planned-two-sliding", || planned(&["300/60s", "100/5s"])),
    ];
    let wanted = std::env::args().nth(1).unwrap_or_default();
    match decisions.iter().find(|(name, _)| *name == wanted) {
        Some((_, run)) => run(),
        None => println!("{}", decisions.map(|(name, _)| name).join(" ")),
    }
}

/// What is counted.
#[inline(never)]
fn measured<T>(mut decide: impl FnMut(u64) -> T) {
    for i in 0..CALLS {
        black_box(decide(black_box(i)));
    }
}

fn keys() -> Vec<String> {
    (0..KEYS).map(|i| format!("user:{:011}", scramble(i) % 100_000_000_000)).collect()
}

/// Takes at a time that is supplied, one of each key after one was taken.
fn limiter(limits: &[&str]) {
    let (keys, limiter) = (keys(), Limiter::builder(limits).max_bytes(256 << 20).build().expect("valid"));
    keys.iter().for_each(|key| _ = limiter.take_at(key, 1, START));
    measured(|i| limiter.take_at(&keys[i as usize], 1, START));
}

/// Takes from a sliding log whose hundred entries are in the window, while the oldest leave.
fn full_log() {
    let limiter = Limiter::builder("sliding 100/60s").build().expect("valid");
    let at = |i: u64| Time::from_millis(1_700_000_000_000 + 600 * i);
    (0..200).for_each(|i| _ = limiter.take_at("key", 1, at(i)));
    measured(|i| limiter.take_at("key", 1, at(200 + i)));
}

/// The same from two logs of one subject, of some 300 and 25 entries.
fn two_full_logs() {
    let limiter = Limiter::builder(["sliding 300/60s", "sliding 100/5s"]).build().expect("valid");
    let at = |i: u64| Time::from_millis(1_700_000_000_000 + 201 * i);
    (0..400).for_each(|i| _ = limiter.take_at("key", 1, at(i)));
    measured(|i| limiter.take_at("key", 1, at(400 + i)));
}

/// Takes of a few keys beside as many idle ones as the shards look at meanwhile, which expire or do not: `bench/expiry` in small.
fn expiry(limit: &str) {
    const IDLE_KEYS: u64 = 5_000;
    let limiter = Limiter::builder(limit).max_bytes(1 << 20).build().expect("valid");
    let take = |key: u64, at: Time| limiter.take_at(key.to_le_bytes(), 1, at);
    (0..IDLE_KEYS).for_each(|key| _ = take(key, START));
    measured(|i| take(IDLE_KEYS + scramble(i) % 50, START + Span::from_secs(10) + Span::from_nanos(i)));
    println!("{} counters are left", limiter.stats().counters);
}

fn clock() {
    let (keys, limiter) =
        (keys(), Limiter::builder("bucket 1000000/366d").max_bytes(256 << 20).build().expect("valid"));
    keys.iter().for_each(|key| _ = limiter.take(key));
    measured(|i| limiter.take(&keys[i as usize]));
}

fn single() {
    let single = Single::new("bucket 1000000000/s").expect("valid");
    single.take();
    measured(|_| single.take());
}

/// Ten rules, of which `matching` match a reply.
fn engine(limits: &[&str], matching: usize) -> Engine {
    let act = |n: usize| if n < matching { "reply".to_owned() } else { format!("other{n}") };
    let rule = |n: usize| RuleDef {
        when: vec![Condition::new("act", Matcher::equal(act(n)))],
        by: vec!["user".into()],
        limits: Limits::Fixed(limits.iter().map(|limit| limit.parse().expect("a limit")).collect()),
        ..RuleDef::named(format!("rule{n}"))
    };
    let policy = Policy { rules: (0..10).map(rule).collect(), ..Policy::default() };
    Engine::new(&policy, MemoryStore::default()).expect("a policy")
}

/// A request through ten rules, of which `matching` match.
fn rules(limits: &[&str], matching: usize) {
    let (keys, engine) = (keys(), engine(limits, matching));
    let take = |i: u64| {
        let request = Request::new().field("act", "reply").field("user", &keys[i as usize]);
        engine.decide(Op::Take, &request, START)
    };
    (0..KEYS).for_each(|i| _ = take(i));
    measured(take);
}

/// A request that one of ten rules counts, planned and decided as the server does for a pipeline of `FG.TAKE`.
fn planned(limits: &[&str]) {
    let (keys, engine) = (keys(), engine(limits, 1));
    let (rules, mut plan, mut hits) = (engine.rules(), PlannedTake::default(), HitBuffer::default());
    let names = RequestNames::new(["act", "user"]);
    let mut take = |i: u64| {
        engine.plan_ahead(&rules, 1, &names, &["reply", keys[i as usize].as_str()], &mut plan);
        let answer = engine.decide_planned(&rules, &plan, &mut hits, Request::new, START.into());
        matches!(answer, Some(TakeAnswer::Passes(_)))
    };
    (0..KEYS).for_each(|i| _ = take(i));
    measured(take);
}
