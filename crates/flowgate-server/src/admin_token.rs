//! The admin token that a server makes if the configuration has none: a file that only its user may read.
//!
//! Rule       A token is written whole to a temporary file, which is then linked to its name. A link fails if the name
//!            exists. Of two servers that start together, one thus makes the token and both use it, and a reader never
//!            finds half a token.
//! Rule       Nothing here prints or logs a token.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flowgate_engine::config::{Secret, read_text_file};

const FILE_NAME: &str = "admin-token";

/// A longer token does not fit into the head of a request.
const MAX_TOKEN_FILE_BYTES: u64 = 16 << 10;

/// The random bytes of a token: 256 bits.
const RANDOM_BYTES: usize = 32;

/// The path of the token in a state directory.
pub fn path_in(directory: &Path) -> PathBuf {
    directory.join(FILE_NAME)
}

/// The token in a state directory, or else a new one. Makes the directory if it is missing.
///
/// # Errors
/// When the token can be neither read nor written, the file holds other contents, or every user may read or change it.
pub fn obtain(directory: &Path) -> io::Result<Secret> {
    let path = path_in(directory);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found.and_then(|token| check_permissions(&path).map(|()| token)),
    }
    make_directory(directory)?;
    let written = write_beside(directory)?;
    let linked = fs::hard_link(&written, &path);
    // If this fails, the file that stays holds a token that no server uses.
    let _ = fs::remove_file(&written);
    match linked {
        // Another server was faster: both use its token.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => linked?,
    }
    // The name survives a power failure only once the directory is synced. Not every file system can sync a directory.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    read(&path)
}

/// The token in a file.
///
/// # Errors
/// When the file cannot be read, or does not hold a token.
pub fn read(path: &Path) -> io::Result<Secret> {
    let text = read_text_file(path, MAX_TOKEN_FILE_BYTES)?;
    let token = text.trim_end();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let problem = "it holds no token; remove it, and the next start of the server makes one";
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(Secret::new(token))
}

/// Refuses a file that every user of the machine may read or write. A group may have access on purpose.
fn check_permissions(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path)?.permissions()) & 0o006 != 0 {
        let problem = "every user may read or change it; remove it, and the next start of the server makes another";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

fn make_directory(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Writes a new token to a temporary file with a unique name.
fn write_beside(directory: &Path) -> io::Result<PathBuf> {
    let (name, token) = (random::<8>()?, random::<RANDOM_BYTES>()?);
    let path = directory.join(format!(".{FILE_NAME}.{name}"));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&path)?;
    let written = file.write_all(format!("{token}\n").as_bytes()).and_then(|()| file.sync_all());
    written.inspect_err(|_| drop(fs::remove_file(&path)))?;
    Ok(path)
}

/// Random bytes of the system, as hexadecimal digits.
fn random<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    let provider = rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn the_token_is_kept() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("state/flowgate");
        let token = obtain(&directory).unwrap();
        assert_eq!(token.expose().len(), 2 * RANDOM_BYTES);
        assert_eq!(obtain(&directory).unwrap(), token);
        assert_eq!(read(&path_in(&directory)).unwrap(), token);
        let left: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["admin-token"], "nothing is left beside it");
        let other = obtain(parent.path()).unwrap();
        assert_ne!(other, token, "each directory has its own");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_servers_user_may_read_the_token_file() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("flowgate");
        obtain(&directory).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&directory), mode(&path_in(&directory))), (0o700, 0o600));
    }

    #[cfg(unix)]
    #[test]
    fn a_token_that_every_user_may_read_or_change_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let token = obtain(directory.path()).unwrap();
        let path = path_in(directory.path());
        for (mode, is_used) in [(0o644, false), (0o602, false), (0o640, true), (0o400, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(obtain(directory.path()).is_ok(), is_used, "{mode:o}");
        }
        assert_eq!(read(&path).unwrap(), token, "it is left as it is");
    }

    #[test]
    fn servers_that_start_at_once_share_one_token() {
        for _ in 0..50 {
            let directory = tempfile::tempdir().unwrap();
            let start = Barrier::new(8);
            let obtained = || {
                start.wait();
                obtain(directory.path()).unwrap().expose().to_owned()
            };
            let tokens: Vec<String> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(obtained)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(tokens.iter().all(|token| *token == tokens[0]), "several tokens");
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "something is left beside it");
        }
    }

    #[test]
    fn what_is_no_token_is_never_used_nor_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = path_in(directory.path());
        for text in ["", "\n", "two words\n", "\u{fc}\n", "line\nline\n"] {
            fs::write(&path, text).unwrap();
            assert_eq!(obtain(directory.path()).unwrap_err().kind(), io::ErrorKind::InvalidData, "{text:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        fs::write(&path, "of-the-operator\r\n").unwrap();
        assert_eq!(obtain(directory.path()).unwrap().expose(), "of-the-operator");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(obtain(directory.path()).unwrap_err().to_string(), "it is not a regular file");
    }
}
