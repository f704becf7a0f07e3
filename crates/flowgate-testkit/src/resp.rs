//! A client for the Redis protocol that gives replies as text.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};

use crate::wait::HANG_TIMEOUT;

/// A connection.
#[derive(Debug)]
pub struct Client {
    /// The connection itself.
    pub stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects to a server.
    ///
    /// # Panics
    ///
    /// If the server does not accept the connection.
    pub fn connect(address: impl ToSocketAddrs) -> Client {
        Client::try_connect(address).expect("the server accepts the connection")
    }

    /// Connects to a server, which may be gone.
    pub fn try_connect(address: impl ToSocketAddrs) -> Option<Client> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(HANG_TIMEOUT)).ok()?;
        stream.set_write_timeout(Some(HANG_TIMEOUT)).ok()?;
        Some(Client { stream: BufReader::new(stream) })
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).unwrap();
    }

    /// Sends bytes as they are; `None` if the server is gone.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> Option<()> {
        self.stream.get_mut().write_all(bytes.as_ref()).ok()
    }

    /// Sends a command, whose words have blanks between them, and reads the reply.
    pub fn call(&mut self, command: &str) -> String {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        self.call_words(&words)
    }

    /// Sends a command of these words and reads the reply.
    pub fn call_words(&mut self, words: &[&[u8]]) -> String {
        self.send(encode(words));
        self.reply()
    }

    /// Reads the next reply: arrays as `[a b]`, maps as `{a b}`, texts as they are, an empty text as `''`.
    ///
    /// # Panics
    ///
    /// If it ends early.
    pub fn reply(&mut self) -> String {
        self.try_reply().expect("a whole reply")
    }

    /// Reads the next reply; `None` if the server is gone.
    ///
    /// # Panics
    ///
    /// If the bytes are not a reply of the protocol.
    pub fn try_reply(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        let line = line.strip_suffix("\r\n")?;
        let (kind, rest) = line.split_at(1);
        Some(match kind {
            "+" | ":" => rest.to_owned(),
            "-" => line.to_owned(),
            "*" => format!("[{}]", self.try_replies(rest.parse().unwrap())?),
            "%" => format!("{{{}}}", self.try_replies(2 * rest.parse::<usize>().unwrap())?),
            "_" => "null".to_owned(),
            "$" if rest == "-1" => "nil".to_owned(),
            "$" => {
                let mut text = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut text).ok()?;
                let text = String::from_utf8_lossy(&text[..text.len() - 2]).into_owned();
                if text.is_empty() { "''".to_owned() } else { text }
            }
            _ => panic!("not a reply: {line:?}"),
        })
    }

    fn try_replies(&mut self, count: usize) -> Option<String> {
        let replies: Option<Vec<String>> = (0..count).map(|_| self.try_reply()).collect();
        Some(replies?.join(" "))
    }

    /// Everything that the server sends until it closes the connection.
    pub fn rest(&mut self) -> String {
        rest(&mut self.stream)
    }
}

/// Everything that arrives until the other side closes the connection.
pub(crate) fn rest(stream: &mut impl Read) -> String {
    let mut received = Vec::new();
    // If the server closes a connection with unread input, reading may end in an error. What arrived before the error
    // counts.
    let _ = stream.read_to_end(&mut received);
    String::from_utf8_lossy(&received).into_owned()
}

/// The bytes of a command.
pub fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
