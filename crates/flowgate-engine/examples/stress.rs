//! Stress: threads hammer overlapping subjects while rules are replaced and bans come and go; every count must be
//! exact at the end of every window, and no thread may wait forever.
//!
//! ```sh
//! cargo run --release -p flowgate-engine --example stress -- [SECONDS [THREADS]]      # 60 and 8
//! ```
//!
//! Time is virtual: all requests of a window happen at one instant, then it moves on until every counter is fresh.
//! Threads keep a tally of what they were granted. At the end of a window the engine must agree with it for every
//! pair of a user and an address: what it would still grant, and how much it has counted.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program to be watched; a panic is a finding")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, process, thread};

use flowgate::{MemoryStore, Op, Span, Time};
use flowgate_engine::{Engine, Limits, Policy, Request, RuleDef, bans::BanOrder};

const USERS: usize = 32;
const ADDRESSES: usize = 8;
const REQUESTS: u64 = 2000;
/// For a user, an address, all together. Low enough that each is reached in some windows.
const MOST: [u64; 3] = [50, 170, 1000];
/// The time between two rounds. It is longer than any state of a limit of an hour lasts, so each round starts anew.
const WINDOW: Span = Span::from_secs(4 * 3600);
/// A decision takes microseconds. A thread that makes no progress for this long is in a deadlock.
const STUCK: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Tally {
    users: [AtomicU64; USERS],
    addresses: [AtomicU64; ADDRESSES],
    total: AtomicU64,
}

impl Tally {
    fn add(&self, user: usize, address: usize) {
        self.each(user, address).into_iter().for_each(|count| _ = count.fetch_add(1, Relaxed));
    }

    fn remove(&self, user: usize, address: usize) {
        self.each(user, address).into_iter().for_each(|count| _ = count.fetch_sub(1, Relaxed));
    }

    fn each(&self, user: usize, address: usize) -> [&AtomicU64; 3] {
        [&self.users[user], &self.addresses[address], &self.total]
    }

    fn clear(&self) {
        self.users.iter().chain(&self.addresses).chain([&self.total]).for_each(|count| count.store(0, Relaxed));
    }
}

fn main() {
    let mut args = env::args().skip(1).map(|arg| arg.parse().expect("a number"));
    let (seconds, threads) = (args.next().unwrap_or(60), args.next().unwrap_or(8));
    let engine = Engine::new(&policy(), MemoryStore::default()).unwrap();
    let (tally, barrier) = (Tally::default(), Barrier::new(threads as usize));
    let (over, decisions, windows) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    thread::scope(|scope| {
        for index in 0..threads {
            let (engine, tally, barrier, over) = (&engine, &tally, &barrier, &over);
            let (decisions, windows) = (&decisions, &windows);
            scope.spawn(move || {
                let mut random = Random(index + 1);
                let mut now = Time::from_secs(1_700_000_000);
                while !over.load(Relaxed) {
                    hammer(engine, tally, &mut random, now, decisions);
                    if barrier.wait().is_leader() {
                        check(engine, tally, now);
                        tally.clear();
                        windows.fetch_add(1, Relaxed);
                        over.store(started.elapsed().as_secs() >= seconds, Relaxed);
                    }
                    barrier.wait();
                    now = now + WINDOW;
                }
            });
        }
        scope.spawn(|| disturb(&engine, &over));
        scope.spawn(|| watch(&decisions, &over));
    });
    let (decisions, windows) = (decisions.into_inner(), windows.into_inner());
    let rate = decisions as f64 / started.elapsed().as_secs_f64() / 1e6;
    println!("{decisions} decisions in {windows} windows on {threads} threads, all exact; {rate:.2} million a second");
}

fn policy() -> Policy {
    let rule = |name, by: &[&str], limits: &[&str]| RuleDef {
        by: by.iter().map(|&field| field.to_owned()).collect(),
        limits: Limits::Fixed(limits.iter().map(|limit| limit.parse().unwrap()).collect()),
        ..RuleDef::named(name)
    };
    let [user, address, total] = MOST;
    let rules = vec![
        rule("user", &["user"], &[&format!("{user}/1h"), &format!("bucket {user}/1h")]),
        rule("address", &["ip"], &[&format!("fixed {address}/1h")]),
        rule("total", &[], &[&format!("approx {total}/1h")]),
    ];
    Policy { rules, ..Policy::default() }
}

/// One thread's part of a window. Most threads take; now and then one gives back what it has just taken.
fn hammer(engine: &Engine, tally: &Tally, random: &mut Random, now: Time, decisions: &AtomicU64) {
    let refunds = random.below(2) == 0;
    for _ in 0..random.below(REQUESTS) {
        let (user, address) = (random.below(USERS as u64) as usize, random.below(ADDRESSES as u64) as usize);
        let names = [user.to_string(), address.to_string()];
        let request = Request::new().field("user", &names[0]).field("ip", &names[1]);
        if engine.decide(Op::Take, &request, now).allowed() {
            tally.add(user, address);
            if refunds && random.below(8) == 0 {
                engine.decide(Op::Refund, &request, now);
                tally.remove(user, address);
            }
        }
        decisions.fetch_add(1, Relaxed);
    }
}

/// The engine agrees with the tally, for every pair.
fn check(engine: &Engine, tally: &Tally, now: Time) {
    for user in 0..USERS {
        for address in 0..ADDRESSES {
            let names = [user.to_string(), address.to_string()];
            let request = Request::new().field("user", &names[0]).field("ip", &names[1]);
            let counts = tally.each(user, address).map(|count| count.load(Relaxed));
            assert!(counts.iter().zip(MOST).all(|(&count, most)| count <= most), "more than promised: {counts:?}");
            let explanation = engine.explain(&request, now);
            let free = counts.iter().zip(MOST).all(|(&count, most)| count < most);
            assert_eq!(explanation.decision.allowed(), free, "user {user}, address {address}: {counts:?}");
            for (rule, count) in explanation.rules.iter().zip(counts) {
                for limit in &rule.limits {
                    let counted = limit.outcome.limit.unwrap() - limit.outcome.remaining.unwrap();
                    assert_eq!(counted, count, "{} of user {user}, address {address}", limit.limit);
                }
            }
        }
    }
}

/// What goes on beside requests: other rules (the same ones, compiled anew), bans of somebody else, a sweep, figures.
fn disturb(engine: &Engine, over: &AtomicBool) {
    let mut now = Time::from_secs(1_700_000_000);
    while !over.load(Relaxed) {
        engine.replace(&policy()).unwrap();
        let order = BanOrder { field: "user", value: "nobody", length: WINDOW, reason: "", author: None };
        let ban = engine.ban(order, now).unwrap();
        assert!(engine.unban(ban.id, now));
        // At a time when nothing of a window can have expired yet.
        engine.memory().sweep(Time::from_secs(1_700_000_000));
        assert!(engine.memory().stats().counters <= 4 * (USERS + ADDRESSES + 1) * 2);
        now = now + Span::from_secs(1);
        thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the process when nothing has moved for too long: a deadlock would hang it silently.
fn watch(decisions: &AtomicU64, over: &AtomicBool) {
    let (mut last, mut since, mut said) = (0, Instant::now(), Instant::now());
    while !over.load(Relaxed) {
        thread::sleep(Duration::from_millis(100));
        let now = decisions.load(Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > STUCK {
            println!("no decision for {STUCK:?}: deadlock");
            process::exit(1);
        }
        if said.elapsed() > Duration::from_secs(10) {
            said = Instant::now();
            println!("{now} decisions");
        }
    }
}

/// The same sequence in every run, different in every thread (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
