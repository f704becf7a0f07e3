//! Counters in Redis: a call of several descriptors passes whole or not at all.

use flowgate_testkit::envoy::{Client, Code, RateLimitDescriptor, descriptor, request};
use flowgate_testkit::redis::Redis;
use flowgate_testkit::server::RunningServer;

use super::{config, statuses};

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
