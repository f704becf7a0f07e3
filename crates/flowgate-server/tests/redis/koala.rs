//! Koala's rules on a Redis that two nodes share, and while it is away.

use flowgate_koala::{KoalaAsk, KoalaErase, config_from_toml};
use flowgate_testkit::server::RunningServer;
use flowgate_testkit::wait::eventually;
use flowgate_testkit::{files, http};

use super::*;

const KOALA: &str = "[rules]
    rule : [direct] [uid=13] [] [result=2; return=1]
    rule : [count] [act=ask; qid=+] [time=3600; count=2] [result=2; return=2]
    rule : [base]  [act=ask; ip=+]  [base=2; time=3600; count=1] [result=2; return=3]
    rule : [leak]  [act=see; qid=+] [time=3600; count=2; erase1=2] [result=2; return=4]
    [result]\n2 : { \"Err_no\":10 }";

/// A node that serves these rules.
fn node(redis: &Redis, settings: &str) -> (Node, tempfile::TempDir) {
    let directory = files::directory(&[("koala.conf", KOALA)]);
    let path = directory.path().join("koala.conf");
    let rules = format!("koala.rules = {:?}\n{RULES}", path.to_str().unwrap());
    (Node::new(&redis.url(), settings, &rules), directory)
}

impl Node {
    /// The number of the rule that decides; 0: none.
    async fn koala(&self, ask: KoalaAsk, fields: &str) -> u32 {
        let rules = self.service.koala_rules().unwrap();
        let request: Request<'_> = fields.split(' ').map(|field| field.split_once('=').unwrap()).collect();
        let answer = self.service.koala(&rules, ask, &request, self.service.read()).await;
        answer.decided().map_or(0, |rule| rules.rules.number(rule))
    }

    async fn value(&self, number: u32, fields: &str) -> Option<Option<u64>> {
        let rules = self.service.koala_rules().unwrap();
        let request: Request<'_> = fields.split(' ').map(|field| field.split_once('=').unwrap()).collect();
        self.service.koala_value(&rules, number, &request).await.ok()
    }
}

#[tokio::test]
async fn nodes_count_together() {
    let redis = Redis::start();
    let ((one, _one), (other, _other)) = (node(&redis, ""), node(&redis, ""));
    one.recovers().await;
    other.recovers().await;
    let ask = "act=ask qid=1 ip=1.1.1.1";
    assert_eq!(one.koala(KoalaAsk::Browse, "uid=13 act=ask qid=1").await, 1);
    assert_eq!(one.koala(KoalaAsk::BrowseAndCount, ask).await, 0);
    assert_eq!(other.koala(KoalaAsk::Browse, ask).await, 0);
    other.koala(KoalaAsk::Update, ask).await;
    assert_eq!(one.koala(KoalaAsk::Browse, ask).await, 2);
    assert_eq!(one.koala(KoalaAsk::Browse, "act=ask qid=2 ip=1.1.1.1").await, 3);
    assert_eq!(other.koala(KoalaAsk::BrowseAndCount, ask).await, 2);
    assert_eq!(one.value(2, ask).await, Some(Some(3)), "a denial counts, too");
    assert_eq!((one.value(1, "uid=13").await, one.value(9, ask).await), (Some(Some(0)), Some(None)));

    for _ in 0..2 {
        one.koala(KoalaAsk::Update, "act=see qid=1").await;
    }
    assert_eq!(other.koala(KoalaAsk::Browse, "act=see qid=1").await, 4);
    let rules = other.service.koala_rules().unwrap();
    let request = Request::new().field("act", "see").field("qid", "1");
    other.service.koala_feedback(&rules, KoalaErase::Erase1, &request).await.unwrap();
    assert_eq!(one.value(4, "act=see qid=1").await, Some(Some(0)));
}

#[tokio::test]
async fn on_failure_decides_while_redis_is_away() {
    for (on_failure, expected) in [("local", [0, 0, 2]), ("allow", [0, 0, 0]), ("deny", [2, 2, 2])] {
        let redis = Redis::start();
        let (node, _directory) = node(&redis, &format!("on_failure = '{on_failure}'"));
        node.recovers().await;
        drop(redis);
        node.until_degraded(true).await;
        let mut found = Vec::new();
        for _ in 0..3 {
            found.push(node.koala(KoalaAsk::BrowseAndCount, "act=ask qid=1").await);
        }
        assert_eq!(found, expected, "{on_failure}");
        assert_eq!(node.koala(KoalaAsk::Browse, "uid=13 act=ask qid=1").await, 1, "a direct rule needs no store");
        assert_eq!(node.value(2, "act=ask qid=1").await, None);
        assert!(node.service.shared_stats().unwrap().degraded > 0);
    }
}

#[tokio::test]
async fn paused_reset_and_explained() {
    let redis = Redis::start();
    let (node, _directory) = node(&redis, "");
    node.recovers().await;
    let ask = "act=ask qid=1";
    for _ in 0..2 {
        node.koala(KoalaAsk::Update, ask).await;
    }
    assert_eq!(node.koala(KoalaAsk::Browse, ask).await, 2);
    node.service.pause(Span::from_secs(600), &Author::PROGRAM);
    assert_eq!(node.koala(KoalaAsk::BrowseAndCount, ask).await, 0);
    assert_eq!(node.koala(KoalaAsk::Browse, "uid=13 act=see qid=9").await, 0);
    assert_eq!(node.value(2, ask).await, Some(Some(3)), "it counts on");
    node.service.resume(&Author::PROGRAM);
    assert_eq!(node.koala(KoalaAsk::Browse, ask).await, 2);
    let (snapshot, request) = (node.service.snapshot(), Request::new().field("act", "ask").field("qid", "1"));
    node.service.reset_by(&snapshot, &request, node.service.read()).await.unwrap();
    assert_eq!((node.koala(KoalaAsk::Browse, ask).await, node.value(2, ask).await), (0, Some(Some(0))));
    // A denial is ranked when its answer arrives.
    for _ in 0..400 {
        node.koala(KoalaAsk::BrowseAndCount, ask).await;
    }
    let denied = node.service.most_denied();
    assert!(format!("{denied:?}").contains("act=ask qid=1"), "{denied:?}");
}

#[tokio::test]
async fn a_decision_without_redis_is_counted_as_a_stopgap() {
    let (node, _directory) = node(&Redis::absent(&[]), "");
    node.koala(KoalaAsk::Browse, "act=ask qid=1").await;
    let metrics = node.service.prometheus();
    assert!(metrics.contains("\nflowgate_degraded_decisions_total 1\n"), "{metrics}");
}

#[test]
fn alive_says_whether_redis_is() {
    let mut redis = Redis::start();
    let directory = files::directory(&[("koala.conf", KOALA)]);
    let rules = directory.path().join("koala.conf");
    let toml = format!(
        "listen = {{ http = '127.0.0.1:0', resp = 'off' }}\nserver = {{ threads = 1 }}\nkoala.rules = {rules:?}\n\
         store = {{ type = 'redis', url = '{}', timeout = '500ms' }}",
        redis.url()
    );
    let server = RunningServer::start(config_from_toml(&toml).unwrap());
    let says = |status: u16, body: &str| {
        let started = Instant::now();
        eventually(body, || {
            let reply = http::Client::connect(server.http.unwrap()).call("GET", "/monitor/alive", &[], "");
            (reply.status, reply.body.as_str()) == (status, body)
        });
        assert!(started.elapsed() < RECOVERY, "{body}");
    };
    says(200, r#"{"errno": 0, "errmsg": "OK!"}"#);
    redis.kill();
    says(500, r#"{"errno": -1, "errmsg": "redis-error!"}"#);
    redis.up();
    says(200, r#"{"errno": 0, "errmsg": "OK!"}"#);
}
