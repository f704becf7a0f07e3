//! A configuration with every part compiled, ready to be put in force.
//!
//! Rule       All that can fail fails here: rules, rule files of fronts, lists and certificates. Putting a candidate in
//!            force cannot fail, so a mistake in one part keeps all parts as they were.

use std::error::Error;

use flowgate_engine::PolicyError;
use flowgate_engine::config::{self, Config, Report, Severity};

use crate::service::{Service, Snapshot};
use crate::tls::{Certificates, CompiledCertificates, TlsError};

/// Why a configuration cannot be put in force.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// A file of the configuration, one that it includes, a list, a secret or a front's rule file is wrong.
    #[error("{0}")]
    Configuration(Report),
    /// The rules do not fit together.
    #[error("{0}")]
    Rules(#[from] PolicyError),
    /// Certificates cannot be used.
    #[error("{}", with_reason(.0))]
    Certificates(#[from] TlsError),
}

impl ReloadError {
    /// The file that is wrong; `None`: it is unknown.
    pub fn file(&self) -> Option<String> {
        match self {
            ReloadError::Configuration(report) => {
                let first = report.entries().find(|entry| entry.severity == Severity::Error)?;
                first.source.map(str::to_owned)
            }
            ReloadError::Rules(_) => None,
            ReloadError::Certificates(error) => Some(error.file().display().to_string()),
        }
    }

    /// What is wrong, in a few words.
    pub(super) fn summary(&self) -> &'static str {
        match self {
            ReloadError::Configuration(_) => "the configuration is wrong",
            ReloadError::Rules(_) => "the rules do not fit together",
            ReloadError::Certificates(_) => "the certificates cannot be used",
        }
    }
}

/// A configuration that can be put in force.
#[derive(Debug)]
pub(super) struct Candidate {
    snapshot: Snapshot,
    certificates: Option<CompiledCertificates>,
}

impl Candidate {
    /// Compiles the rules of `config`, and the certificates in `tls`.
    pub(super) fn compile(
        service: &Service,
        config: &Config,
        tls: Option<&config::Tls>,
    ) -> Result<Candidate, ReloadError> {
        let certificates = tls.map(Certificates::compile).transpose()?;
        let snapshot = service.compile(config)?;
        Ok(Candidate { snapshot, certificates })
    }

    /// Puts all parts in force. Certificates need listeners that were bound with some.
    pub(super) fn put_in_force(self, service: &Service, certificates: Option<&Certificates>) {
        service.swap(self.snapshot);
        if let (Some(in_force), Some(next)) = (certificates, self.certificates) {
            in_force.swap(next);
        }
    }
}

fn with_reason(error: &TlsError) -> String {
    match error.source() {
        Some(reason) => format!("{error}: {reason}"),
        None => error.to_string(),
    }
}
