//! What the classic articles show, in virtual time; `examples/` prints the same.

use flowgate::{Limiter, ManualClock, Single, Span, Time};

const START: Time = Time::from_secs(1_700_000_000);

#[test]
fn a_leaky_bucket_lets_500_a_second_leave() {
    let backend = Single::new("pace 500/s").unwrap();
    let (mut seconds, mut last) = ([0; 3], None);
    // Ten workers. Each asks for its next call when its turn is over.
    let mut turns = [START; 10];
    loop {
        turns.sort();
        let (now, call) = (turns[0], backend.take_at(1, turns[0]));
        turns[0] = now + call.delay();
        let Some(second) = seconds.get_mut(turns[0].since(START).as_nanos() as usize / 1_000_000_000) else { break };
        *second += 1;
        if let Some(last) = last.replace(turns[0]) {
            assert_eq!(turns[0].since(last), Span::from_millis(2));
        }
    }
    assert_eq!(seconds, [500, 500, 500]);
}

#[test]
fn a_token_bucket_passes_its_stock_first() {
    let bucket = Single::new("bucket 500/s").unwrap();
    let seconds = [0, 1, 2].map(|second| {
        let attempts = (0..10_000).map(|i| START + Span::from_secs(second) + Span::from_micros(i * 100));
        attempts.filter(|&now| bucket.take_at(1, now).allowed()).count()
    });
    // The first second grants the 500 units in stock and the units that refill until 100 us before its end. Each later
    // second grants the units that refill in a second.
    assert_eq!(seconds, [999, 500, 500]);
}

#[test]
fn five_of_ten_replies_pass() {
    let replies = Limiter::new("5/60s").unwrap();
    let passed: Vec<bool> = (0..10).map(|_| replies.take_at("user:42", 1, START).allowed()).collect();
    assert_eq!(passed, [true, true, true, true, true, false, false, false, false, false]);
}

#[test]
fn a_funnel_of_15_passes_15_of_20() {
    let clock = ManualClock::new(START);
    let funnel = Limiter::builder("funnel 30/60s capacity=15").clock(clock.clone()).build().unwrap();
    let passed = || (0..20).filter(|_| funnel.take("user:42").allowed()).count();
    assert_eq!(passed(), 15);
    clock.advance(Span::from_secs(4));
    assert_eq!(passed(), 2);
}

#[test]
fn a_fixed_window_has_an_edge_and_a_sliding_one_has_none() {
    // One attempt opens the window; from four seconds on there are two a second.
    let times: Vec<Time> = (0..=16).filter(|&i| i == 0 || i >= 8).map(|i| START + Span::from_millis(i * 500)).collect();
    let most_within = |limit: &str, span: Span| {
        let limiter = Limiter::new(limit).unwrap();
        let passed: Vec<Time> =
            times.iter().copied().filter(|&now| limiter.take_at("user:42", 1, now).allowed()).collect();
        let within = |from: Time| passed.iter().filter(|&&at| at >= from && at.since(from) < span).count();
        passed.iter().map(|&from| within(from)).max().unwrap()
    };
    // Two in the last second of the window, three in the first of the next.
    assert_eq!(most_within("fixed 3/5s", Span::from_millis(2001)), 5);
    assert_eq!(most_within("sliding 3/5s", Span::from_secs(5)), 3);
}
