//! The ceiling of a server with one event loop: reads from all ready connections, then sends the same answer to each.
//!
//!     bare http|resp PORT
//!
//! It makes the system calls of Flowgate and Redis, one read and one write for what has arrived on a connection, and nothing
//! else: it neither reads what it is asked nor decides. The answers are Flowgate's to `/v1/limit` and to `CL.THROTTLE`; in
//! the Redis protocol one for each command.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const HTTP: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-content-type-options: nosniff\r\n\
    cache-control: no-store\r\ncross-origin-resource-policy: same-origin\r\ncontent-length: 207\r\n\
    date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n{\"allowed\":true,\"action\":\"allow\",\"rule\":null,\"matched\":true,\
    \"limit\":1000000,\"remaining\":999999,\"retry_after\":null,\"reset_after\":0.001,\"delay\":0,\"exceeded\":[],\"shadow\":[],\
    \"banned_until\":null,\"degraded\":false}";
const RESP: &str = "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n";

/// The answers that are sent at once at most: those to a full read of the shortest commands.
const MOST_ANSWERS: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (protocol, port) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default().parse()?);
    let (answer, counts) = match protocol.as_str() {
        "http" => (HTTP, false),
        "resp" => (RESP, true),
        _ => return Err("bare http|resp PORT".into()),
    };
    let answers = answer.repeat(MOST_ANSWERS);
    let mut listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    let mut poll = Poll::new()?;
    let listening = Token(usize::MAX);
    poll.registry().register(&mut listener, listening, Interest::READABLE)?;
    // By token; `None`: the client has left.
    let mut streams: Vec<Option<TcpStream>> = Vec::new();
    let (mut events, mut input, mut ready) = (Events::with_capacity(1024), vec![0; 64 * 1024], Vec::new());
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            if event.token() == listening {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    poll.registry().register(&mut stream, Token(streams.len()), Interest::READABLE)?;
                    streams.push(Some(stream));
                }
                continue;
            }
            let Token(number) = event.token();
            let Some(stream) = &mut streams[number] else { continue };
            match stream.read(&mut input) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => streams[number] = None,
                Ok(bytes) => {
                    let commands = input[..bytes].iter().filter(|&&byte| byte == b'*').count();
                    ready.push((number, if counts { commands } else { 1 }));
                }
            }
        }
        for (number, commands) in ready.drain(..) {
            if let Some(stream) = &mut streams[number] {
                stream.write_all(&answers.as_bytes()[..commands * answer.len()])?;
            }
        }
    }
}
