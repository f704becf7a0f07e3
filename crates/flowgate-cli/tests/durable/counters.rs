//! Counters after a stop in order, and after a kill under load.

use std::time::{Duration, Instant};

use crate::{State, throttle};

#[test]
fn a_stop_in_order_loses_nothing() {
    let state = State::new("everysec", "", "");
    let mut passed = 0;
    for _ in 0..3 {
        let server = state.serve();
        let mut client = server.resp();
        passed += (0..4).filter(|_| throttle(&mut client, "k", 10).unwrap()).count();
        drop(client);
        server.stop();
    }
    assert_eq!(passed, 10);
    let (is_clean, text) = state.inspect();
    assert!(is_clean && text.contains("seed                   matches the journal"), "{text}");
    // A server that stops before its base is finished leaves the earlier generations. The next server reads all of
    // them.
    assert!(text.contains("generations read       ") && text.contains(" (number"), "{text}");
    assert!(text.contains("stopped in order       yes"), "{text}");
}

/// Limits of each algorithm in two databases. Each limit has used up its key in one database and not in the other.
#[test]
fn keys_of_each_algorithm_and_database_are_kept_and_those_that_were_reset_are_not() {
    const LIMITS: [&str; 4] = ["3/1h", "bucket 3/1h burst=3", "fixed 3/day tz=UTC", "approx 3/1h"];
    let state = State::new("everysec", "", "");
    let take = |client: &mut flowgate_testkit::resp::Client, key: &str, limit: &str| {
        let reply = client.call_words(&[b"FG.LIMIT", key.as_bytes(), limit.as_bytes()]);
        assert!(reply.starts_with("[0 ") || reply.starts_with("[1 "), "{limit}: {reply}");
        reply.starts_with("[1 ")
    };
    let server = state.serve();
    let mut client = server.resp();
    for (number, limit) in LIMITS.iter().enumerate() {
        assert!((0..3).all(|_| take(&mut client, &format!("used{number}"), limit)));
        assert!((0..3).all(|_| take(&mut client, &format!("reset{number}"), limit)));
        client.call("SELECT 3");
        assert!(take(&mut client, &format!("used{number}"), limit));
        client.call("SELECT 0");
    }
    assert!((0..3).all(|_| throttle(&mut client, "cell", 3).unwrap()));
    drop(client);
    // The journal held the key before its reset.
    server.stop();
    let server = state.serve();
    let mut client = server.resp();
    for number in 0..LIMITS.len() {
        assert_eq!(client.call(&format!("DEL reset{number}")), "1");
    }
    drop(client);
    server.stop();
    for _ in 0..2 {
        let server = state.serve();
        let mut client = server.resp();
        for (number, limit) in LIMITS.iter().enumerate() {
            assert!(!take(&mut client, &format!("used{number}"), limit), "{limit}");
            assert_eq!(client.call(&format!("EXISTS reset{number}")), "0", "{limit}");
            client.call("SELECT 3");
            assert!(take(&mut client, &format!("used{number}"), limit), "{limit}");
            client.call("SELECT 0");
        }
        assert!(!throttle(&mut client, "cell", 3).unwrap());
        drop(client);
        server.stop();
    }
    let server = state.serve();
    let mut client = server.resp();
    client.call("SELECT 3");
    for (number, limit) in LIMITS.iter().enumerate() {
        assert!(!take(&mut client, &format!("used{number}"), limit), "database 3, {limit}");
    }
}

/// Ten rounds, or `KILL_ROUNDS`.
fn rounds() -> u32 {
    std::env::var("KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(10)
}

#[test]
fn what_was_answered_with_always_survives_a_kill_at_any_moment() {
    let state = State::new("always", "", "");
    let (mut passed, most) = (0, 20 * rounds());
    for round in 0..rounds() {
        let server = state.serve();
        // Another connection keeps the journal busy until the kill.
        let (mut client, mut other) = (server.resp(), server.resp());
        let load = std::thread::spawn(move || while throttle(&mut other, "other", 100_000).is_some() {});
        for _ in 0..10 + round * 7 % 20 {
            passed += u32::from(throttle(&mut client, "k", most).unwrap());
        }
        server.kill();
        load.join().unwrap();
    }
    let server = state.serve();
    let mut client = server.resp();
    while throttle(&mut client, "k", most).unwrap() {
        passed += 1;
    }
    assert!(passed <= most, "{passed} passed of {most}");
}

/// A kill loses at most the requests that were answered within the last flush interval and 50 ms before it.
#[test]
fn a_kill_loses_at_most_the_last_flush_with_everysec() {
    // A limit that 200 rounds do not use up.
    const COMMAND: [&[u8]; 3] = [b"FG.LIMIT", b"k", b"fixed 1000000000/365d"];
    let state = State::new("everysec", "flush = \"100ms\"", "");
    let window = Duration::from_millis(150);
    let (mut admitted, mut told_last) = (0, 0);
    for round in 0..rounds() {
        let server = state.serve();
        let (mut client, mut other) = (server.resp(), server.resp());
        let load = std::thread::spawn(move || while throttle(&mut other, "other", 100_000).is_some() {});
        let mut told = Vec::new();
        let (began, length) = (Instant::now(), Duration::from_millis(u64::from(300 + round * 37 % 200)));
        while began.elapsed() < length {
            let reply = client.call_words(&COMMAND);
            assert!(reply.starts_with("[1 "), "round {round}: {reply}");
            told.push(Instant::now());
        }
        let killed = Instant::now();
        server.kill();
        load.join().unwrap();
        admitted += told.len();
        told_last += told.iter().filter(|&&at| killed.duration_since(at) <= window).count();
    }
    let server = state.serve();
    let reply = server.resp().call_words(&[&COMMAND[..], &[b"1", b"PEEK"]].concat());
    let left: usize = reply.split(' ').nth(2).unwrap().parse().unwrap();
    let kept = 1_000_000_000 - left;
    assert!(
        kept <= admitted && admitted <= kept + told_last,
        "{admitted} admitted, {kept} kept, {told_last} told last"
    );
    assert!(kept > 0 && told_last < admitted, "{admitted} admitted, {kept} kept, {told_last} told last");
}
