//! Reports the state of the server to systemd, or to another program that listens on `NOTIFY_SOCKET`.
//!
//! The protocol is a datagram of lines. A message that cannot be sent is logged and dropped: the server works without a
//! listener.

use std::ffi::OsString;
use std::io;

/// The server serves, or serves again after a reload.
pub(super) const READY: &str = "READY=1\nSTATUS=serving";
/// The server reads its configuration.
pub(super) const RELOADING: &str = "RELOADING=1\nSTATUS=reading the configuration";
/// The server begins to stop.
pub(super) const STOPPING: &str = "STOPPING=1\nSTATUS=finishing what is under way";

/// Sends messages to `NOTIFY_SOCKET`; without that variable it sends nothing.
#[derive(Debug)]
pub(super) struct Notifier {
    socket: Option<OsString>,
}

impl Notifier {
    pub(super) fn of_process() -> Notifier {
        Notifier { socket: std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) }
    }

    /// Sends one of the messages above.
    pub(super) fn tell(&self, message: &str) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = send(socket, message) {
            tracing::warn!(socket = %socket.display(), %error, "cannot notify systemd");
        }
    }
}

#[cfg(unix)]
fn send(socket: &OsString, text: &str) -> io::Result<()> {
    use std::os::unix::net::UnixDatagram;

    let sender = UnixDatagram::unbound()?;
    // A listener that does not read must not block the server.
    sender.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::net::SocketAddr;

        // An abstract name, which is not in the file system.
        if let Some(name) = socket.as_bytes().strip_prefix(b"@") {
            return sender.send_to_addr(text.as_bytes(), &SocketAddr::from_abstract_name(name)?).map(drop);
        }
    }
    sender.send_to(text.as_bytes(), socket).map(drop)
}

#[cfg(not(unix))]
fn send(_: &OsString, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use super::*;

    #[test]
    fn a_name_outside_of_the_file_system() {
        let name = format!("flowgate-test-{}", std::process::id());
        let systemd = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        Notifier { socket: Some(format!("@{name}").into()) }.tell(READY);
        let mut heard = [0; 100];
        let length = systemd.recv(&mut heard).unwrap();
        assert_eq!(&heard[..length], b"READY=1\nSTATUS=serving");
    }

    #[test]
    fn without_a_socket_nothing_is_sent() {
        Notifier { socket: None }.tell(READY);
        Notifier { socket: Some("/nonexistent/socket".into()) }.tell(READY);
    }
}
