//! What a decision costs by the number of rules, and a match by the size of a list.
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml --bin engine
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use flowgate::{MemoryStore, Op, Time};
use flowgate_bench::{Contestant, median, race, resident_bytes, scramble};
use flowgate_engine::{
    Engine, Limits, Policy, Request, RuleDef,
    lists::List,
    rules::{Condition, Matcher},
};

const ROUNDS: usize = 9;
const DECISIONS: u64 = 300_000;
const USERS: u64 = 10_000;
const ENTRIES: u64 = 1_000_000;

fn main() {
    decisions("rules by `act`", "act", |n| (format!("act{n}"), format!("act{n}")));
    decisions("rules by path", "path", |n| (format!("/api/v1/part{n}/*"), format!("/api/v1/part{n}/42")));
    decisions("rules by network", "ip", |n| {
        (format!("10.{}.{}.0/24", n / 256, n % 256), format!("10.{}.{}.9", n / 256, n % 256))
    });
    threads();
    lists();
}

/// A request of five fields that meets one limit, among 10 and among 1,000 rules. Each of 10,000 users meets ten of
/// them, so the counters are as many either way.
fn decisions(title: &str, field: &str, shape: impl Fn(u64) -> (String, String)) {
    let engines = [10, 1000].map(|rules| (rules, engine(rules, field, &shape)));
    let users: Vec<String> = (0..USERS).map(|user| user.to_string()).collect();
    let values: Vec<String> = (0..1000).map(|n| shape(n).1).collect();
    let mut contestants: Vec<Contestant<'_>> = engines
        .iter()
        .map(|(rules, engine)| {
            let (users, values) = (&users, &values);
            let take = move |i: u64| {
                let (user, rule) = visit(i, *rules);
                let request = request(field, &values[rule], &users[user]);
                engine.decide(Op::Take, &request, Time::from_millis(1_700_000_000_000 + i))
            };
            Contestant::new(if *rules == 10 { "10 rules" } else { "1000 rules" }, take)
        })
        .collect();
    let nanos = race(&mut contestants, DECISIONS, ROUNDS);
    println!("{title:18} 10: {:6.0} ns   1000: {:6.0} ns   ratio {:.2}", nanos[0], nanos[1], nanos[1] / nanos[0]);
}

/// The same from all cores at once, on one engine.
fn threads() {
    let engine = engine(1000, "act", &|n| (format!("act{n}"), String::new()));
    let users: Vec<String> = (0..USERS).map(|user| user.to_string()).collect();
    let values: Vec<String> = (0..1000).map(|n| format!("act{n}")).collect();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let take = |thread: u64, i: u64| {
        let (user, rule) = visit(i + (thread << 40), 1000);
        let request = request("act", &values[rule], &users[user]);
        engine.decide(Op::Take, &request, Time::from_millis(1_700_000_000_000 + i))
    };
    let nanos = race(&mut [Contestant::threads("threads", cores, take)], DECISIONS, ROUNDS);
    println!(
        "{cores} threads          1000: {:6.0} ns   {:.2} million a second",
        nanos[0],
        cores as f64 * 1e3 / nanos[0]
    );
}

/// Some user, and one of the ten rules that this user meets.
fn visit(i: u64, rules: u64) -> (usize, usize) {
    let pick = scramble(i);
    let user = (pick >> 32) % USERS;
    (user as usize, ((user * 7 + pick % 10) % rules) as usize)
}

fn engine(rules: u64, field: &str, shape: &impl Fn(u64) -> (String, String)) -> Engine {
    let rule = |n: u64| RuleDef {
        when: vec![
            Condition::new(field, Matcher::parse(&shape(n).0).expect("a matcher")),
            Condition::new("user", Matcher::Present),
        ],
        by: vec!["user".into()],
        limits: Limits::Fixed(vec!["bucket 100/60s".parse().expect("a limit")]),
        ..RuleDef::named(format!("rule{n}"))
    };
    let policy = Policy { rules: (0..rules).map(rule).collect(), ..Policy::default() };
    Engine::new(&policy, MemoryStore::default()).expect("a policy")
}

fn request<'a>(field: &'a str, value: &'a str, user: &'a str) -> Request<'a> {
    let request = Request::new().field(field, value).field("user", user).field("plan", "free");
    request.field("method", "GET").field("host", "example.org")
}

/// Lists of a million entries: how long they take to load, what they hold, what a match costs.
fn lists() {
    let cidr = |n: u64| {
        let bits = scramble(n) as u32;
        format!("{}/{}", std::net::Ipv4Addr::from_bits(bits), 24 + n % 9)
    };
    let v6 = |n: u64| format!("2001:{:x}:{:x}::/48", scramble(n) & 0xffff, scramble(n) >> 48);
    let address = |n: u64| std::net::Ipv4Addr::from_bits(scramble(n.wrapping_mul(3)) as u32).to_string();
    let v6_address = |n: u64| format!("2001:{:x}:{:x}::9", scramble(n * 2) & 0xffff, scramble(n * 2) >> 48);
    list("networks of IPv4", cidr, address);
    list("networks of IPv6", v6, v6_address);
    list("ids", |n| format!("user-{}", scramble(n)), |n| format!("user-{}", scramble(n * 2)));
}

fn list(title: &str, entry: impl Fn(u64) -> String, probe: impl Fn(u64) -> String) {
    let mut text = String::new();
    for n in 0..ENTRIES {
        writeln!(text, "{}", entry(n)).expect("memory");
    }
    let before = resident_bytes();
    let mut loads: Vec<f64> = Vec::new();
    let mut kept = None;
    for _ in 0..3 {
        drop(kept.take());
        let start = Instant::now();
        kept = Some(List::parse(&text).expect("a list"));
        loads.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let bytes = resident_bytes().saturating_sub(before);
    let list = Arc::new(kept.expect("loaded"));
    let probes: Vec<String> = (0..100_000).map(probe).collect();
    let contains = |i: u64| black_box(list.contains(&probes[i as usize % probes.len()]));
    let nanos = race(&mut [Contestant::new("contains", contains)], DECISIONS, ROUNDS);
    let lists = BTreeMap::from([("l".to_owned(), Arc::clone(&list))]);
    let rule = RuleDef { when: vec![Condition::new("x", Matcher::List("l".into()))], ..RuleDef::named("listed") };
    let engine = Engine::new(&Policy { rules: vec![rule], lists, ..Policy::default() }, MemoryStore::default())
        .expect("a policy");
    let decide = |i: u64| {
        let request = Request::new().field("x", &probes[i as usize % probes.len()]);
        engine.decide(Op::Take, &request, Time::from_secs(1_700_000_000))
    };
    let whole = race(&mut [Contestant::new("decide", decide)], DECISIONS, ROUNDS);
    println!(
        "1,000,000 {title:17} load {:5.0} ms   {:4} MB   match {:4.0} ns   decision {:4.0} ns",
        median(&mut loads),
        bytes >> 20,
        nanos[0],
        whole[0]
    );
}
