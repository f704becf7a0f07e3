//! The `redis` crate.

use redis::{Client, Commands, Connection, ConnectionInfo, ErrorKind, IntoConnectionInfo, ProtocolVersion, cmd};

use super::RULES;
use crate::{Running, locked};

type Numbers = (i64, i64, i64, i64, i64, i64, String, String);

fn connect(info: impl IntoConnectionInfo) -> Connection {
    Client::open(info).unwrap().get_connection().unwrap()
}

fn url(server: &Running) -> String {
    format!("redis://{}/", server.address)
}

#[test]
fn limits_rules_and_keys() {
    let server = Running::start(crate::config(""), RULES);
    let mut client = connect(url(&server));
    let throttled: Vec<i64> = cmd("CL.THROTTLE").arg("user:42").arg(15).arg(30).arg(60).query(&mut client).unwrap();
    assert_eq!(throttled, [0, 16, 15, -1, 2]);

    let limited: Numbers = cmd("FG.LIMIT").arg("k").arg("5/60s").arg(5).query(&mut client).unwrap();
    assert_eq!(limited, (1, 5, 0, -1, 60_000, 0, String::new(), String::new()));
    let denied: Numbers = cmd("FG.LIMIT").arg("k").arg("5/60s").query(&mut client).unwrap();
    assert_eq!(denied, (0, 5, 0, 60_000, 60_000, 0, String::new(), String::new()));
    let taken: Numbers = cmd("FG.TAKE").arg(3).arg("user").arg("42").query(&mut client).unwrap();
    assert_eq!(taken, (0, 2, 2, -2, 0, 0, "captcha".to_owned(), "reply".to_owned()));

    assert_eq!(client.ttl::<_, i64>("k").unwrap(), 60);
    assert_eq!(client.exists::<_, i64>(&["k", "user:42", "none"]).unwrap(), 2);
    assert_eq!(client.del::<_, i64>(&["k", "none"]).unwrap(), 1);
    assert_eq!(client.ttl::<_, i64>("k").unwrap(), -2);
    let error = cmd("FG.LIMIT").arg("k").arg("5/nothing").exec(&mut client).unwrap_err();
    assert!(error.to_string().contains("5/nothing") || error.detail().is_some(), "{error}");
}

#[test]
fn a_pipeline_is_answered_in_order() {
    let server = Running::plain();
    let mut client = connect(url(&server));
    let mut pipeline = redis::pipe();
    for _ in 0..1000 {
        pipeline.cmd("CL.THROTTLE").arg("k").arg(999).arg(1).arg(60);
    }
    let replies: Vec<Vec<i64>> = pipeline.query(&mut client).unwrap();
    assert_eq!(replies.len(), 1000);
    assert!(replies.iter().zip((0..1000).rev()).all(|(reply, left)| reply[..3] == [0, 1000, left]));
}

#[test]
fn resp3_is_spoken() {
    let server = Running::plain();
    let info = url(&server).into_connection_info().unwrap();
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let info: ConnectionInfo = info.set_redis_settings(settings);
    let mut client = connect(info);
    let throttled: Vec<i64> = cmd("CL.THROTTLE").arg("k").arg(4).arg(1).arg(1).query(&mut client).unwrap();
    assert_eq!(throttled, [0, 5, 4, -1, 1]);
    // Over RESP2 this would be an array.
    let settings: redis::Value = cmd("CONFIG").arg("GET").arg("databases").query(&mut client).unwrap();
    assert!(matches!(settings, redis::Value::Map(_)), "{settings:?}");
}

#[test]
fn a_password_opens_the_connection() {
    let server = Running::start(locked(), "");
    let mut client = connect(format!("redis://:sesame@{}/", server.address));
    assert_eq!(cmd("PING").query::<String>(&mut client).unwrap(), "PONG");
    let refused = Client::open(format!("redis://:wrong@{}/", server.address)).unwrap().get_connection();
    assert_eq!(refused.err().map(|error| error.kind()), Some(ErrorKind::AuthenticationFailed));
    let mut stranger = connect(url(&server));
    let error = cmd("CL.THROTTLE").arg("k").arg(4).arg(1).arg(1).exec(&mut stranger).unwrap_err();
    assert_eq!(error.code(), Some("NOAUTH"), "{error}");
}
