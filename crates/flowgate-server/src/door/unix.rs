//! A door in the file system: a unix socket and its file.
//!
//! Rule       A file that an earlier server left behind is replaced: a socket on which nobody answers. A socket on which
//!            somebody does, or any other file, is not touched.
//! End        The file is removed with the door, unless somebody has put another in its place.

use std::fs::{self, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// A listening socket, and the file that leads to it.
#[derive(Debug)]
pub(super) struct UnixDoor {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file that was made.
    file: (u64, u64),
}

impl UnixDoor {
    pub(super) fn bind(path: &Path) -> io::Result<UnixDoor> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_stale(path)?;
                UnixListener::bind(path)?
            }
            bound => bound?,
        };
        let file = identity(&fs::symlink_metadata(path)?);
        Ok(UnixDoor { listener, path: path.to_owned(), file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await?.0.into_std()
    }
}

impl AsFd for UnixDoor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for UnixDoor {
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
        return in_use("there is a file of that name, and it is no socket");
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

    /// What a second server says about `path`.
    fn refusal(path: &Path) -> String {
        UnixDoor::bind(path).unwrap_err().to_string()
    }

    #[tokio::test]
    async fn the_file_goes_with_the_door() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let door = UnixDoor::bind(&path).unwrap();
        assert_eq!(refusal(&path), "another server listens there");
        drop(door);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_an_earlier_server_left_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        UnixDoor::bind(&path).unwrap();
    }

    #[tokio::test]
    async fn a_file_of_somebody_else_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "precious").unwrap();
        assert_eq!(refusal(&path), "there is a file of that name, and it is no socket");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");

        let path = directory.path().join("socket");
        let door = UnixDoor::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let successor = UnixDoor::bind(&path).unwrap();
        drop(door);
        assert!(path.exists(), "the successor's socket was removed");
        drop(successor);
    }
}
