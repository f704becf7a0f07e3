//! Many threads on overlapping subjects: counts stay exact, and no thread waits forever.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flowgate::Op;
use flowgate_engine::Request;

use crate::script::{Written, at, engine, policy, rule};

const THREADS: u64 = 8;
const ROUNDS: u64 = 4000;

/// Each request counts by user, by address and in total, in shards that other requests lock in other orders.
#[test]
fn no_interleaving_admits_more_or_less_than_promised() {
    let rules = [
        rule("user").by("user").limits(&["1000/1h", "bucket 2000/1h"]),
        rule("address").by("ip").limits(&["fixed 3000/1h"]),
        rule("total").limits(&["approx 9000/1h"]),
    ];
    let engine = engine(&rules);
    let admitted = AtomicU64::new(0);
    let names: Vec<String> = (0..16).map(|n| n.to_string()).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, rules, admitted, names) = (&engine, &rules, &admitted, &names);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let pick = (thread * 7 + round * 5) as usize;
                    let request = Request::new().field("user", &names[pick % 16]).field("ip", &names[pick / 3 % 4]);
                    let allowed = engine.decide(Op::Take, &request, at(0)).allowed();
                    admitted.fetch_add(u64::from(allowed), Relaxed);
                    if round % 500 == 0 {
                        engine.replace(&policy(rules)).unwrap();
                    }
                }
            });
        }
    });
    let counted = |request: Request<'_>, rule: usize| -> Vec<u64> {
        let explanation = engine.explain(&request, at(0));
        let limits = explanation.rules[rule].limits.iter().map(|limit| &limit.outcome);
        limits.map(|outcome| outcome.limit.unwrap() - outcome.remaining.unwrap()).collect()
    };
    let total = counted(Request::new(), 2)[0];
    assert_eq!(total, admitted.load(Relaxed), "every admission is counted once, no denial ever");
    assert_eq!(total, 9000, "more was asked for than anybody grants");
    let by_user: Vec<Vec<u64>> = names.iter().map(|user| counted(Request::new().field("user", user), 0)).collect();
    assert!(by_user.iter().all(|limits| limits[0] == limits[1] && limits[0] <= 1000));
    assert_eq!(by_user.iter().map(|limits| limits[0]).sum::<u64>(), total);
    let by_address = names.iter().map(|ip| counted(Request::new().field("ip", ip), 1)[0]);
    assert_eq!(by_address.sum::<u64>(), total);
}

#[test]
fn a_subject_is_banned_once_however_many_are_denied_at_once() {
    let engine = engine(&[rule("r").by("user").limits(&["10/1h"]).ban(50, 60, &[60, 600], 600)]);
    let (admitted, struck, banned) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..100 {
                    let decision = engine.decide(Op::Take, &Request::new().field("user", "1"), at(0));
                    let counter = match decision.banned_until() {
                        _ if decision.allowed() => &admitted,
                        Some(until) => {
                            assert_eq!(until, at(60));
                            &banned
                        }
                        None => &struck,
                    };
                    counter.fetch_add(1, Relaxed);
                }
            });
        }
    });
    assert_eq!((admitted.into_inner(), struck.into_inner(), banned.into_inner()), (10, 49, THREADS * 100 - 59));
}
