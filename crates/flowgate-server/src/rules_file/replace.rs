//! Replaces a file as a whole: readers see either the old text or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes `text` in place of the file at `path`, with the permissions of that file.
///
/// # Errors
/// When the file cannot be replaced, for instance on a full disk; then it is as it was.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_by(path, |file| file.write_all(text.as_bytes()))
}

fn replace_by(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    // A link stays a link: its target is replaced.
    let path = fs::canonicalize(path)?;
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // The name begins with a dot, so that no pattern of `include` matches it.
    let beside = directory.join(format!(".{}.new", name.to_string_lossy()));
    write_by(&beside, &path, write)?;
    fs::rename(&beside, &path).inspect_err(|_| discard(&beside))?;
    // The new name survives a power failure only once the directory is synced. Not every file system can sync a
    // directory.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

/// Writes a file with the permissions of `model`, which hold from its first byte on. Writes all of it, or removes it.
pub(super) fn write_like(path: &Path, text: &str, model: &Path) -> io::Result<()> {
    write_by(path, model, |file| file.write_all(text.as_bytes()))
}

fn write_by(path: &Path, model: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let permissions = fs::metadata(model)?.permissions();
    // A file that a crash left behind may have other permissions.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let written = file.set_permissions(permissions).and_then(|()| write(&mut file)).and_then(|()| file.sync_all());
    written.inspect_err(|_| discard(path))
}

/// Removes a useless file. A file that cannot be removed is overwritten next time.
fn discard(path: &Path) {
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_full_leaves_the_file_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flowgate.toml");
        fs::write(&path, "old").unwrap();
        let full = |file: &mut File| {
            file.write_all(b"ne")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        assert_eq!(replace_by(&path, full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(
            write_by(&directory.path().join("1.toml"), &path, full).unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["flowgate.toml"], "nothing half-written is left");
        replace(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }
}
