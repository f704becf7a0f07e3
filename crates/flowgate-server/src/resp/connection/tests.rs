//! One connection from inside: what it holds, when it yields, when it ends.

mod pipelines;

use std::sync::Arc;

use flowgate_engine::config::{Config, Secret};
use tokio::io::{DuplexStream, ReadBuf};

use super::super::memory_bound::MemoryBound;
use super::super::session::Shared;
use super::*;
use crate::http::auth::Tokens;
use crate::listener::Peer;
use crate::service::Service;
use crate::wrong_secrets::WrongSecrets;

/// A bound for three clients of 64 KiB, or for ten with a fair share.
fn shared() -> Arc<Shared> {
    Arc::new(Shared { memory_bound: MemoryBound::new(192 << 10, 10), ..roomy() })
}

fn roomy() -> Shared {
    Shared {
        service: Service::start(&Config::default()).unwrap(),
        password: None,
        has_admin_token: false,
        tokens: Arc::new(Tokens::new(&Config::default().auth)),
        max_command: 1 << 20,
        memory_bound: MemoryBound::new(64 << 20, 10),
        wrong_passwords: WrongSecrets::default(),
        counters: Arc::default(),
    }
}

/// A server that asks for the password `sesame`.
fn locked() -> Arc<Shared> {
    Arc::new(Shared { password: Some(Secret::new("sesame")), ..roomy() })
}

fn session(shared: &Arc<Shared>) -> Session {
    Session::new(Arc::clone(shared), Peer::Unix)
}

fn connect(shared: &Arc<Shared>, shutdown: &Shutdown) -> DuplexStream {
    let (client, server) = tokio::io::duplex(1 << 10);
    let connection = Connection::new(server, session(shared), Duration::from_secs(60));
    tokio::spawn(connection.run(shutdown.clone()));
    client
}

async fn says_pong(client: &mut DuplexStream) -> bool {
    let mut said = [0; 7];
    client.write_all(b"PING\r\n").await.is_ok() && client.read_exact(&mut said).await.is_ok()
}

#[tokio::test]
async fn a_client_above_its_share_is_closed_when_memory_is_short() {
    let (_trigger, shutdown) = Shutdown::new();
    let shared = shared();
    let half_a_command = [b"*2\r\n$4\r\nECHO\r\n$100000\r\n".to_vec(), vec![b'x'; 60_000]].concat();
    let mut small = connect(&shared, &shutdown);
    small.write_all(b"*1\r\n$4\r\nPI").await.unwrap();

    let mut greedy = Vec::new();
    let refused = loop {
        let mut client = connect(&shared, &shutdown);
        if client.write_all(&half_a_command).await.is_err() || greedy.len() > 10 {
            break greedy.len();
        }
        greedy.push(client);
    };
    assert!((1..=3).contains(&refused), "{refused}");
    assert_eq!(shared.counters.crowded.get(), 1);
    assert!(shared.counters.occupied.get() > 60_000 * refused as u64);
    small.write_all(b"NG\r\n").await.unwrap();
    small.read_exact(&mut [0; 7]).await.unwrap();
    assert!(says_pong(&mut connect(&shared, &shutdown)).await);

    // Two clients leave, and there is room again.
    drop((greedy, small));
    while shared.counters.listener.open.get() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(shared.counters.occupied.get(), 0);
    connect(&shared, &shutdown).write_all(&half_a_command).await.unwrap();
}

/// A client that never stops asking, and reads all replies or none.
struct Restless {
    asks: &'static [u8],
    reads: bool,
}

impl AsyncRead for Restless {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        buffer.put_slice(self.asks);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Restless {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.reads { Poll::Ready(Ok(bytes.len())) } else { Poll::Pending }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.reads { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_busy_client_is_not_idle_and_sees_the_shutdown() {
    let (trigger, shutdown) = Shutdown::new();
    let shared = shared();
    let restless = Restless { asks: b"PING\r\n", reads: true };
    let client = tokio::spawn(Connection::new(restless, session(&shared), Duration::from_millis(40)).run(shutdown));
    sleep(Duration::from_millis(200)).await;
    while shared.counters.listener.requests.get() < 1000 && !client.is_finished() {
        sleep(Duration::from_millis(10)).await;
    }
    assert!(!client.is_finished());
    trigger.stop();
    timeout(Duration::from_secs(10), client).await.unwrap().unwrap().unwrap();
    assert_eq!(shared.counters.idle.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_falls_silent_is_closed_in_time() {
    let (_trigger, shutdown) = Shutdown::new();
    let shared = shared();
    let mut client = connect(&shared, &shutdown);
    for _ in 0..10 {
        sleep(Duration::from_secs(50)).await;
        assert!(says_pong(&mut client).await, "fifty seconds are less than sixty");
    }
    let closed = timeout(Duration::from_secs(59), client.read(&mut [0])).await;
    assert!(closed.is_err(), "not yet");
    let closed = timeout(Duration::from_secs(17), client.read(&mut [0])).await;
    assert_eq!(closed.unwrap().unwrap(), 0, "within a quarter more");
    assert_eq!(shared.counters.idle.get(), 1);
}

#[tokio::test]
async fn what_had_arrived_before_the_end_is_answered() {
    let (trigger, shutdown) = Shutdown::new();
    let mut client = connect(&shared(), &shutdown);
    client.write_all(b"PING\r\nPING\r\n").await.unwrap();
    trigger.stop();
    let mut said = String::new();
    client.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "+PONG\r\n+PONG\r\n");
}

#[tokio::test]
async fn an_idle_connection_holds_nothing() {
    let (_trigger, shutdown) = Shutdown::new();
    let shared = shared();
    let mut client = connect(&shared, &shutdown);
    let many = [b"*5000\r\n".to_vec(), b"$4\r\nPING\r\n".repeat(5000)].concat();
    client.write_all(&many).await.unwrap();
    let mut said = vec![0; b"-ERR wrong number of arguments for 'ping' command\r\n".len()];
    client.read_exact(&mut said).await.unwrap();
    assert!(says_pong(&mut client).await);
    tokio::task::yield_now().await;
    let occupied = shared.counters.occupied.get();
    assert!(occupied <= 1024, "{occupied}");
}

/// Runs a connection to its end. Returns the most bytes that all connections together held meanwhile.
async fn most_held(client: Restless, shared: &Arc<Shared>) -> u64 {
    let (_trigger, shutdown) = Shutdown::new();
    let connection = Connection::new(client, session(shared), Duration::from_secs(60)).run(shutdown);
    let mut connection = tokio::spawn(connection);
    let mut most = 0;
    loop {
        tokio::select! {
            biased;
            ended = &mut connection => {
                ended.unwrap().unwrap();
                return most;
            }
            () = tokio::task::yield_now() => most = most.max(shared.counters.occupied.get()),
        }
    }
}

#[tokio::test]
async fn a_client_that_never_pauses_and_never_reads_is_bounded_by_what_all_may_hold() {
    for asks in [&b"COMMAND\r\n"[..], b"ECHO 0123456789012345678901234567890123456789\r\n"] {
        let shared = shared();
        let most = most_held(Restless { asks, reads: false }, &shared).await;
        assert_eq!((shared.counters.crowded.get(), shared.counters.backlogs.get()), (1, 0));
        assert!(most <= 1 << 20, "{most} bytes where all may hold {}", 192 << 10);
    }
}

#[tokio::test]
async fn a_transaction_counts_while_it_is_being_sent() {
    const ASKS: &[u8] = b"MULTI\r\nPING 0123456789012345678901234567890123456789\r\n";
    let shared = shared();
    let held = most_held(Restless { asks: ASKS, reads: true }, &shared);
    let most = timeout(Duration::from_secs(30), held).await.unwrap();
    assert_eq!((shared.counters.crowded.get(), shared.counters.long_transactions.get()), (1, 0));
    assert!(most <= 1 << 20, "{most} bytes where all may hold {}", 192 << 10);
}

/// The number of times that another client is answered until `replies` bytes have arrived.
async fn answered_meanwhile(client: &mut DuplexStream, other: &mut DuplexStream, replies: usize) -> usize {
    let mut said = vec![0; replies];
    let mut all = pin!(client.read_exact(&mut said));
    let mut answered = 0;
    loop {
        tokio::select! {
            biased;
            read = &mut all => {
                read.unwrap();
                return answered;
            }
            pong = says_pong(other) => {
                assert!(pong);
                answered += 1;
            }
        }
    }
}

/// A connection whose buffers have room for everything that a test sends and receives.
fn connect_wide(shared: &Arc<Shared>, shutdown: &Shutdown) -> DuplexStream {
    let (client, server) = tokio::io::duplex(8 << 20);
    tokio::spawn(Connection::new(server, session(shared), Duration::from_secs(60)).run(shutdown.clone()));
    client
}

#[tokio::test]
async fn others_are_answered_while_a_long_transaction_is_executed() {
    const COMMANDS: usize = 20_000;
    let (_trigger, shutdown) = Shutdown::new();
    let shared = Arc::new(roomy());
    let (mut client, mut other) = (connect_wide(&shared, &shutdown), connect_wide(&shared, &shutdown));
    client.write_all(&[b"MULTI\r\n".to_vec(), b"DBSIZE\r\n".repeat(COMMANDS)].concat()).await.unwrap();
    client.read_exact(&mut vec![0; b"+OK\r\n".len() + COMMANDS * b"+QUEUED\r\n".len()]).await.unwrap();

    // Commands after `EXEC` are answered after it.
    client.write_all(b"EXEC\r\nPING\r\n").await.unwrap();
    let expected =
        [format!("*{COMMANDS}\r\n").into_bytes(), b":0\r\n".repeat(COMMANDS), b"+PONG\r\n".to_vec()].concat();
    let answered = answered_meanwhile(&mut client, &mut other, expected.len() - 7).await;
    assert!(answered >= COMMANDS * 32 / 2048 / 2, "{answered} answers to others");
    let mut pong = [0; 7];
    client.read_exact(&mut pong).await.unwrap();
    assert_eq!(&pong, b"+PONG\r\n");
}

/// The longer a command is, the longer it takes, though its reply is short.
#[tokio::test]
async fn others_are_answered_while_a_transaction_of_long_commands_is_executed() {
    const COMMANDS: usize = 20;
    const WORDS: usize = 20_000;
    let (_trigger, shutdown) = Shutdown::new();
    let shared = Arc::new(roomy());
    let (mut client, mut other) = (connect_wide(&shared, &shutdown), connect_wide(&shared, &shutdown));
    let words = "$1\r\na\r\n".repeat(WORDS);
    let long = format!("*{}\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n{words}", WORDS + 2);
    client.write_all(format!("MULTI\r\n{}", long.repeat(COMMANDS)).as_bytes()).await.unwrap();
    client.read_exact(&mut vec![0; b"+OK\r\n".len() + COMMANDS * b"+QUEUED\r\n".len()]).await.unwrap();
    client.write_all(b"EXEC\r\n").await.unwrap();
    let replies = format!("*{COMMANDS}\r\n{}", "*0\r\n".repeat(COMMANDS)).len();
    let answered = answered_meanwhile(&mut client, &mut other, replies).await;
    assert!(answered >= COMMANDS / 4, "{answered} answers to others");
}

#[tokio::test]
async fn others_are_answered_between_pipelines_of_reports() {
    const CLIENTS: usize = 10;
    const COMMANDS: usize = 5_000;
    let (_trigger, shutdown) = Shutdown::new();
    let shared = Arc::new(roomy());
    let mut other = connect_wide(&shared, &shutdown);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| connect_wide(&shared, &shutdown)).collect();
    for client in &mut clients {
        client.write_all(&b"DBSIZE\r\n".repeat(COMMANDS)).await.unwrap();
    }
    let (mut most, mut before) = (0, 0);
    while before < (CLIENTS * COMMANDS) as u64 {
        assert!(says_pong(&mut other).await);
        let commands = shared.counters.listener.requests.get();
        most = most.max(commands - before);
        before = commands;
    }
    // A turn holds 64 reports of each client. The other client is read in one turn and answered in the next.
    assert!(most <= 3 * 65 * CLIENTS as u64, "{most} commands between two answers");
}

async fn reply_to(client: &mut DuplexStream, command: &str) -> String {
    client.write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
    let mut said = vec![0; 1024];
    let read = client.read(&mut said).await.unwrap();
    String::from_utf8(said[..read].to_vec()).unwrap()
}

/// The time of the runtime, which the test has paused.
fn paused_now() -> tokio::time::Instant {
    tokio::time::sleep(Duration::ZERO).deadline()
}

#[tokio::test(start_paused = true)]
async fn after_ten_wrong_passwords_each_further_one_is_answered_late_and_ends_the_connection() {
    const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    let (_trigger, shutdown) = Shutdown::new();
    let shared = locked();
    let start = paused_now();
    let mut client = connect(&shared, &shutdown);
    for _ in 0..5 {
        assert_eq!(reply_to(&mut client, "AUTH wrong").await, WRONG);
        assert_eq!(reply_to(&mut client, "HELLO 3 AUTH default wrong").await, WRONG);
    }
    assert_eq!(start.elapsed(), Duration::ZERO, "ten are answered at once");

    // Other clients at this address are let in at once, and so is this client.
    assert_eq!(reply_to(&mut client, "AUTH sesame").await, "+OK\r\n");
    for (number, wrong) in ["AUTH wrong", "HELLO 2 AUTH default wrong", "AUTH admin wrong"].into_iter().enumerate() {
        let mut guesser = connect(&shared, &shutdown);
        guesser.write_all(format!("{wrong}\r\nAUTH sesame\r\n").as_bytes()).await.unwrap();
        assert_eq!(reply_to(&mut connect(&shared, &shutdown), "AUTH sesame").await, "+OK\r\n");
        assert_eq!(start.elapsed(), Duration::from_secs(number as u64), "a right password does not wait");
        let mut said = String::new();
        guesser.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, WRONG, "nothing behind it is heard");
        assert_eq!(start.elapsed(), Duration::from_secs(number as u64 + 1));
        drop(guesser);
    }
    assert_eq!((shared.counters.listener.unauthorized.get(), shared.counters.held_up.get()), (13, 3));
    assert!(says_pong(&mut client).await);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_waits_for_no_wrong_password() {
    let (trigger, shutdown) = Shutdown::new();
    let shared = locked();
    let start = paused_now();
    let mut client = connect(&shared, &shutdown);
    for _ in 0..10 {
        reply_to(&mut client, "AUTH wrong").await;
    }
    client.write_all(b"AUTH wrong\r\n").await.unwrap();
    while shared.counters.held_up.get() == 0 {
        tokio::task::yield_now().await;
    }
    trigger.stop();
    let mut said = String::new();
    client.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("-WRONGPASS") && start.elapsed() < Duration::from_secs(1), "{said} {:?}", start.elapsed());
}

/// The replies before a wrong password wait with the answer to it.
#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_wrong_password_counts_with_what_all_may_hold() {
    let (_trigger, shutdown) = Shutdown::new();
    let shared = Arc::new(Shared {
        password: Some(Secret::new("sesame")),
        memory_bound: MemoryBound::new(192 << 10, 10),
        ..roomy()
    });
    let mut client = connect(&shared, &shutdown);
    for _ in 0..10 {
        reply_to(&mut client, "AUTH wrong").await;
    }
    client.write_all(b"AUTH wrong\r\n").await.unwrap();
    while shared.counters.held_up.get() < 1 {
        tokio::task::yield_now().await;
    }
    let held = shared.counters.occupied.get();
    assert!(held > 0 && held < 1024, "{held} bytes for one short answer");

    // Each client sends 1,500 commands that are refused, about 50 KiB, which fit into one read.
    let guess = [b"a\r\n".repeat(1_500), b"AUTH wrong\r\n".to_vec()].concat();
    let mut guessers = Vec::new();
    for _ in 0..20 {
        let mut guesser = connect_wide(&shared, &shutdown);
        guesser.write_all(&guess).await.unwrap();
        guessers.push(guesser);
    }
    while shared.counters.held_up.get() < 21 {
        tokio::task::yield_now().await;
    }
    let held = shared.counters.occupied.get();
    assert!(shared.counters.crowded.get() >= 10 && held < 512 << 10, "{held} bytes are held");
}
