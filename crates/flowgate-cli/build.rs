//! Tells the binary its version, with the commit when it is built from a checkout of this repository.

use std::path::Path;
use std::process::Command;

fn main() {
    // Naming at least one file keeps cargo from rerunning this on every change of any file.
    println!("cargo::rerun-if-changed=build.rs");

    let mut version = env!("CARGO_PKG_VERSION").to_owned();
    if let Some(commit) = commit() {
        version += &format!(" ({commit})");
    }
    println!("cargo::rustc-env=FLOWGATE_VERSION={version}");
}

/// The commit of the checkout; none without git, or where this source only lies inside somebody else's repository.
fn commit() -> Option<String> {
    if git(&["rev-parse", "--show-prefix"])? != "crates/flowgate-cli/" {
        return None;
    }
    // HEAD changes when another branch is checked out, its log whenever what it points to changes.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
