//! Input that no client sends: it ends its own connection at the most.

use proptest::prelude::*;

use crate::{Running, encode};

/// The server still serves others.
#[track_caller]
fn serves(server: &Running) {
    assert_eq!(server.connect().call("PING"), "PONG");
}

#[test]
fn malformed_input_is_named_and_the_connection_closed() {
    let server = Running::plain();
    for (input, reply) in [
        ("*x\r\n", "invalid multibulk length"),
        ("*99999999\r\n", "invalid multibulk length"),
        ("*1\r\n$-5\r\n", "invalid bulk length"),
        ("*1\r\n$99999999999\r\n", "command exceeds 1000000 bytes"),
        ("*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"),
        ("*1\r\n:1\r\n", "expected '$', got ':'"),
        ("*1\r\n$4\r\nPINGPING\r\n", "expected CRLF after a bulk string"),
    ] {
        let mut client = server.connect();
        client.send(format!("PING\r\n{input}").as_bytes());
        assert_eq!(client.rest(), format!("+PONG\r\n-ERR Protocol error: {reply}\r\n"), "{input:?}");
    }
    assert_eq!(server.count("protocol_errors"), 7);
}

#[test]
fn a_browser_that_was_tricked_into_speaking_is_not_heard() {
    let server = Running::plain();
    for request in ["POST / HTTP/1.1\r\nHost: x\r\n\r\nfg.ban user 42 60\r\n", "Host: x\r\nPING\r\n"] {
        let mut client = server.connect();
        client.send(request.as_bytes());
        assert_eq!(client.rest(), "");
    }
    assert_eq!(server.count("cross_protocol_connections"), 2);
}

#[test]
fn half_a_command_delays_no_other_client() {
    let server = Running::plain();
    let command = encode(&[b"CL.THROTTLE", b"k", b"4", b"1", b"1"]);
    let mut clients: Vec<_> = (1..command.len()).map(|_| server.connect()).collect();
    for (cut, client) in (1..).zip(&mut clients) {
        client.send(&command[..cut]);
    }
    serves(&server);
    for (cut, client) in (1..).zip(&mut clients).take(5) {
        client.send(&command[cut..]);
        assert!(client.reply().starts_with("[0 5 "));
    }
    drop(clients);
    serves(&server);
}

#[test]
fn a_pipeline_may_be_sent_whole_before_any_reply_is_read() {
    let server = Running::plain();
    let mut client = server.connect();
    let command = encode(&[b"CL.THROTTLE", b"k", b"99999", b"1", b"1"]);
    client.send(command.repeat(100_000));
    for left in (0..100_000).rev() {
        assert_eq!(client.reply(), format!("[0 100000 {left} -1 {}]", 100_000 - left));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_server_survives_random_input(pieces in prop::collection::vec(
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            "[*$][-0-9]{1,20}\r\n".prop_map(String::into_bytes),
            "(CL.THROTTLE|FG.LIMIT|FG.TAKE|HELLO|CLIENT|COMMAND|DEL)( [-a-z0-9/]{0,20}){0,6}\r\n".prop_map(String::into_bytes),
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..10), 1..5)
                .prop_map(|words| encode(&words.iter().map(Vec::as_slice).collect::<Vec<_>>())),
        ],
        0..20,
    )) {
        thread_local! {
            static SERVER: Running = Running::plain();
        }
        SERVER.with(|server| {
            let mut client = server.connect();
            for piece in pieces {
                // The server may have closed it by now.
                if client.try_send(&piece).is_none() {
                    break;
                }
            }
            serves(server);
        });
    }
}
