//! The Redis protocol: bytes -> [`decode`] -> [`command`] -> [`reply`] -> bytes, one connection at a time.

mod command;
mod decode;
mod reply;

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::door::Protocol;
use crate::shutdown::Shutdown;
use decode::Decoder;
use reply::Reply;

/// A command, framing included. It bounds what a client can make a connection hold.
const MAX_COMMAND: usize = 64 * 1024;

/// How much is read at once, and about how much of a pipeline's replies is gathered before they are sent.
const CHUNK: usize = 16 * 1024;

/// How long a client that broke the protocol may take to notice.
const LINGER: Duration = Duration::from_secs(1);

/// Speaks RESP2 with one client.
#[derive(Debug, Clone)]
pub(crate) struct Resp {
    pub(crate) idle_timeout: Duration,
}

impl Protocol for Resp {
    const FULL: &'static [u8] = b"-ERR max number of clients reached\r\n";

    async fn converse(self, stream: TcpStream, shutdown: Shutdown) -> io::Result<()> {
        Connection { stream, idle_timeout: self.idle_timeout, decoder: Decoder::new(MAX_COMMAND), out: Vec::new() }
            .run(shutdown)
            .await
    }
}

struct Connection {
    stream: TcpStream,
    idle_timeout: Duration,
    decoder: Decoder,
    out: Vec<u8>,
}

impl Connection {
    /// Serves until the client leaves, falls silent or breaks the protocol, or the server stops. What was read
    /// before a stop is answered.
    async fn run(mut self, mut shutdown: Shutdown) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = tokio::select! {
                read = timeout(self.idle_timeout, self.stream.read(&mut chunk)) => read??,
                () = shutdown.requested() => return self.stream.shutdown().await,
            };
            if read == 0 {
                return Ok(());
            }
            self.decoder.feed(&chunk[..read]);
            self.answer().await?;
        }
    }

    /// Answers every whole command received so far.
    async fn answer(&mut self) -> io::Result<()> {
        loop {
            let command = match self.decoder.next() {
                Ok(Some(command)) => command,
                Ok(None) => return self.send().await,
                Err(error) => {
                    Reply::Protocol(error.clone()).write(&mut self.out);
                    self.send().await?;
                    self.hang_up().await?;
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            };
            command::execute(&command).write(&mut self.out);
            if self.out.len() >= CHUNK {
                self.send().await?;
            }
        }
    }

    /// Sends what is in `out`. A client that does not read its replies counts as idle.
    async fn send(&mut self) -> io::Result<()> {
        timeout(self.idle_timeout, self.stream.write_all(&self.out)).await??;
        self.out.clear();
        Ok(())
    }

    /// Ends the conversation, then reads on unheard for a moment: closing with unread input would make the system
    /// discard the last reply on its way.
    async fn hang_up(&mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        let mut ignored = tokio::io::sink();
        match timeout(LINGER, tokio::io::copy(&mut self.stream, &mut ignored)).await {
            Ok(copied) => copied.map(drop),
            Err(_) => Ok(()),
        }
    }
}
