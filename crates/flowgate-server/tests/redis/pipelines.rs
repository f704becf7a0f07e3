//! Pipelines over the Redis protocol: replies come in order, whether memory or Redis answers, and other connections are
//! not held up.

use std::io::Write;

use flowgate_server::Config;
use flowgate_testkit::redis::Redis;
use flowgate_testkit::resp::Client;
use flowgate_testkit::server::RunningServer;

fn serve(redis: &Redis) -> RunningServer {
    let url = redis.url();
    let toml = format!(
        "listen = {{ http = 'off', resp = '127.0.0.1:0' }}\nserver = {{ threads = 1 }}\n\
         store = {{ type = 'redis', url = '{url}', timeout = '2s' }}"
    );
    RunningServer::start(Config::from_toml(&toml).unwrap())
}

fn connect(server: &RunningServer) -> Client {
    Client::connect(server.resp.unwrap())
}

#[test]
fn replies_come_in_order_however_long_the_pipeline() {
    let redis = Redis::start();
    let server = serve(&redis);
    let mut client = connect(&server);
    client.send("FG.LIMIT first 1/1h\r\n");
    client.reply();
    // More than may be on their way at a time.
    const ROUNDS: usize = 3000;
    let mut commands = String::new();
    for round in 0..ROUNDS {
        commands.push_str(&format!("ECHO before-{round}\r\nFG.LIMIT k{round} {}/1h\r\nPING\r\n", round + 1));
    }
    let mut sender = client.stream.get_ref().try_clone().unwrap();
    let sending = std::thread::spawn(move || sender.write_all(commands.as_bytes()).unwrap());
    for round in 0..ROUNDS {
        assert_eq!(client.reply(), format!("before-{round}"));
        let decision = client.reply();
        assert!(decision.starts_with(&format!("[1 {} {round} -1 ", round + 1)), "{decision}");
        assert_eq!(client.reply(), "PONG");
    }
    sending.join().unwrap();
    assert_eq!(redis.decisions(), ROUNDS as u64 + 2 + 1, "each once, but for two that found no script");
}

#[test]
fn a_transaction_is_answered_as_one_array() {
    let redis = Redis::start();
    let server = serve(&redis);
    let mut client = connect(&server);
    // More than may be on their way at a time, and others around them.
    const KEPT: usize = 1500;
    let kept = "FG.LIMIT k 1000000/1h\r\nECHO between\r\n".repeat(KEPT);
    // Redis has to know the script: what is sent before it does is sent again, and then comes in another order.
    client.send("FG.LIMIT k 1000000/1h\r\n");
    assert!(client.reply().starts_with("[1 1000000 999999 -1 "));
    client.send(format!("MULTI\r\n{kept}EXEC\r\nECHO behind\r\n"));
    assert_eq!(client.reply(), "OK");
    (0..2 * KEPT).for_each(|_| assert_eq!(client.reply(), "QUEUED"));
    let answers = client.reply();
    let answers: Vec<_> = answers.split(" between").filter(|answer| *answer != "]").collect();
    assert_eq!(answers.len(), KEPT);
    for (index, answer) in answers.iter().enumerate() {
        let expected = format!("[1 1000000 {} -1 ", 999_998 - index);
        assert!(answer[1..].starts_with(&expected), "{answer}");
    }
    assert_eq!(client.reply(), "behind");
}

#[test]
fn a_client_that_waits_for_redis_delays_no_other_client() {
    let redis = Redis::start();
    let server = serve(&redis);
    let (mut waiting, mut other) = (connect(&server), connect(&server));
    waiting.send("FG.LIMIT k 5/1h\r\n");
    assert!(waiting.reply().starts_with("[1 5 4"));
    redis.pause();
    waiting.send("FG.LIMIT k 5/1h\r\nPING\r\nQUIT\r\n");
    other.send("PING\r\n");
    assert_eq!(other.reply(), "PONG");
    redis.resume();
    assert!(waiting.reply().starts_with("[1 5 3"));
    assert_eq!((waiting.reply(), waiting.reply()), ("PONG".to_owned(), "OK".to_owned()));
}

#[test]
fn a_command_of_many_keys_is_answered() {
    const KEYS: usize = 8_000;
    let redis = Redis::start();
    let server = serve(&redis);
    let mut client = connect(&server);
    client.send("FG.LIMIT k 5/1h\r\n");
    client.reply();
    for (command, found) in [("EXISTS", KEYS), ("DEL", 1)] {
        let keys = "$1\r\nk\r\n".repeat(KEYS);
        client.send(format!("*{}\r\n${}\r\n{command}\r\n{keys}PING\r\n", KEYS + 1, command.len()));
        assert_eq!((client.reply(), client.reply()), (found.to_string(), "PONG".to_owned()));
    }
}
