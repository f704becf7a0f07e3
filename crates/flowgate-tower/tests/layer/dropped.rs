//! Response futures that are dropped: what is refunded, what is not.

use std::sync::Mutex;

use axum::Router;
use axum::routing::get;
use tokio::sync::Notify;

use super::axum_server::{raw, send, serve};
use super::*;

#[tokio::test(start_paused = true)]
async fn a_turn_that_had_not_begun_is_given_back() {
    let (clock, reached) = (ManualClock::new(START), Arc::default());
    let limit = RateLimit::new("report", "pace 1/s max_wait=2s").unwrap().clock(clock.clone());
    let service = limit.layer(echo(&reached));
    assert_eq!(ask(&service, get_as("a")).await.status(), 200);
    for _ in 0..10 {
        let held = tokio::time::timeout(Duration::from_millis(20), ask(&service, get_as("a"))).await;
        assert!(held.is_err(), "the next turn is a second away");
    }
    assert_eq!(reached.load(Relaxed), 1, "a request that is dropped while it waits never reaches the service");

    let asked = tokio::time::Instant::now();
    assert_eq!(ask(&service, get_as("a")).await.status(), 200);
    let waited = asked.elapsed();
    assert!(waited >= Duration::from_secs(1) && waited < Duration::from_millis(1010), "{waited:?}");
    assert_eq!(reached.load(Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_left_before_its_turn_costs_no_limit_anything() {
    let rules = r#"rule = [
        { name = "quota", limits = ["3/60s"] },
        { name = "slow", limits = ["pace 1/s max_wait=5s"] },
    ]"#;
    let engine = Engine::new(&Config::from_toml(rules).unwrap().policy, MemoryStore::default()).unwrap();
    let limit = RateLimit::with_engine(Arc::new(engine)).clock(ManualClock::new(START));
    let service = limit.layer(echo(&Arc::default()));
    ask(&service, get_as("a")).await;
    for _ in 0..5 {
        assert!(tokio::time::timeout(Duration::from_millis(20), ask(&service, get_as("a"))).await.is_err());
    }
    assert_eq!(ask(&service, get_as("a")).await.status(), 200);
    assert_eq!(ask(&service, get_as("a")).await.status(), 200);
    assert_eq!(ask(&service, get_as("a")).await.status(), 429, "the quota of three is used up by three requests");
}

#[tokio::test]
async fn refund_if_is_told_of_a_dropped_request_once() {
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&outcomes);
    let limit = RateLimit::new("api", "2/60s").unwrap().refund_if(move |outcome| {
        seen.lock().unwrap().push(format!("{outcome:?}"));
        matches!(outcome, Outcome::Dropped)
    });
    let never = service_fn(|_: Request<()>| std::future::pending::<Result<Answer, Infallible>>());
    let service = limit.layer(never);
    for number in 1..=5 {
        // The future is dropped before its first poll, and after it.
        drop(service.clone().call(get_as("a")));
        assert!(tokio::time::timeout(Duration::from_millis(1), ask(&service, get_as("a"))).await.is_err());
        assert_eq!(*outcomes.lock().unwrap(), vec!["Dropped"; 2 * number]);
    }
    let answered = limit.layer(echo(&Arc::default()));
    assert_eq!(ask(&answered, get_as("a")).await.status(), 200);
    assert_eq!(outcomes.lock().unwrap().len(), 11, "an answered request is settled by its response alone");
    assert!(outcomes.lock().unwrap()[10].starts_with("Answered"));
}

#[tokio::test]
async fn refund_failures_keeps_the_charge_of_a_dropped_request() {
    let never = service_fn(|_: Request<()>| std::future::pending::<Result<Answer, Infallible>>());
    let service = RateLimit::new("api", "2/60s").unwrap().refund_failures().layer(never);
    drop(service.clone().call(get_as("a")));
    drop(service.clone().call(get_as("a")));
    assert_eq!(ask(&service, get_as("a")).await.status(), 429);
}

/// Clients send requests as fast as they can, and hang up as soon as the handler works on one.
#[tokio::test]
async fn a_client_that_aborts_its_requests_is_limited() {
    const LIMIT: usize = 5;
    let (reached, left) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (begun, counted) = (Arc::clone(&reached), Arc::clone(&left));
    let handler = move || {
        let (begun, counted) = (Arc::clone(&begun), Arc::clone(&counted));
        async move {
            let _left = CountDrop(counted);
            begun.notify_one();
            std::future::pending::<()>().await;
        }
    };
    let limit = RateLimit::new("api", "5/60s").unwrap().by(client_ip(ClientAddresses::default())).refund_failures();
    let address = serve(Router::new().route("/", get(handler)).layer(limit)).await;
    for _ in 0..LIMIT {
        let client = send(address, "").await;
        reached.notified().await;
        drop(client);
    }
    // The server has noticed that all clients left.
    let all_left = async {
        while left.load(Relaxed) < LIMIT {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all_left).await.unwrap();
    for _ in 0..20 {
        let said = raw(address, "").await;
        assert!(said.starts_with("http/1.1 429"), "{said}");
    }
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}
