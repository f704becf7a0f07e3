//! HTTP over a unix socket, for a server that listens on one.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};
use ureq::{Error, Timeout};

/// Connects to a socket and ignores the host of the URL.
#[derive(Debug)]
pub(super) struct Socket(pub(super) PathBuf);

impl Connector for Socket {
    type Out = Connection;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Connection>, Error> {
        let stream = UnixStream::connect(&self.0)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Connection { stream, buffers }))
    }
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.set_write_timeout(patience(timeout))?;
        self.stream.write_all(&self.buffers.output()[..amount]).map_err(error)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.set_read_timeout(patience(timeout))?;
        let read = self.stream.read(self.buffers.input_append_buf()).map_err(error)?;
        self.buffers.input_appended(read);
        Ok(read > 0)
    }

    /// Whether the connection can be used again. Never: a command sends few requests, and connects for each.
    fn is_open(&mut self) -> bool {
        false
    }
}

fn patience(timeout: NextTimeout) -> Option<Duration> {
    timeout.not_zero().map(|left| *left)
}

/// A socket whose timeout is over reports `WouldBlock`.
fn error(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => Error::Timeout(Timeout::Global),
        _ => error.into(),
    }
}
