//! Replaces a file as a whole: readers see the old text or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes `text` in place of the file at `path`, with the permissions of that file.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A link stays one: what it leads to is replaced.
    let path = fs::canonicalize(path)?;
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // Hidden, so that no pattern of `include` finds it.
    let beside = directory.join(format!(".{}.new", name.to_string_lossy()));
    write_like(&beside, text, &path).and_then(|()| fs::rename(&beside, &path)).inspect_err(|_| {
        // What cannot be removed either is overwritten next time.
        let _ = fs::remove_file(&beside);
    })?;
    // The name is safe only once the directory is. Not every file system can say so.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

/// Writes a file that whoever may read `model` may read, and nobody else, at no time.
pub(super) fn write_like(path: &Path, text: &str, model: &Path) -> io::Result<()> {
    let permissions = fs::metadata(model)?.permissions();
    // One that a crash left behind may have others.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.set_permissions(permissions)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
