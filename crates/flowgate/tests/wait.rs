//! Waiting in turn: exact, in order, and free of charge for a caller that gives up.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use flowgate::{Limiter, ManualClock, Op, Single, Span, Time, WaitError};

const START: Time = Time::from_secs(1_700_000_000);

fn limiter(limit: &str) -> (ManualClock, Limiter) {
    let clock = ManualClock::new(START);
    let limiter = Limiter::builder(limit).clock(clock.clone()).build().unwrap();
    (clock, limiter)
}

/// Waits for something that another thread is about to do.
fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

#[test]
fn waiters_leave_in_order_an_interval_apart() {
    let (clock, limiter) = limiter("pace 10/s");
    limiter.take("backend");
    let left = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..5 {
            let (limiter, left, time) = (&limiter, &left, &clock);
            scope.spawn(move || {
                limiter.wait("backend", 1, Span::MAX).unwrap();
                left.lock().unwrap().push((number, time.now()));
            });
            // All callers so far sleep: the one before is in the queue.
            until(|| clock.sleepers() == number + 1);
        }
        for turn in 1..=5 {
            clock.advance(Span::from_millis(100));
            until(|| left.lock().unwrap().len() == turn && clock.sleepers() == 5 - turn);
        }
    });
    let expected: Vec<_> = (0..5).map(|i| (i, START + Span::from_millis(100 * (i as u64 + 1)))).collect();
    assert_eq!(*left.lock().unwrap(), expected);
}

#[test]
fn waiters_of_a_single_counter_leave_in_order_an_interval_apart() {
    for limit in ["pace 10/s", "1/100ms"] {
        let clock = ManualClock::new(START);
        let single = Single::new(limit).unwrap().with_clock(clock.clone());
        single.take();
        let left = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for number in 0..3 {
                let (single, left, clock) = (&single, &left, &clock);
                scope.spawn(move || {
                    single.wait(1, Span::MAX).unwrap();
                    left.lock().unwrap().push((number, clock.now()));
                });
                until(|| clock.sleepers() == number + 1);
            }
            for turn in 1..=3 {
                clock.advance(Span::from_millis(100));
                until(|| left.lock().unwrap().len() == turn && clock.sleepers() == 3 - turn);
            }
        });
        let expected: Vec<_> = (0..3).map(|i| (i, START + Span::from_millis(100 * (i as u64 + 1)))).collect();
        assert_eq!(*left.lock().unwrap(), expected, "{limit}");
        assert_eq!(single.wait(1, Span::from_millis(50)), Err(WaitError::TooLong(Span::from_millis(100))), "{limit}");
        assert_eq!(single.wait(2, Span::MAX), Err(WaitError::Never), "{limit}");
    }
}

#[test]
fn every_algorithm_can_be_waited_for_and_admits_exactly() {
    for limit in ["5/10s", "fixed 5/10s", "bucket 5/10s", "pace 5/10s burst=5", "approx 5/10s"] {
        let (clock, limiter) = limiter(limit);
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    limiter.wait("job", 1, Span::MAX).unwrap();
                    done.fetch_add(1, SeqCst);
                });
            }
            until(|| done.load(SeqCst) == 5 && clock.sleepers() == 7);
            assert_eq!(limiter.peek("job", 0).remaining, Some(0), "{limit}");
            while done.load(SeqCst) < 12 {
                clock.advance(Span::from_secs(1));
                // Callers that may go now go; the others sleep again.
                until(|| clock.sleepers() == 12 - done.load(SeqCst));
            }
        });
        // Twelve at five in ten seconds: the last two need a third allowance.
        assert!(clock.now().since(START) >= Span::from_secs(10), "{limit} took {}", clock.now().since(START));
    }
}

#[test]
fn a_waiter_that_gives_up_costs_nothing() {
    let (_, limiter) = limiter("1/60s");
    limiter.wait("report", 1, Span::ZERO).unwrap();
    let before = limiter.peek("report", 0);
    assert_eq!(limiter.wait("report", 1, Span::from_secs(59)), Err(WaitError::TooLong(Span::from_secs(60))));
    assert_eq!(limiter.wait("report", 2, Span::MAX), Err(WaitError::Never));
    assert_eq!(limiter.peek("report", 0), before);

    // Behind a head that waits for more, patience runs out as well.
    let (clock, limiter) = self::limiter("3/60s");
    limiter.take_n("report", 2);
    thread::scope(|scope| {
        let head = scope.spawn(|| limiter.wait("report", 3, Span::MAX));
        until(|| clock.sleepers() == 1);
        let second = scope.spawn(|| limiter.wait("report", 1, Span::from_secs(30)));
        until(|| clock.sleepers() == 2);
        clock.advance(Span::from_secs(31));
        assert!(matches!(second.join().unwrap(), Err(WaitError::TooLong(_))));
        clock.advance(Span::from_secs(29));
        assert!(head.join().unwrap().unwrap().allowed());
    });
    assert_eq!(limiter.peek("report", 0).remaining, Some(0));
}

/// The attempts of a caller that waits do not count as denied requests.
#[test]
fn waiting_costs_nothing_where_denied_requests_count() {
    let clock = ManualClock::new(START);
    let limits = ["1/60s", "fixed 5/60s", "bucket 5/60s after=3/60s"];
    let limiter = Limiter::builder(limits).clock(clock.clone()).count_denied(true).build().unwrap();
    limiter.take("report");
    clock.advance(Span::from_secs(30));
    let before = limiter.peek("report", 0);
    assert_eq!(limiter.wait("report", 1, Span::from_secs(29)), Err(WaitError::TooLong(Span::from_secs(30))));
    assert_eq!(limiter.peek("report", 0), before);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| limiter.wait("report", 1, Span::from_secs(30)));
        until(|| clock.sleepers() == 1);
        waiter.thread().unpark();
        clock.advance(Span::from_secs(30));
        assert!(waiter.join().unwrap().unwrap().allowed());
    });
    assert!(!limiter.take("report").allowed());
    assert_eq!(limiter.peek("report", 0).reset_after, Span::from_secs(60));
}

#[test]
fn a_wait_that_cannot_succeed_is_refused_at_once() {
    for limit in ["1/60s", "fixed 1/60s", "bucket 1/60s", "pace 1/60s max_wait=1h", "1/60s after=1/1d"] {
        let (clock, limiter) = limiter(limit);
        while limiter.apply_at(Op::TakeWithin(Span::ZERO), "report", 1, START).allowed() {}
        let wait = limiter.apply_at(Op::TakeWithin(Span::ZERO), "report", 1, START).retry_after().unwrap();
        thread::scope(|scope| {
            let head = scope.spawn(|| limiter.wait("report", 1, Span::MAX));
            until(|| clock.sleepers() == 1);
            // The clock stands still: a caller that is not told now sleeps for good.
            assert_eq!(limiter.wait("report", 2, Span::MAX), Err(WaitError::Never), "{limit}");
            assert_eq!(limiter.wait("report", 1, Span::from_secs(59)), Err(WaitError::TooLong(wait)), "{limit}");
            assert_eq!(limiter.wait("report", 1, Span::ZERO), Err(WaitError::TooLong(wait)), "{limit}");
            clock.advance(wait);
            assert!(head.join().unwrap().unwrap().allowed(), "{limit}");
        });
        assert_eq!(clock.sleepers(), 0);
    }
    // A caller that does not wait at all does not get in before the others, though there is room.
    let (clock, limiter) = limiter("2/60s");
    limiter.take("report");
    thread::scope(|scope| {
        let head = scope.spawn(|| limiter.wait("report", 2, Span::MAX));
        until(|| clock.sleepers() == 1);
        assert_eq!(limiter.wait("report", 1, Span::ZERO), Err(WaitError::TooLong(Span::ZERO)));
        clock.advance(Span::from_secs(60));
        assert!(head.join().unwrap().unwrap().allowed());
    });
}

#[test]
fn patience_and_turns_are_real_time_while_the_clock_runs_at_half_speed() {
    let (clock, limiter) = limiter("1/60s");
    limiter.take("report");
    clock.put_back(Span::from_secs(3600));
    assert_eq!(limiter.wait("report", 1, Span::from_secs(119)), Err(WaitError::TooLong(Span::from_secs(120))));
    thread::scope(|scope| {
        let head = scope.spawn(|| limiter.wait("report", 1, Span::from_secs(120)));
        until(|| clock.sleepers() == 1);
        // Behind the head, patience ends when it is over in reality.
        let second = scope.spawn(|| limiter.wait("report", 1, Span::from_secs(150)));
        until(|| clock.sleepers() == 2);
        clock.advance(Span::from_secs(120));
        assert!(head.join().unwrap().unwrap().allowed());
        assert_eq!(second.join().unwrap(), Err(WaitError::TooLong(Span::from_secs(120))));
    });
    assert_eq!(clock.now(), START + Span::from_secs(60));
}

#[test]
fn real_time_waiting_is_exact_too() {
    let limiter = Limiter::new("pace 1000/s").unwrap();
    let start = limiter.clock().now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10).for_each(|_| _ = limiter.wait("backend", 1, Duration::from_secs(10)).unwrap()));
        }
    });
    // Forty turns a millisecond apart: the last no earlier than 39 ms after the first.
    assert!(limiter.clock().now().since(start) >= Span::from_millis(39));
}

#[cfg(feature = "tokio")]
mod tasks {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tasks_leave_in_order_and_may_be_dropped() {
        let (clock, limiter) = limiter("pace 10/s");
        limiter.take("backend");
        let mut places = Vec::new();
        for number in 0..4 {
            let limiter = limiter.clone();
            places.push(tokio::spawn(async move { limiter.wait_async("backend", 1, Span::MAX).await.map(|_| number) }));
            while clock.sleepers() != number + 1 {
                tokio::task::yield_now().await;
            }
        }
        // The head and one in the middle give up.
        for gone in [0, 2] {
            places[gone].abort();
            assert!((&mut places[gone]).await.unwrap_err().is_cancelled());
        }
        clock.advance(Span::from_millis(100));
        assert_eq!((&mut places[1]).await.unwrap(), Ok(1));
        assert!(!places[3].is_finished());
        clock.advance(Span::from_millis(100));
        assert_eq!((&mut places[3]).await.unwrap(), Ok(3));
        assert_eq!(limiter.peek("backend", 0).reset_after, Span::from_millis(100));
    }

    #[tokio::test]
    async fn threads_and_tasks_share_a_queue() {
        let limiter = Limiter::new("pace 500/s").unwrap();
        let blocking = {
            let limiter = limiter.clone();
            tokio::task::spawn_blocking(move || (0..5).all(|_| limiter.wait("backend", 1, Span::MAX).is_ok()))
        };
        for _ in 0..5 {
            limiter.wait_async("backend", 1, Span::from_secs(10)).await.unwrap();
        }
        assert!(blocking.await.unwrap());
        assert!(!limiter.peek("backend", 1).delay().is_zero(), "ten turns were taken, the last just now");
    }
}
