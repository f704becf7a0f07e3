//! Restarts under load: clients that keep their HTTP connections lose no request when the server stops in order.
//!
//! Continuous integration runs a few restarts; `TEST_RESTARTS=100` runs as many.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod haproxy;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use flowgate_testkit::port::Port;
use flowgate_testkit::server_process::ServerProcess;
use flowgate_testkit::wait::HANG_TIMEOUT;

const CLIENTS: usize = 20;

const REQUEST: &[u8] = b"POST /v1/take HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
    content-length: 27\r\n\r\n{\"fields\":{\"user\":\"7\"}}    ";

#[test]
fn clients_that_keep_their_connections_lose_no_request() {
    let restarts = std::env::var("TEST_RESTARTS").map_or(3, |count| count.parse().unwrap());
    // No other process gets the port between two servers.
    let port = Port::claim();
    let address = port.address();
    let tally = Arc::new(Tally::default());
    let mut server = serve(address);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let tally = Arc::clone(&tally);
            thread::spawn(move || ask_until_the_end(address, number, &tally))
        })
        .collect();
    for _ in 0..restarts {
        tally.wait_for_every_client();
        server.signal("TERM");
        let (status, _) = server.wait();
        assert!(status.success(), "{status}");
        server = serve(address);
    }
    tally.wait_for_every_client();
    tally.done.store(true, Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    drop(server);
    let (lost, told) = (tally.lost.load(Relaxed), tally.told_to_close.load(Relaxed));
    let answers: usize = tally.answers.iter().map(|answers| answers.load(Relaxed)).sum();
    println!("{restarts} restarts: {answers} answers, {told} with connection: close, {lost} lost");
    assert_eq!(lost, 0, "requests without an answer");
    assert!(told >= restarts * CLIENTS, "{told} answers said connection: close");
}

#[derive(Default)]
struct Tally {
    /// The number of answers of each client.
    answers: [AtomicUsize; CLIENTS],
    told_to_close: AtomicUsize,
    /// Requests that were sent and had no answer.
    lost: AtomicUsize,
    done: AtomicBool,
}

impl Tally {
    /// Waits until every client has had a few answers more, so that all are in the middle of their work.
    fn wait_for_every_client(&self) {
        let deadline = Instant::now() + HANG_TIMEOUT;
        for answers in &self.answers {
            let goal = answers.load(Relaxed) + 5;
            while answers.load(Relaxed) < goal {
                assert!(Instant::now() < deadline, "a client has no answers any more");
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Asks on one connection after the other, each for as long as the server keeps it.
fn ask_until_the_end(address: SocketAddr, number: usize, tally: &Tally) {
    let deadline = Instant::now() + HANG_TIMEOUT * 10;
    while !tally.done.load(Relaxed) {
        assert!(Instant::now() < deadline, "no server");
        // Between two servers no process listens. The client has sent nothing, so it loses no request.
        let Ok(stream) = TcpStream::connect(address) else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        stream.set_read_timeout(Some(HANG_TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut reader = BufReader::new(stream);
        while !tally.done.load(Relaxed) {
            let Some(answer) = ask(&mut reader) else {
                tally.lost.fetch_add(1, Relaxed);
                break;
            };
            tally.answers[number].fetch_add(1, Relaxed);
            if let Answer::Close = answer {
                tally.told_to_close.fetch_add(1, Relaxed);
                break;
            }
        }
    }
}

enum Answer {
    KeepAlive,
    Close,
}

fn ask(reader: &mut BufReader<TcpStream>) -> Option<Answer> {
    reader.get_mut().write_all(REQUEST).ok()?;
    let (mut length, mut close) = (0, false);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    if !line.starts_with("HTTP/1.1 200 ") {
        return None;
    }
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        close |= line == "connection: close";
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    Some(if close { Answer::Close } else { Answer::KeepAlive })
}

fn serve(address: SocketAddr) -> ServerProcess {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    ServerProcess::start_with(command.args(["serve", "--resp", "off", "--http", &address.to_string()]), "")
}
