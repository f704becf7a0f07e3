//! A request that had no answer is never sent again: a server that counts what it gets.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use flowgate_engine::AdHoc;
use flowgate_server::Operation;

use crate::Node;

#[derive(Clone, Copy)]
enum Manner {
    /// Takes the call and hangs up.
    HangsUp,
    /// Takes the call and says nothing.
    Silent,
}

/// A server that greets, and then treats calls of scripts in its manner; how many it got.
fn server(manner: Manner) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("redis://{}", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || serve(stream.unwrap(), manner, &count));
        }
    });
    (address, calls)
}

fn serve(mut stream: TcpStream, manner: Manner, count: &AtomicUsize) {
    let mut chunk = [0; 65536];
    while let Ok(read @ 1..) = stream.read(&mut chunk) {
        let text = String::from_utf8_lossy(&chunk[..read]);
        if text.contains("PING") || text.contains("\r\nSET\r\n") {
            stream.write_all(b"+PONG\r\n").unwrap();
        }
        // The node asks for bans, too; those are not ours to count.
        let calls = text.matches("{k:key").count();
        count.fetch_add(calls, SeqCst);
        if calls > 0 && matches!(manner, Manner::HangsUp) {
            return;
        }
    }
}

async fn check(manner: Manner) {
    let (address, calls) = server(manner);
    let node = Node::new(&address, "deny_cache = false", "");
    let limit = "5/1h".parse().unwrap();
    let mut sent = 0;
    for number in 0..10 {
        let key = format!("key{number}");
        let call = AdHoc { key: key.as_bytes().into(), limit: &limit, cost: 1 };
        let before = node.service.shared_stats().unwrap().unanswered;
        assert!(node.service.limit(Operation::Take, call, node.service.read()).await.unwrap().degraded);
        sent += node.service.shared_stats().unwrap().unanswered - before;
    }
    assert!(sent > 0);
    // What would be sent again is sent before a second call of the same connection, or with the next connection.
    node.recovers().await;
    assert_eq!(calls.load(SeqCst) as u64, sent);
}

#[tokio::test]
async fn a_call_is_not_repeated_after_a_lost_connection() {
    check(Manner::HangsUp).await;
}

#[tokio::test]
async fn a_call_is_not_repeated_after_a_timeout() {
    check(Manner::Silent).await;
}
