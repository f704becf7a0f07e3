//! Certificates that are renewed while the server runs.
//!
//! Rule       A file that looks different is a change, as one of a file of rules is: all is loaded again. Whoever renews
//!            certificates replaces one file after the other; what does not fit together yet is tried again at the
//!            next change.

use flowgate_engine::config;

use super::watch::{Stamp, stamp};
use crate::tls::{Certificates, TlsError};

/// Certificates in force and the files that they came from.
#[derive(Debug)]
pub(crate) struct Renewal {
    certificates: Certificates,
    files: config::Tls,
    /// How the files looked at the last look.
    last: Stamps,
    /// How they looked before they were read.
    read: Stamps,
}

type Stamps = [Stamp; 3];

impl Renewal {
    pub(crate) fn new(certificates: Certificates, files: config::Tls) -> Renewal {
        let last = stamps(&files);
        // What changed between the first reading and the look at the files is not missed by reading again.
        let read = if certificates.replace(&files).is_ok() { last } else { [None; 3] };
        Renewal { certificates, files, last, read }
    }

    pub(crate) fn has_changed(&mut self) -> bool {
        self.last = stamps(&self.files);
        self.last != self.read
    }

    /// Whether nothing has moved since the last look.
    pub(crate) fn is_steady(&mut self) -> bool {
        let now = stamps(&self.files);
        std::mem::replace(&mut self.last, now) == now
    }

    /// Reads the files, now perhaps others, and puts them in force; whether they are other ones.
    pub(crate) fn renew(&mut self, files: Option<&config::Tls>) -> Result<bool, TlsError> {
        let before = (self.files.clone(), self.read);
        if let Some(files) = files {
            self.files.clone_from(files);
        }
        self.note();
        self.certificates.replace(&self.files)?;
        Ok(before != (self.files.clone(), self.read))
    }

    /// Takes note of how the files look: they are not read before they look different.
    pub(crate) fn note(&mut self) {
        self.read = stamps(&self.files);
    }
}

fn stamps(files: &config::Tls) -> Stamps {
    [Some(&files.cert), Some(&files.key), files.client_ca.as_ref()].map(|path| path.and_then(|path| stamp(path)))
}
