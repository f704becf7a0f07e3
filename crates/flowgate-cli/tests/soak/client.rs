//! Clients: each asks one node after the other over a connection of its own, and keeps a record of every request.
//!
//! A request that was sent is never sent again. A client that has no answer for [`PATIENCE`] closes its connection, and
//! goes on with another node.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::bounds::Interval;
use crate::random::Random;
use crate::trace::{NodeLife, Outcome, Record};
use crate::workload::{ADMIN_TOKEN, Asked, Door};

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a client pauses between two requests: 60 clients ask about 600 times a second.
const THINK: std::ops::Range<Duration> = Duration::from_millis(40)..Duration::from_millis(160);

/// A client whose node cannot be reached pauses for this long before it tries the next one.
const BEFORE_NEXT_NODE: Duration = Duration::from_millis(20);

/// A client moves to another node once in this many requests.
const STAYS: usize = 50;

/// What all clients of a run share.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) started: Instant,
    /// The wall clock's time at the start of the run, since 1970.
    started_wall: Duration,
    /// The addresses of the nodes. A node that is started again has other ports.
    pub(crate) nodes: Mutex<Vec<Address>>,
    pub(crate) stop: AtomicBool,
    /// The next number of a subject that only one request has.
    pub(crate) fresh: AtomicU32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) http: SocketAddr,
    pub(crate) resp: SocketAddr,
    pub(crate) life: u32,
}

impl Field {
    pub(crate) fn new() -> Arc<Field> {
        let started_wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let (started, nodes) = (Instant::now(), Mutex::default());
        Arc::new(Field { started, started_wall, nodes, stop: AtomicBool::new(false), fresh: AtomicU32::new(0) })
    }

    /// Time since the start of the run.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// A time of the wall clock, in seconds since 1970, as time since the start of the run.
    fn since_start(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds).saturating_sub(self.started_wall)
    }

    pub(crate) fn address(&self, node: usize) -> Address {
        self.nodes.lock().unwrap()[node]
    }

    fn count(&self) -> usize {
        self.nodes.lock().unwrap().len()
    }
}

/// Runs a client until the test stops.
pub(crate) async fn run(number: usize, seed: u64, field: Arc<Field>) -> Vec<Record> {
    let door = if number.is_multiple_of(2) { Door::Http } else { Door::Resp };
    let mut random = Random::new(seed.wrapping_add(number as u64).wrapping_mul(0x2545_F491_4F6C_DD1D));
    let (mut node, mut connection, mut records) = (number / 2 % field.count(), None, Vec::new());
    while !field.stop.load(Relaxed) {
        sleep(random.between(THINK)).await;
        if random.once_in(STAYS) {
            (node, connection) = (random.below(field.count()), None);
        }
        if connection.is_none() {
            connection = Connection::open(door, node, &field).await;
        }
        let Some(open) = &mut connection else {
            node = (node + 1) % field.count();
            sleep(BEFORE_NEXT_NODE).await;
            continue;
        };
        let asked = Asked::next(&mut random, door, || field.fresh.fetch_add(1, Relaxed));
        let sent = field.now();
        let told = timeout(PATIENCE, open.take(&asked)).await.ok().flatten();
        let interval = Interval { sent, received: field.now() };
        let (outcome, banned_until) = told.unwrap_or((Outcome::Unanswered, None));
        let banned_until = banned_until.map(|seconds| field.since_start(seconds));
        records.push(Record { asked, node: open.node, interval, outcome, banned_until });
        if told.is_none() {
            (node, connection) = ((node + 1) % field.count(), None);
        }
    }
    records
}

/// A connection to a node.
struct Connection {
    stream: BufReader<TcpStream>,
    door: Door,
    node: NodeLife,
}

impl Connection {
    /// Connects to a node; `None`: the node cannot be reached.
    async fn open(door: Door, node: usize, field: &Field) -> Option<Connection> {
        let Address { http, resp, life } = field.address(node);
        let address = if door == Door::Http { http } else { resp };
        let stream = timeout(PATIENCE, TcpStream::connect(address)).await.ok()?.ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Connection { stream: BufReader::new(stream), door, node: NodeLife { node, life } })
    }

    /// Takes one unit. Returns the answer and the end of the ban that denied it; `None`: the connection ended before
    /// the answer.
    async fn take(&mut self, asked: &Asked) -> Option<(Outcome, Option<f64>)> {
        match self.door {
            Door::Http => {
                let reply = post(&mut self.stream, "/v1/take", &body(asked)).await?;
                Some((outcome(&reply), reply["banned_until"].as_f64()))
            }
            Door::Resp => Some((self.take_over_resp(asked).await?, None)),
        }
    }

    async fn take_over_resp(&mut self, asked: &Asked) -> Option<Outcome> {
        let fields = asked.fields();
        let words: String = fields.iter().map(|(name, value)| format!(" {name} {value}")).collect();
        self.stream.write_all(format!("FG.TAKE 1{words}\r\n").as_bytes()).await.ok()?;
        let header = line(&mut self.stream).await?;
        assert_eq!(header, "*8", "the reply to FG.TAKE");
        let allowed = line(&mut self.stream).await?;
        for _ in 0..5 {
            line(&mut self.stream).await?;
        }
        for _ in 0..2 {
            let length: usize = line(&mut self.stream).await?.strip_prefix('$')?.parse().ok()?;
            self.stream.read_exact(&mut vec![0; length + 2]).await.ok()?;
        }
        Some(match allowed == ":1" {
            true => Outcome::Allowed,
            // The limit of such a subject is never reached, so a denial means that the store was away.
            false if asked.fresh.is_some() => Outcome::DegradedDenied,
            false => Outcome::Denied,
        })
    }
}

/// A request as `/v1/take` and `/v1/batch` read it.
pub(crate) fn body(asked: &Asked) -> serde_json::Value {
    let fields: serde_json::Map<_, _> =
        asked.fields().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    serde_json::json!({ "fields": fields })
}

fn outcome(reply: &serde_json::Value) -> Outcome {
    let is = |member: &str| reply[member].as_bool().unwrap_or_else(|| panic!("no {member} in {reply}"));
    match (is("allowed"), is("degraded")) {
        (true, false) => Outcome::Allowed,
        (false, false) => Outcome::Denied,
        (true, true) => Outcome::DegradedAllowed,
        (false, true) => Outcome::DegradedDenied,
    }
}

/// Asks over HTTP, keeping the connection. `None`: the connection ended before the answer.
pub(crate) async fn post(
    stream: &mut BufReader<TcpStream>,
    path: &str,
    body: &serde_json::Value,
) -> Option<serde_json::Value> {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\
        Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.ok()?;
    let status = line(stream).await?;
    let mut length = 0;
    loop {
        let header = line(stream).await?.to_ascii_lowercase();
        match header.split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut reply = vec![0; length];
    stream.read_exact(&mut reply).await.ok()?;
    assert!(status.contains(" 20"), "{status}: {}", String::from_utf8_lossy(&reply));
    serde_json::from_slice(&reply).ok()
}

async fn line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    line.strip_suffix("\r\n").map(str::to_owned)
}
