//! Certificates by `openssl`, which `scripts/test` installs.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A fast kind of key, which is not encrypted.
const NEW_KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/// A certificate authority whose files are in a directory of its own: `ca.pem`, `ca.key`, and those that it issues.
#[derive(Debug)]
#[must_use = "its directory is removed with it"]
pub struct Authority {
    directory: TempDir,
}

impl Authority {
    /// A new authority.
    pub fn new() -> Authority {
        let directory = tempfile::tempdir().unwrap();
        self_signed(directory.path(), "ca", &[]);
        Authority { directory }
    }

    /// Issues a certificate for `name`, `localhost` and 127.0.0.1: `name.pem` and `name.key`.
    pub fn issue(&self, name: &str) {
        let (key, request, cert) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        std::fs::write(self.path("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").unwrap();
        let subject = format!("/CN={name}");
        let ask = ["req", "-subj", &subject, "-keyout", &key, "-out", &request];
        openssl(self.directory(), &[&ask[..], &NEW_KEY].concat());
        let sign = ["x509", "-req", "-in", &request, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
        openssl(self.directory(), &[&sign[..], &["-days", "2", "-extfile", "names", "-out", &cert]].concat());
    }

    /// The directory of all files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The path of a file as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

impl Default for Authority {
    fn default() -> Authority {
        Authority::new()
    }
}

/// Makes a certificate that signs itself: `name.pem` and `name.key` in `directory`. `extensions` are arguments of
/// `-addext`, such as `subjectAltName=IP:127.0.0.1`.
///
/// # Panics
///
/// If openssl fails.
pub fn self_signed(directory: &Path, name: &str, extensions: &[&str]) {
    let (key, cert, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={name}"));
    let mut args = vec!["req", "-x509", "-subj", &subject, "-days", "2", "-keyout", &key, "-out", &cert];
    args.extend(NEW_KEY);
    for extension in extensions {
        args.extend(["-addext", extension]);
    }
    openssl(directory, &args);
}

fn openssl(directory: &Path, args: &[&str]) {
    let output = Command::new("openssl").args(args).current_dir(directory).output();
    let output = output.unwrap_or_else(|error| panic!("openssl: {error} (scripts/test installs it)"));
    assert!(output.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}
