//! Bounds: each has a cap, an error or an end, and a count.

use crate::{Running, config, locked};

#[test]
fn a_connection_beyond_the_cap_is_refused() {
    let server = Running::start(config("max_connections = 2"), "");
    let (mut first, mut second) = (server.connect(), server.connect());
    assert_eq!(first.call("PING"), "PONG");
    assert_eq!(second.call("PING"), "PONG");
    assert_eq!(server.connect().rest(), "-ERR max number of clients reached\r\n");
    let info = first.call("INFO");
    assert!(info.contains("rejected_connections:1\r\n") && info.contains("connected_clients:2\r\n"), "{info}");
}

#[test]
fn a_command_beyond_its_size_cap_is_refused() {
    let server = Running::start(config("max_request = '2KiB'"), "");
    let mut client = server.connect();
    assert_eq!(client.call(&format!("ECHO {}", "a".repeat(2000))).len(), 2000);
    client.send(b"*2\r\n$4\r\nECHO\r\n$3000\r\n");
    assert_eq!(client.rest(), "-ERR Protocol error: command exceeds 2048 bytes\r\n");
}

#[test]
fn before_auth_a_command_has_a_smaller_cap() {
    let server = Running::start(locked(), "");
    let mut client = server.connect();
    client.send(b"*2\r\n$4\r\nAUTH\r\n$20000\r\n");
    assert_eq!(client.rest(), "-ERR Protocol error: command exceeds 16384 bytes\r\n");
    let mut client = server.connect();
    assert_eq!(client.call("AUTH sesame"), "OK");
    assert_eq!(client.call(&format!("ECHO {}", "a".repeat(20_000))).len(), 20_000);
}

#[test]
fn what_a_transaction_keeps() {
    let server = Running::plain();
    let mut client = server.connect();
    assert_eq!(client.call("MULTI"), "OK");
    let large = "a".repeat(500_000);
    let kept = (0..40).take_while(|_| client.call(&format!("ECHO {large}")) == "QUEUED").count();
    assert_eq!(kept, 33, "16 MiB");
    // Nothing is kept any more, and nothing is done.
    assert_eq!(client.call("PING"), "QUEUED");
    assert_eq!(client.call("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
    assert_eq!(client.call("PING"), "PONG");
}

#[test]
fn how_many_commands_a_transaction_keeps() {
    let server = Running::plain();
    let mut client = server.connect();
    assert_eq!(client.call("MULTI"), "OK");
    let mut refused = Vec::new();
    for _ in 0..101 {
        client.send(b"PING\r\n".repeat(1_000));
        refused.extend((0..1_000).map(|_| client.reply()).filter(|reply| reply != "QUEUED"));
    }
    assert_eq!(refused, ["-ERR the transaction exceeds 100000 commands or 16777216 bytes"]);
    assert_eq!(client.call("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
    assert_eq!(server.count("oversized_transactions"), 1);
    assert_eq!(client.call("PING"), "PONG");
}

#[test]
fn a_client_that_reads_no_replies_is_closed() {
    let server = Running::plain();
    let mut client = server.connect();
    let echo = crate::encode(&[b"ECHO", &[b'a'; 100_000]]);
    // Until the server closes it; what the system holds on the way comes on top of the server's own bound.
    let sent = (0..10_000).find(|_| client.try_send(&echo).is_none());
    assert!(sent.is_some_and(|sent| sent > 100), "{sent:?}");
    assert_eq!(server.count("client_output_buffer_limit_disconnections"), 1);
}

#[test]
fn idle_connection_is_closed() {
    let server = Running::start(config("idle_timeout = '40ms'"), "");
    let mut client = server.connect();
    client.send(b"*2\r\n$4\r\nEC");
    assert_eq!(client.rest(), "");
    assert_eq!(server.count("idle_disconnections"), 1);
}
