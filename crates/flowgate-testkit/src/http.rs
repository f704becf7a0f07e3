//! A client for HTTP/1.1 that sends exactly the bytes of a test and fails by panicking.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};

use serde_json::Value;

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
        Client::from_stream(TcpStream::connect(address).unwrap())
    }

    /// A client on an open connection.
    pub fn from_stream(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(HANG_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(HANG_TIMEOUT)).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a [`request`] and reads the reply.
    pub fn call(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.send(request(method, path, headers, body));
        self.reply(method)
    }

    /// Reads the next reply, to a request by this method.
    ///
    /// # Panics
    ///
    /// If it is not HTTP, or ends early.
    pub fn reply(&mut self, method: &str) -> Reply {
        let line = self.line();
        let status = line.strip_prefix("HTTP/1.1 ").unwrap_or_else(|| panic!("not a reply: {line:?}"));
        let status = status[..3].parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut reply = Reply { status, headers, body: String::new() };
        if method != "HEAD" && status != 204 {
            let mut body = vec![0; reply.header("content-length").unwrap().parse().unwrap()];
            self.stream.read_exact(&mut body).unwrap();
            reply.body = String::from_utf8(body).unwrap();
        }
        reply
    }

    /// Reads a line of a reply's head.
    ///
    /// # Panics
    ///
    /// If the line is cut off.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.strip_suffix("\r\n").unwrap_or_else(|| panic!("cut off: {line:?}")).to_owned()
    }

    /// Everything that the server sends until it closes the connection.
    pub fn rest(&mut self) -> String {
        crate::resp::rest(&mut self.stream)
    }
}

/// A request's bytes. The headers `host` and `content-length` are added where they are missing.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    let given = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    if !given("host") {
        text += "host: localhost\r\n";
    }
    if !given("content-length") && !given("transfer-encoding") && (!body.is_empty() || method == "POST") {
        text += &format!("content-length: {}\r\n", body.len());
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text + "\r\n" + body
}

/// A reply.
#[derive(Debug)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Reply {
    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// If it is not JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Expects the report of a mistake in this field, and nothing else.
    ///
    /// # Panics
    ///
    /// If the reply is another.
    #[track_caller]
    pub fn is_mistake(&self, status: u16, field: Option<&str>) {
        let json = self.json();
        assert_eq!((self.status, json["field"].as_str()), (status, field), "{self:?}");
        assert!(!json["error"].as_str().unwrap().is_empty());
        assert!(!json["code"].as_str().unwrap().is_empty());
        assert_eq!(json.as_object().unwrap().len(), 4);
    }
}
