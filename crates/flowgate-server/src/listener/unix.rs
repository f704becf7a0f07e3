//! A listening unix socket and its file.
//!
//! Rule       A socket file without a listening process is left over from an earlier server, and is replaced. A socket
//!            with one, or any other file, stays as it is.
//! End        The file is removed when the listener closes, unless another file has taken its place.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// A listening socket, and its file.
#[derive(Debug)]
pub(super) struct UnixSocket {
    pub(super) listener: UnixListener,
    pub(super) path: PathBuf,
    /// Device and inode of the file that `bind` created.
    file: (u64, u64),
}

impl UnixSocket {
    pub(super) fn bind(path: &Path) -> io::Result<UnixSocket> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_stale(path)?;
                UnixListener::bind(path)?
            }
            bound => bound?,
        };
        let file = identity(&fs::symlink_metadata(path)?);
        Ok(UnixSocket { listener, path: path.to_owned(), file })
    }

    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await?.0.into_std()
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|metadata| identity(&metadata) == self.file);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket");
        }
    }
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let in_use = |reason| Err(io::Error::new(io::ErrorKind::AddrInUse, reason));
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return in_use("a file of that name exists, and it is not a socket");
    }
    match UnixStream::connect(path) {
        Ok(_) => in_use("another server listens there"),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a second server at `path`.
    fn refusal(path: &Path) -> String {
        UnixSocket::bind(path).unwrap_err().to_string()
    }

    #[tokio::test]
    async fn the_file_is_removed_when_the_listener_closes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let socket = UnixSocket::bind(&path).unwrap();
        assert_eq!(refusal(&path), "another server listens there");
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn socket_file_of_an_earlier_server_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        UnixSocket::bind(&path).unwrap();
    }

    #[tokio::test]
    async fn file_of_another_program_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "precious").unwrap();
        assert_eq!(refusal(&path), "a file of that name exists, and it is not a socket");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");

        let path = directory.path().join("socket");
        let socket = UnixSocket::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let successor = UnixSocket::bind(&path).unwrap();
        drop(socket);
        assert!(path.exists(), "the successor's socket was removed");
        drop(successor);
    }
}
