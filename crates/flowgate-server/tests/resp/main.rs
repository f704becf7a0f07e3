//! The Redis protocol from outside: what each command answers, what real clients make of it, what hostile input does.
//!
//! Servers listen on a port that the system chooses and run on a clock that is moved by hand; nothing sleeps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod admin;
mod bounds;
mod clients;
mod commands;
mod hostile;
mod recorded;
#[path = "../running/mod.rs"]
mod running;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use flowgate_engine::config::Secret;
use flowgate_server::Config;
use running::Running;

impl Running {
    fn start(mut config: Config, rules: &str) -> Running {
        config.policy = Config::from_toml(rules).unwrap().policy;
        Running::serve(config, |_| {})
    }

    fn plain() -> Running {
        Running::start(config(""), "")
    }

    fn connect(&self) -> Client {
        Client { reader: self.stream() }
    }

    /// One of the numbers of `INFO`.
    fn count(&self, name: &str) -> u64 {
        let info = self.connect().call("INFO");
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("{name}:"))).unwrap_or("0");
        line.parse().unwrap()
    }
}

struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// Sends a command, its words separated by blanks, and gives the reply as one text.
    fn call(&mut self, command: &str) -> String {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        self.call_words(&words)
    }

    fn call_words(&mut self, words: &[&[u8]]) -> String {
        self.send(&encode(words));
        self.reply()
    }

    /// The next reply: arrays as `[a b]`, maps as `{a b}`, texts as they are, an empty one as `''`.
    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        let line = line.strip_suffix("\r\n").unwrap_or_else(|| panic!("cut off: {line:?}"));
        let (kind, rest) = line.split_at(1);
        let mut elements = |count: usize| (0..count).map(|_| self.reply()).collect::<Vec<_>>().join(" ");
        match kind {
            "+" | ":" => rest.to_owned(),
            "-" => line.to_owned(),
            "*" => format!("[{}]", elements(rest.parse().unwrap())),
            "%" => format!("{{{}}}", elements(2 * rest.parse::<usize>().unwrap())),
            "_" => "null".to_owned(),
            "$" if rest == "-1" => "nil".to_owned(),
            "$" => {
                let mut text = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.reader.read_exact(&mut text).unwrap();
                let text = String::from_utf8_lossy(&text[..text.len() - 2]).into_owned();
                if text.is_empty() { "''".to_owned() } else { text }
            }
            _ => panic!("no reply: {line:?}"),
        }
    }

    /// What the server says until it closes the connection.
    fn rest(&mut self) -> String {
        let mut said = Vec::new();
        // A connection that is closed with input unread may end in an error; what came before counts.
        let _ = self.reader.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// A configuration with some settings of `[server]`, on ports that the system chooses.
fn config(server: &str) -> Config {
    let toml = format!("listen = {{ http = 'off', resp = '127.0.0.1:0' }}\n[server]\nthreads = 2\n{server}");
    Config::from_toml(&toml).unwrap()
}

/// One with a password.
fn locked() -> Config {
    let mut config = config("");
    config.auth.resp_password = Some(Secret::new("sesame"));
    config
}

fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
