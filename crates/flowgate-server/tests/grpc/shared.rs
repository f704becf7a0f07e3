//! Counters in Redis: a call of several descriptors passes whole or not at all.

use flowgate_testkit::cluster::Cluster;
use flowgate_testkit::envoy::{Client, Code, RateLimitDescriptor, RateLimitOverride, descriptor, request};
use flowgate_testkit::redis::Redis;
use flowgate_testkit::server::RunningServer;

use super::outcomes::{
    RULES_BESIDE_LIMITS_OF_CALLERS, check_limits_of_callers_during_a_pause, check_limits_of_callers_in_a_step,
};
use super::{config, metadata, start_with_service, statuses};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn descriptors_pass_together_or_not_at_all_on_redis() {
    let redis = Redis::start();
    let server = RunningServer::start(config(&format!(
        "store = {{ type = 'redis', url = '{}' }}
        rule = [
            {{ name = 'user', when = {{ user = '*' }}, by = ['user'], limits = ['fixed 2/h'] }},
            {{ name = 'all', when = {{ all = '*' }}, limits = ['fixed 10/h'] }},
        ]",
        redis.url()
    )));
    let client = Client::connect(server.grpc.unwrap()).await;
    let left = |response: &flowgate_testkit::envoy::RateLimitResponse| {
        response.statuses.iter().map(|status| status.limit_remaining).collect::<Vec<_>>()
    };
    let call = request("d", vec![descriptor(&[("all", "1")]), descriptor(&[("user", "42")])]);
    for expected in [[9, 1], [8, 0], [8, 0], [8, 0]] {
        let response = client.ask(&call).await.unwrap();
        assert_eq!(left(&response), expected, "{:?}", statuses(&response));
    }
    let back = RateLimitDescriptor { is_negative_hits: true, ..descriptor(&[("user", "42")]) };
    let refund = client.ask(&request("d", vec![back, descriptor(&[("all", "1")])])).await.unwrap();
    assert_eq!((refund.overall_code(), left(&refund)), (Code::Ok, vec![1, 7]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn limits_of_callers_are_part_of_the_step_on_redis() {
    let redis = Redis::start();
    let store = format!("store = {{ type = 'redis', url = '{}' }}", redis.url());
    let server = RunningServer::start(config(&format!("{store}\n{RULES_BESIDE_LIMITS_OF_CALLERS}")));
    let client = Client::connect(server.grpc.unwrap()).await;
    check_limits_of_callers_in_a_step(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn limits_of_callers_deny_nothing_during_a_pause_on_redis() {
    let redis = Redis::start();
    let store = format!("store = {{ type = 'redis', url = '{}' }}", redis.url());
    let (server, service) = start_with_service(config(&format!("{store}\n{RULES_BESIDE_LIMITS_OF_CALLERS}")));
    let client = Client::connect(server.grpc.unwrap()).await;
    check_limits_of_callers_during_a_pause(&client, &service).await;
}

/// The counters of a step lie in several slots, on several servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn limits_of_callers_are_part_of_the_step_in_a_cluster() {
    let cluster = Cluster::start();
    let server = RunningServer::start(config(&cluster.config("on_failure = 'deny'", RULES_BESIDE_LIMITS_OF_CALLERS)));
    let client = Client::connect(server.grpc.unwrap()).await;
    // A look counts nothing, and its answer tells whether the server of its slot has been found.
    for user in (0..3).flat_map(|master| cluster.users_of(master, 1)) {
        let look = RateLimitDescriptor { hits_addend: Some(0), ..descriptor(&[("user", &user)]) };
        while metadata(&client.ask(&request("d", vec![look.clone()])).await.unwrap(), "degraded").is_some() {
            tokio::task::yield_now().await;
        }
    }
    check_limits_of_callers_in_a_step(&client).await;
}

/// While the store is away `on_failure` decides, for limits of callers, too, and the metadata says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_store_that_is_away_is_told_in_the_metadata() {
    let away = Redis::absent(&[]);
    for (on_failure, passed) in [("local", 2), ("allow", 5), ("deny", 0)] {
        let server = RunningServer::start(config(&format!(
            "store = {{ type = 'redis', url = '{}', on_failure = '{on_failure}' }}
            rule = [{{ name = 'user', when = {{ user = '*' }}, by = ['user'], limits = ['fixed 2/h'] }}]",
            away.url()
        )));
        let client = Client::connect(server.grpc.unwrap()).await;
        let limit = Some(RateLimitOverride { requests_per_unit: 2, unit: 3, unit_multiplier: None });
        let ruled = descriptor(&[("user", "1")]);
        let brought = RateLimitDescriptor { limit, ..ruled.clone() };
        for call in [vec![ruled], vec![brought], vec![descriptor(&[("user", "2")]), descriptor(&[("user", "3")])]] {
            let call = request("d", call);
            let mut ok = 0;
            for _ in 0..5 {
                let response = client.ask(&call).await.unwrap();
                assert_eq!(metadata(&response, "degraded").as_deref(), Some("true"), "{on_failure}: {response:?}");
                ok += usize::from(response.overall_code() == Code::Ok);
            }
            assert_eq!(ok, passed, "{on_failure}");
        }
    }
}

/// A store that takes longer than `request_timeout` leaves a call without an answer: UNAVAILABLE.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_store_that_is_too_slow_makes_a_call_unavailable() {
    let redis = Redis::start();
    let server = RunningServer::start(config(&format!(
        "server.request_timeout = '100ms'
        store = {{ type = 'redis', url = '{}', timeout = '10s' }}
        rule = [{{ name = 'user', when = {{ user = '*' }}, by = ['user'], limits = ['fixed 2/h'] }}]",
        redis.url()
    )));
    let client = Client::connect(server.grpc.unwrap()).await;
    let call = request("d", vec![descriptor(&[("user", "1")])]);
    while metadata(&client.ask(&call).await.unwrap(), "degraded").is_some() {
        tokio::task::yield_now().await;
    }
    redis.pause();
    assert_eq!(client.ask(&call).await.unwrap_err(), (14, "the store does not answer".to_owned()));
    redis.resume();
}
