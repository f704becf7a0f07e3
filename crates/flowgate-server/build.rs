//! Embeds the files of the console: lists `console/`, compresses each file once, and writes the table that
//! `src/http/console.rs` includes. A new file in the folder needs no line of Rust.

use std::collections::hash_map::DefaultHasher;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("console");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", root.display());

    let mut files = Vec::new();
    list(&root, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for (number, path) in files.iter().enumerate() {
        let name = path.strip_prefix(&root)?.to_str().ok_or("a file name is not UTF-8")?.replace('\\', "/");
        let content = fs::read(path)?;
        let compressed = out.join(format!("console-{number}.gz"));
        let mut encoder = GzEncoder::new(fs::File::create(&compressed)?, Compression::best());
        encoder.write_all(&content)?;
        encoder.finish()?;
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        let etag = format!("W/\"{:016x}\"", hasher.finish());
        writeln!(
            table,
            "    File {{ name: {name:?}, etag: {etag:?}, plain: include_bytes!({path:?}), \
             gzip: include_bytes!({compressed:?}) }},"
        )?;
    }
    table.push(']');
    fs::write(out.join("console_files.rs"), table)?;
    Ok(())
}

/// Every file below a folder. Names that begin with a dot belong to editors and the system.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        match path.is_dir() {
            _ if is_hidden => {}
            true => list(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
