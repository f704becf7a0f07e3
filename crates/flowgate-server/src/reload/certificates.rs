//! Watches the files of certificates.
//!
//! Rule       A file that looks different is a change, as it is for a file of rules: everything is loaded again. A
//!            tool that renews certificates replaces one file after the other; a pair that does not fit yet is tried
//!            again at the next change.
//! Invariant  How the files look is noted before they are read, so a change after the reading is always seen.

use flowgate_engine::config;

use super::watch::{Stamp, stamp};
use crate::tls::Certificates;

/// The certificate files of the last attempt, and their stamps.
#[derive(Debug, Default)]
pub(crate) struct CertificateWatch {
    /// The files; `None`: the configuration has no certificates.
    files: Option<config::Tls>,
    /// The stamps of the files when they were last looked at.
    last: Stamps,
    /// The stamps of the files just before the last attempt to read them.
    read: Stamps,
    /// The files in force, and their stamps before they were read; `None`: the server has no TLS.
    in_force: Option<(config::Tls, Stamps)>,
}

type Stamps = [Stamp; 3];

impl CertificateWatch {
    /// Watches the files of the certificates in force. They are read again: they may have changed since the start.
    pub(crate) fn new(certificates: &Certificates, files: config::Tls) -> CertificateWatch {
        let mut read = stamps(Some(&files));
        match Certificates::compile(&files) {
            Ok(compiled) => certificates.swap(compiled),
            Err(_) => read = Stamps::default(),
        }
        CertificateWatch { files: Some(files.clone()), last: read, read, in_force: Some((files, read)) }
    }

    pub(crate) fn has_changed(&mut self) -> bool {
        self.last = stamps(self.files.as_ref());
        self.last != self.read
    }

    /// True if the files look as they did at the last look.
    pub(crate) fn is_steady(&mut self) -> bool {
        let now = stamps(self.files.as_ref());
        std::mem::replace(&mut self.last, now) == now
    }

    /// Watches the files that a configuration names, or else those in force. The caller is about to read them.
    pub(crate) fn follow(&mut self, named: Option<&config::Tls>) -> Option<&config::Tls> {
        self.files = named.or(self.in_force.as_ref().map(|(files, _)| files)).cloned();
        self.note_looks();
        self.files.as_ref()
    }

    /// Notes how the files look: the next attempt waits until they look different.
    pub(crate) fn note_looks(&mut self) {
        self.read = stamps(self.files.as_ref());
    }

    /// Notes that the files of the last attempt are in force. True if they replace others.
    pub(crate) fn note_in_force(&mut self) -> bool {
        let (Some(files), Some(before)) = (&self.files, &mut self.in_force) else { return false };
        let now = (files.clone(), self.read);
        let replaced = *before != now;
        *before = now;
        replaced
    }
}

fn stamps(files: Option<&config::Tls>) -> Stamps {
    let Some(files) = files else { return Stamps::default() };
    [Some(&files.cert), Some(&files.key), files.client_ca.as_ref()].map(|path| path.and_then(|path| stamp(path)))
}
