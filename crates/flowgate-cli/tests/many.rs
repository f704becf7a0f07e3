//! Many connections: idle ones take little memory, and repeated connecting leaves nothing behind.
//!
//! The full size is run by hand, on a release build:
//! `cargo test --release -p flowgate-cli --test many -- --ignored --nocapture`

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells what it measured")]

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flowgate_testkit::server_process::ServerProcess;
use flowgate_testkit::wait::HANG_TIMEOUT;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most bytes that an idle connection may take.
const MAX_IDLE: u64 = 8 * 1024;

/// A server in a process of its own, so that its memory can be measured.
struct Serving {
    process: ServerProcess,
    address: SocketAddrV4,
}

impl Serving {
    fn start() -> Serving {
        raise_file_limit();
        let configuration = "[server]\nmax_connections = 12_000\nthreads = 2\n";
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
        command.args(["serve", "--http", "off", "--resp", "127.0.0.1:0"]);
        let process = ServerProcess::start_with(&mut command, configuration);
        Serving { address: process.resp.parse().unwrap(), process }
    }

    fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(HANG_TIMEOUT)).unwrap();
        Client { stream }
    }

    /// The resident memory of the process, in bytes.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().trim().strip_suffix(" kB");
        kib.unwrap().parse::<u64>().unwrap() * 1024
    }
}

struct Client {
    stream: TcpStream,
}

impl Client {
    fn throttle(&mut self) {
        self.stream.write_all(b"CL.THROTTLE busy 1000000 1000000 1\r\n").unwrap();
        let mut said = [0; 64];
        let length = self.stream.read(&mut said).unwrap();
        assert!(said.starts_with(b"*5\r\n:0\r\n"), "{}", said[..length].escape_ascii());
    }

    /// The 99th percentile of the time of a call.
    fn p99(&mut self, calls: usize) -> Duration {
        let mut times: Vec<_> = (0..calls)
            .map(|_| {
                let start = Instant::now();
                self.throttle();
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[calls * 99 / 100]
    }
}

fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let enough = limit.maximum.map_or(16_000, |maximum| maximum.min(16_000));
    if limit.current.is_some_and(|current| current < enough) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(enough), ..limit }).unwrap();
    }
}

/// The 99th percentile of two clients' calls. The clients call in turns, because other load on the machine then hits
/// both, and the best of several rounds counts, because such load only adds time.
fn compare(one: &mut Client, other: &mut Client) -> (Duration, Duration) {
    let rounds = (0..9).map(|_| (one.p99(1000), other.p99(1000)));
    let best = (Duration::MAX, Duration::MAX);
    rounds.fold(best, |best, round| (best.0.min(round.0), best.1.min(round.1)))
}

fn idle(connections: usize) {
    let _turn = turn();
    let (quiet, crowded) = (Serving::start(), Serving::start());
    let (mut alone, mut busy) = (quiet.client(), crowded.client());
    compare(&mut alone, &mut busy);

    let before = crowded.memory();
    let mut idle: Vec<_> = (0..connections).map(|_| crowded.client()).collect();
    idle.iter_mut().for_each(Client::throttle);
    let each = (crowded.memory() - before) / connections as u64;
    let (without, with) = compare(&mut alone, &mut busy);
    println!("{connections} idle connections: {each} bytes each; p99 {without:?} without them, {with:?} with them");
    assert!(each <= MAX_IDLE, "{each} bytes for each of {connections} idle connections");
    // If the server looked at each connection for every answer, this would take many times as long.
    assert!(with <= without * 2 + Duration::from_micros(200), "p99 {without:?} without them, {with:?} with them");
    // The idle connections are still served.
    idle.iter_mut().step_by(100).for_each(Client::throttle);
}

/// Only one test measures at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connects from many addresses, one after the other. Half of the clients send a command, half leave at once.
fn connects(number: u32) {
    let _turn = turn();
    let serving = Serving::start();
    let mut other = serving.client();
    let mut longest = Duration::ZERO;
    let mut round = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            let from = Ipv4Addr::new(127, 0, (number / 250 % 4) as u8, (2 + number % 250) as u8);
            let connection = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            bind(&connection, &SocketAddr::from((from, 0))).unwrap();
            connect(&connection, &SocketAddr::V4(serving.address)).unwrap();
            if number % 2 == 0 {
                let mut client = Client { stream: connection.into() };
                client.throttle();
            }
            if number % 100 == 0 {
                let start = Instant::now();
                other.throttle();
                longest = longest.max(start.elapsed());
            }
        }
    };
    round(0..number / 10);
    let before = serving.memory();
    round(number / 10..number);
    let growth = serving.memory().saturating_sub(before);
    println!("{number} connects: {growth} bytes more after the first tenth; others waited {longest:?} at most");
    assert!(growth <= 8 << 20, "{growth} bytes more");
    assert!(longest < Duration::from_secs(5), "another client waited {longest:?}");
}

#[test]
fn idle_connections_cost_little() {
    idle(1500);
}

#[test]
fn connecting_over_and_over_leaves_nothing_behind() {
    connects(5000);
}

#[test]
#[ignore = "needs 20,000 descriptors and a release build"]
fn ten_thousand_idle_connections() {
    idle(10_000);
}

#[test]
#[ignore = "takes half a minute"]
fn a_hundred_thousand_connects() {
    connects(100_000);
}
