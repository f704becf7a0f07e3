//! What a call is answered, row by row.

use flowgate::Span;
use flowgate_engine::bans::BanOrder;
use flowgate_server::{Answer, Author, Server, Service};
use flowgate_testkit::envoy::{
    Client, Code, RateLimitDescriptor, RateLimitOverride, RateLimitRequest, descriptor, request,
};
use serde_json::Value;

use super::{first, header, metadata, start, start_prepared, statuses};

const PER_ADDRESS: &str = "
    [[rule]]
    name   = 'per-address'
    when   = { domain = 'edge', remote_address = '*' }
    by     = ['remote_address']
    limits = ['3/60s']
";

fn address(address: &str) -> RateLimitDescriptor {
    descriptor(&[("remote_address", address)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn statuses_count_down_and_a_denial_tells_all() {
    let (_server, clock, client) = start(PER_ADDRESS).await;
    let call = request("edge", vec![address("192.0.2.1")]);
    for left in [2, 1, 0] {
        let allowed = client.ask(&call).await.unwrap();
        assert_eq!(first(&allowed), (Code::Ok, format!("OK {left} of 3/MINUTE by per-address, 60 s")));
        assert_eq!((allowed.response_headers_to_add.len(), allowed.raw_body.len()), (0, 0));
        assert_eq!(metadata(&allowed, "granted").unwrap(), "1");
        assert_eq!(metadata(&allowed, "rule").unwrap(), "per-address");
    }
    clock.advance(Span::from_micros(59_400_000));
    let denied = client.ask(&call).await.unwrap();
    assert_eq!(first(&denied), (Code::OverLimit, "OVER_LIMIT 0 of 3/MINUTE by per-address, 1 s".to_owned()));
    assert_eq!(header(&denied, "retry-after"), Some("1"));
    assert_eq!(header(&denied, "x-flowgate-rule"), Some("per-address"));
    assert_eq!(header(&denied, "x-flowgate-action"), Some("deny"));
    assert_eq!(header(&denied, "content-type"), Some("application/problem+json"));
    assert!(denied.response_headers_to_add.iter().all(|header| !header.key.starts_with("x-ratelimit")));
    let problem: Value = serde_json::from_slice(&denied.raw_body).unwrap();
    assert_eq!((&problem["status"], &problem["title"]), (&429.into(), &"Quota exceeded".into()));
    assert_eq!(metadata(&denied, "granted").unwrap(), "0");
    assert_eq!(metadata(&denied, "action").unwrap(), "deny");
    let other = client.ask(&request("edge", vec![address("192.0.2.2")])).await.unwrap();
    assert_eq!(first(&other).0, Code::Ok);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn descriptors_pass_together_or_not_at_all() {
    let (_server, _, client) = start(
        "rule = [
            { name = 'user', when = { user = '*' }, by = ['user'], limits = ['fixed 2/h'] },
            { name = 'all', when = { all = '*' }, limits = ['10/min'] },
        ]",
    )
    .await;
    let call = request("edge", vec![descriptor(&[("all", "1")]), descriptor(&[("user", "42")])]);
    for (all, user) in [(9, 1), (8, 0)] {
        let allowed = client.ask(&call).await.unwrap();
        let expected = [format!("OK {all} of 10/MINUTE by all, 60 s"), format!("OK {user} of 2/HOUR by user, 3600 s")];
        assert_eq!(statuses(&allowed), expected);
    }
    for _ in 0..5 {
        let denied = client.ask(&call).await.unwrap();
        assert_eq!(denied.overall_code(), Code::OverLimit);
        assert_eq!(
            statuses(&denied),
            ["OK 8 of 10/MINUTE by all, 60 s", "OVER_LIMIT 0 of 2/HOUR by user, 3600 s"],
            "a client over its own limit takes nothing from that of all"
        );
        assert_eq!(header(&denied, "x-flowgate-rule"), Some("user"));
    }
    // Two descriptors on one counter are counted one after the other.
    let twice = request("edge", vec![descriptor(&[("user", "7")]); 2]);
    let allowed = client.ask(&twice).await.unwrap();
    assert_eq!(statuses(&allowed), ["OK 1 of 2/HOUR by user, 3600 s", "OK 0 of 2/HOUR by user, 3600 s"]);
    let third = request("edge", vec![descriptor(&[("user", "8")]); 3]);
    assert_eq!(client.ask(&third).await.unwrap().overall_code(), Code::OverLimit);
    let one = client.ask(&request("edge", vec![descriptor(&[("user", "8")])])).await.unwrap();
    assert_eq!(first(&one).1, "OK 1 of 2/HOUR by user, 3600 s", "the call of three counted nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn costs_of_the_call_and_of_the_descriptor() {
    let (_server, _, client) =
        start("rule = [{ name = 'tokens', when = { user = '*' }, by = ['user'], limits = ['fixed 10/h'] }]").await;
    let user = || descriptor(&[("user", "42")]);
    let ask = async |hits_addend: u32, descriptor: RateLimitDescriptor| {
        let call = RateLimitRequest { hits_addend, ..request("llm", vec![descriptor]) };
        let response = client.ask(&call).await.unwrap();
        (response.overall_code(), response.statuses[0].limit_remaining, metadata(&response, "granted").unwrap())
    };
    let own = |hits: u64| RateLimitDescriptor { hits_addend: Some(hits), ..user() };
    let back = |hits: u64| RateLimitDescriptor { is_negative_hits: true, ..own(hits) };
    assert_eq!(ask(0, user()).await, (Code::Ok, 9, "1".to_owned()), "0 is not given and means 1");
    assert_eq!(ask(3, user()).await, (Code::Ok, 6, "3".to_owned()));
    assert_eq!(ask(3, own(2)).await.1, 4);
    assert_eq!(ask(0, own(0)).await, (Code::Ok, 4, "1".to_owned()), "a cost of 0 looks");
    assert_eq!(ask(0, own(5)).await, (Code::OverLimit, 4, "0".to_owned()));
    assert_eq!(ask(0, own(4)).await.1, 0);
    assert_eq!(ask(0, own(0)).await.0, Code::OverLimit, "nothing is left");
    assert_eq!(ask(0, back(3)).await, (Code::Ok, 3, "1".to_owned()));
    assert_eq!(ask(0, back(0)).await.1, 3);
    let negative = RateLimitDescriptor { is_negative_hits: true, ..user() };
    assert_eq!(ask(2, negative).await.1, 5, "the cost of the call is given back");
    // A refund happens although another descriptor is denied.
    let call = request("llm", vec![own(11), back(1)]);
    let denied = client.ask(&call).await.unwrap();
    assert_eq!((denied.overall_code(), denied.statuses[1].limit_remaining), (Code::OverLimit, 6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_payment_after_the_fact_uses_up_the_budget() {
    let (_server, _, client) = start(
        "rule = [{ name = 'tokens', when = { user = '*' }, by = ['user'], limits = ['fixed 10/h'], count_denied = true }]",
    )
    .await;
    let own = |hits| vec![RateLimitDescriptor { hits_addend: Some(hits), ..descriptor(&[("user", "42")]) }];
    assert_eq!(client.ask(&request("llm", own(0))).await.unwrap().overall_code(), Code::Ok);
    let paid = client.ask(&request("llm", own(5000))).await.unwrap();
    assert_eq!(first(&paid), (Code::OverLimit, "OVER_LIMIT 0 of 10/HOUR by tokens, 3600 s".to_owned()));
    assert_eq!(header(&paid, "retry-after"), None, "no wait lets 5000 pass");
    assert_eq!(client.ask(&request("llm", own(0))).await.unwrap().overall_code(), Code::OverLimit);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_outcome_has_its_status() {
    let (_server, _, client) = start(
        "rule = [
            { name = 'shadow', when = { kind = 'shadow' }, limits = ['1/h'], shadow = true },
            { name = 'free', when = { kind = 'free' }, limits = ['unlimited'] },
            { name = 'trusted', when = { kind = 'trusted' }, action = 'allow' },
            { name = 'closed', when = { kind = 'closed' }, action = 'deny' },
            { name = 'robot', when = { kind = 'robot' }, action = 'captcha' },
            { name = 'paced', when = { kind = 'paced' }, limits = ['pace 1/10s'] },
            { name = 'odd', when = { kind = 'odd' }, limits = ['5/10s'] },
            { name = 'large', when = { kind = 'large' }, limits = ['fixed 900000000000/s'] },
            { name = 'strict', when = { kind = 'strict' }, by = ['kind'], limits = ['1/h'], ban = { after = 1, within = '1h', for = ['2h'] } },
        ]",
    )
    .await;
    let ask = async |kind: &str| {
        let response = client.ask(&request("d", vec![descriptor(&[("kind", kind)])])).await.unwrap();
        (first(&response).1, header(&response, "x-flowgate-action").map(str::to_owned))
    };
    let deny = Some("deny".to_owned());
    assert_eq!(ask("unknown").await, ("OK 0, 0 s".to_owned(), None));
    assert_eq!(ask("trusted").await, ("OK 0, 0 s".to_owned(), None));
    assert_eq!(ask("free").await, ("OK 4294967295, 0 s".to_owned(), None));
    assert_eq!(ask("closed").await, ("OVER_LIMIT 0, 0 s".to_owned(), deny.clone()));
    assert_eq!(ask("robot").await, ("OVER_LIMIT 0, 0 s".to_owned(), Some("captcha".to_owned())));
    for _ in 0..3 {
        assert_eq!(ask("shadow").await, ("OK 0, 0 s".to_owned(), None));
    }
    assert_eq!(ask("odd").await.0, "OK 4 of 5/UNKNOWN by odd, 10 s");
    assert_eq!(ask("large").await.0, "OK 4294967295 of 4294967295/SECOND by large, 1 s");
    assert!(ask("paced").await.0.starts_with("OK 0 of 1/"));
    assert!(ask("paced").await.0.starts_with("OVER_LIMIT 0 of 1/"), "Envoy does not wait for a turn");
    assert_eq!(ask("strict").await.0, "OK 0 of 1/HOUR by strict, 3600 s");
    assert_eq!(ask("strict").await, ("OVER_LIMIT 0 of 1/HOUR by strict, 7200 s".to_owned(), deny.clone()));
    assert_eq!(ask("strict").await, ("OVER_LIMIT 0 of 1/HOUR by strict, 7200 s".to_owned(), deny));
}

/// Rules of one kind beside each other: the tightest limit is shown, and what does not deny is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_status_shows_the_tightest_limit() {
    let (_server, clock, client) = start(
        "rule = [
            { name = 'wide', when = { k = '*' }, by = ['k'], limits = ['fixed 100/d', 'fixed 4/h'] },
            { name = 'free', when = { k = 'free' }, limits = ['unlimited'] },
            { name = 'shadow', when = { k = 'shadow' }, limits = ['1/h'], shadow = true },
            { name = 'robot', when = { k = 'robot' }, limits = ['fixed 2/min'], action = 'captcha' },
        ]",
    )
    .await;
    let ask = async |kind: &str, hits: u64| {
        let descriptor = RateLimitDescriptor { hits_addend: Some(hits), ..descriptor(&[("k", kind)]) };
        client.ask(&request("d", vec![descriptor])).await.unwrap()
    };
    assert_eq!(first(&ask("any", 1).await).1, "OK 3 of 4/HOUR by wide, 3600 s");
    clock.advance(Span::from_millis(500));
    assert_eq!(first(&ask("any", 1).await).1, "OK 2 of 4/HOUR by wide, 3600 s", "3599.5 s are rounded up");
    assert_eq!(first(&ask("free", 1).await).1, "OK 3 of 4/HOUR by wide, 3600 s", "a limit beside `unlimited` is shown");
    for left in [3, 2] {
        let shown = format!("OK {left} of 4/HOUR by wide, 3600 s");
        assert_eq!(first(&ask("shadow", 1).await).1, shown, "a shadow is not shown, exceeded or not");
    }
    let never = ask("any", 5).await;
    assert_eq!(first(&never), (Code::OverLimit, "OVER_LIMIT 2 of 4/HOUR by wide, 3600 s".to_owned()));
    assert_eq!(header(&never, "retry-after"), None, "no wait lets 5 pass");
    let robot = ask("robot", 2).await;
    assert_eq!(first(&robot).1, "OK 0 of 2/MINUTE by robot, 60 s");
    let robot = ask("robot", 1).await;
    assert_eq!(first(&robot).1, "OVER_LIMIT 0 of 2/MINUTE by robot, 60 s");
    assert_eq!(header(&robot, "x-flowgate-action"), Some("captcha"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_denial_tells_the_longest_wait_of_all_descriptors() {
    let (_server, _, client) = start(
        "rule = [
            { name = 'minute', when = { k = 'minute' }, limits = ['fixed 1/min'] },
            { name = 'hour', when = { k = 'hour' }, limits = ['fixed 1/h'] },
        ]",
    )
    .await;
    let call = request("d", ["minute", "hour"].map(|kind| descriptor(&[("k", kind)])).to_vec());
    assert_eq!(client.ask(&call).await.unwrap().overall_code(), Code::Ok);
    let denied = client.ask(&call).await.unwrap();
    assert_eq!(
        statuses(&denied),
        ["OVER_LIMIT 0 of 1/MINUTE by minute, 60 s", "OVER_LIMIT 0 of 1/HOUR by hour, 3600 s"]
    );
    assert_eq!(header(&denied, "retry-after"), Some("3600"));
}

/// While the rules are paused, limits of callers count and deny nothing.
pub(crate) async fn check_limits_of_callers_during_a_pause(client: &Client, service: &Service) {
    let ask = async |requests_per_unit, beside: bool| {
        let limit = Some(RateLimitOverride { requests_per_unit, unit: 3, unit_multiplier: None });
        let mut descriptors = vec![RateLimitDescriptor { limit, ..descriptor(&[("user", "p")]) }];
        descriptors.extend(beside.then(|| descriptor(&[("strict", "p")])));
        let response = client.ask(&request("d", descriptors)).await.unwrap();
        (response.overall_code(), statuses(&response)[0].clone())
    };
    let (code, shown) = ask(1, false).await;
    assert!(code == Code::Ok && shown.starts_with("OK 0 of 1/HOUR by descriptor-limit, "), "{shown}");
    assert_eq!(ask(1, false).await.0, Code::OverLimit);
    service.pause(Span::from_secs(3600), &Author::PROGRAM);
    let shadow = (Code::Ok, "OK 0, 0 s".to_owned());
    for (requests_per_unit, beside) in [(1, false), (1, true), (0, false), (0, true), (3, false)] {
        assert_eq!(ask(requests_per_unit, beside).await, shadow, "{requests_per_unit} an hour, {beside}");
    }
    assert!(service.resume(&Author::PROGRAM));
    assert_eq!(ask(1, true).await.0, Code::OverLimit);
    assert_eq!(ask(0, false).await.0, Code::OverLimit);
    let (code, shown) = ask(3, false).await;
    assert!(code == Code::Ok && shown.starts_with("OK 0 of 3/"), "the pause has counted what fitted: {shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn limits_of_callers_deny_nothing_during_a_pause() {
    let config = super::config(RULES_BESIDE_LIMITS_OF_CALLERS);
    let (server, service) = super::start_with_service(config);
    let client = Client::connect(server.grpc.unwrap()).await;
    check_limits_of_callers_during_a_pause(&client, &service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_look_at_a_pace_that_is_busy_is_denied() {
    let (_server, _, client) = start("rule = [{ name = 'paced', limits = ['pace 1/10s max_wait=60s'] }]").await;
    let ask = async |hits_addend| {
        let descriptor = RateLimitDescriptor { hits_addend, ..descriptor(&[("k", "v")]) };
        client.ask(&request("d", vec![descriptor])).await.unwrap().overall_code()
    };
    assert_eq!(ask(Some(0)).await, Code::Ok);
    assert_eq!(ask(None).await, Code::Ok);
    assert_eq!(ask(Some(0)).await, Code::OverLimit);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn fields_of_a_descriptor() {
    let (_server, _, client) = start_prepared(
        "rule = [
            { name = 'shape', when = { descriptor = 'route,remote_address' }, limits = ['100/s'] },
            { name = 'second', when = { 'generic_key.2' = 'b' }, limits = ['100/s'] },
            { name = 'domain', when = { domain = 'd', 'domain.2' = 'x' }, limits = ['100/s'] },
            { name = 'listed', when = { ip = '203.0.113.0/24' }, action = 'deny' },
        ]",
        |_| {},
    )
    .await;
    let ask = async |entries: &[(&str, &str)]| {
        metadata(&client.ask(&request("d", vec![descriptor(entries)])).await.unwrap(), "rule")
    };
    assert_eq!(ask(&[("route", "api"), ("remote_address", "192.0.2.1")]).await.unwrap(), "shape");
    assert_eq!(ask(&[("remote_address", "192.0.2.1"), ("route", "api")]).await, None, "the order of keys counts");
    assert_eq!(ask(&[("generic_key", "a"), ("generic_key", "b")]).await.unwrap(), "second");
    assert_eq!(ask(&[("domain", "x")]).await.unwrap(), "domain");
    assert_eq!(ask(&[("remote_address", "203.0.113.7")]).await.unwrap(), "listed");
    assert_eq!(
        ask(&[("ip", "192.0.2.1"), ("remote_address", "203.0.113.7")]).await,
        None,
        "an entry named ip is itself"
    );
    let mut many: Vec<(&str, &str)> = vec![("k", ""); 40];
    many.extend([("generic_key", "a"), ("generic_key", "b")]);
    assert_eq!(ask(&many).await.unwrap(), "second", "also among many entries");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_limit_that_the_caller_brings() {
    let (server, _, client) = start(
        "rule = [
            { name = 'tight', when = { user = '*' }, by = ['user'], limits = ['1/h'] },
            { name = 'closed', when = { user = 'evil' }, action = 'deny' },
        ]",
    )
    .await;
    let ask = async |user: &str, requests_per_unit: u32, unit: i32, unit_multiplier: Option<u32>| {
        let limit = Some(RateLimitOverride { requests_per_unit, unit, unit_multiplier });
        let descriptor = RateLimitDescriptor { limit, ..descriptor(&[("user", user)]) };
        client.ask(&request("d", vec![descriptor])).await.map(|response| first(&response).1)
    };
    // 1,700,000,000 is 800 seconds into an hour of UTC.
    assert_eq!(ask("a", 3, 3, None).await.unwrap(), "OK 2 of 3/HOUR by descriptor-limit, 2800 s");
    assert_eq!(ask("a", 3, 3, None).await.unwrap(), "OK 1 of 3/HOUR by descriptor-limit, 2800 s");
    assert_eq!(
        ask("a", 9, 3, None).await.unwrap(),
        "OK 6 of 9/HOUR by descriptor-limit, 2800 s",
        "another count, the same counter"
    );
    assert_eq!(ask("a", 2, 3, None).await.unwrap(), "OVER_LIMIT 0 of 2/HOUR by descriptor-limit, 2800 s");
    assert_eq!(ask("a", 3, 2, Some(5)).await.unwrap(), "OK 2 of 3/UNKNOWN by descriptor-limit, 300 s");
    assert_eq!(ask("b", 0, 3, None).await.unwrap(), "OVER_LIMIT 0, 0 s");
    assert_eq!(ask("evil", 9, 3, None).await.unwrap(), "OVER_LIMIT 0, 0 s", "rules without limits hold");
    assert_eq!(ask("c", 5, 0, None).await.unwrap_err().0, 3);
    assert_eq!(ask("c", 5, 6, Some(9)).await.unwrap_err().0, 3, "nine years are too long");
    // Beside another descriptor the step passes whole or not at all.
    let limited = |requests_per_unit| {
        let limit = Some(RateLimitOverride { requests_per_unit, unit: 3, unit_multiplier: None });
        RateLimitDescriptor { limit, ..descriptor(&[("user", "d")]) }
    };
    let other = || descriptor(&[("user", "e")]);
    let denied = client.ask(&request("d", vec![other(), limited(0)])).await.unwrap();
    assert_eq!(denied.overall_code(), Code::OverLimit);
    assert_eq!(statuses(&denied)[0], "OK 1 of 1/HOUR by tight, 0 s");
    let allowed = client.ask(&request("d", vec![other(), limited(1)])).await.unwrap();
    assert_eq!(allowed.overall_code(), Code::Ok);
    let metrics = super::access::metrics(&server);
    for (action, count) in [("allow", 5), ("deny", 3)] {
        let line = format!("flowgate_decisions_total{{rule=\"(key)\",action=\"{action}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
}

/// Beside each other: a rule's limit, a limit that the caller brings twice, and a refund of it.
pub(crate) async fn check_limits_of_callers_in_a_step(client: &Client) {
    let limit = Some(RateLimitOverride { requests_per_unit: 3, unit: 3, unit_multiplier: None });
    let brought = || RateLimitDescriptor { limit, ..descriptor(&[("user", "u")]) };
    let ruled = || descriptor(&[("user", "r")]);
    let ask = async |descriptors: Vec<RateLimitDescriptor>| {
        let response = client.ask(&request("d", descriptors)).await.unwrap();
        let left: Vec<u32> = response.statuses.iter().map(|status| status.limit_remaining).collect();
        (response.overall_code() == Code::Ok, left)
    };
    assert_eq!(ask(vec![ruled(), brought(), brought()]).await, (true, vec![4, 2, 1]));
    assert_eq!(ask(vec![brought(), ruled(), brought()]).await, (false, vec![1, 4, 1]), "the second one does not fit");
    assert_eq!(ask(vec![ruled(), brought()]).await, (true, vec![3, 0]), "the denied step has charged nothing");
    assert_eq!(ask(vec![ruled(), brought()]).await, (false, vec![3, 0]));
    let back = RateLimitDescriptor { is_negative_hits: true, ..brought() };
    assert_eq!(ask(vec![brought(), back, ruled()]).await, (true, vec![0, 1, 2]), "refunds come first");
    let look = || RateLimitDescriptor { hits_addend: Some(0), ..brought() };
    assert_eq!(ask(vec![look(), ruled()]).await, (false, vec![0, 2]));
    let elsewhere = RateLimitDescriptor { limit, ..descriptor(&[("user", "v")]) };
    assert_eq!(ask(vec![elsewhere, ruled()]).await, (true, vec![2, 1]), "other entries have another counter");
    // A ban of a rule holds for a descriptor that brings a limit.
    let strict = || descriptor(&[("strict", "s")]);
    for expected in [true, false] {
        assert_eq!(ask(vec![strict()]).await.0, expected);
    }
    let limit = Some(RateLimitOverride { requests_per_unit: 100, unit: 3, unit_multiplier: None });
    let banned = client.ask(&request("d", vec![RateLimitDescriptor { limit, ..strict() }, ruled()])).await.unwrap();
    assert_eq!(header(&banned, "x-flowgate-rule"), Some("strict"));
    assert_eq!(statuses(&banned)[0], "OVER_LIMIT 0, 7200 s");
    assert_eq!(ask(vec![ruled()]).await, (true, vec![0]), "the denied step has charged nothing");
}

pub(crate) const RULES_BESIDE_LIMITS_OF_CALLERS: &str = "rule = [
    { name = 'user', when = { user = '*' }, by = ['user'], limits = ['fixed 5/h'] },
    { name = 'strict', when = { strict = '*' }, by = ['strict'], limits = ['fixed 1/h'], ban = { after = 1, within = '1h', for = ['2h'] } },
]";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn limits_of_callers_are_part_of_the_step() {
    let (_server, _, client) = start(RULES_BESIDE_LIMITS_OF_CALLERS).await;
    check_limits_of_callers_in_a_step(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bans_by_hand_hold_for_the_addresses_of_clients() {
    let ban = |server: &Server| {
        let network = BanOrder {
            field: "ip",
            value: "192.0.2.0/24",
            length: Span::from_secs(90),
            reason: "scraping",
            author: None,
        };
        let banned = server.service.ban(network, &Author::PROGRAM);
        assert!(matches!(banned, Answer::Now(Ok(_))));
    };
    let (_server, _, client) = start_prepared(PER_ADDRESS, ban).await;
    let denied = client.ask(&request("edge", vec![address("192.0.2.7"), address("198.51.100.1")])).await.unwrap();
    assert_eq!(statuses(&denied), ["OVER_LIMIT 0, 90 s", "OK 3 of 3/MINUTE by per-address, 0 s"]);
    assert_eq!(header(&denied, "retry-after"), Some("90"));
    let problem: Value = serde_json::from_slice(&denied.raw_body).unwrap();
    assert_eq!((&problem["status"], &problem["detail"]), (&403.into(), &"scraping".into()), "{problem}");
    let limit = Some(RateLimitOverride { requests_per_unit: 100, unit: 3, unit_multiplier: None });
    let brought = RateLimitDescriptor { limit, ..address("192.0.2.7") };
    let denied = client.ask(&request("edge", vec![brought])).await.unwrap();
    assert_eq!(first(&denied), (Code::OverLimit, "OVER_LIMIT 0, 90 s".to_owned()));
    let refund = RateLimitDescriptor { is_negative_hits: true, ..address("192.0.2.7") };
    assert_eq!(client.ask(&request("edge", vec![refund])).await.unwrap().overall_code(), Code::Ok);
}
