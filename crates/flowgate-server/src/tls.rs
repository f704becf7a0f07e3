//! TLS: the server's certificate, and which clients must show one.
//!
//! State      One set of certificates in force. An open connection keeps the set of its handshake.
//! Rule       All files are read and checked first ([`Certificates::compile`]); the swap that follows cannot fail.
//!
//! TLS 1.2 and 1.3, on the cryptography of *ring*, which builds with a C compiler alone.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use flowgate_engine::config;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::listener::Stream;

/// The certificates in force. Clones share them.
#[derive(Clone, Debug)]
pub struct Certificates {
    in_force: Arc<ArcSwap<Settings>>,
    http2: bool,
}

/// Certificates that were read and fit together.
#[derive(Debug)]
pub struct CompiledCertificates(Arc<Settings>);

/// The certificates in two forms, since only some clients speak HTTP/2.
#[derive(Debug)]
struct Settings {
    any: Arc<ServerConfig>,
    /// For a listener whose clients speak HTTP/2, which the handshake says.
    http2: Arc<ServerConfig>,
}

/// Why certificates cannot be used. The message names the file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("[tls] {key}: cannot read {}", .path.display())]
    Unreadable {
        /// The key of the configuration.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file has other contents than expected.
    #[error("[tls] {key}: {} {problem}", .path.display())]
    Wrong {
        /// The key of the configuration.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Certificate and key are not a pair, or of an unknown kind.
    #[error("[tls]: {} and {} cannot be used together", .cert.display(), .key.display())]
    Pair {
        /// The file of the certificate.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The error of the TLS library.
        source: rustls::Error,
    },
}

impl TlsError {
    /// The file that is wrong.
    pub(crate) fn file(&self) -> &Path {
        match self {
            TlsError::Unreadable { path, .. } | TlsError::Wrong { path, .. } => path,
            TlsError::Pair { key, .. } => key,
        }
    }

    /// The message without anything that the file holds, for a caller that may not read it.
    pub(crate) fn confined(&self) -> String {
        match self {
            TlsError::Wrong { key, path, .. } => format!("[tls] {key}: {} cannot be used", path.display()),
            TlsError::Unreadable { .. } | TlsError::Pair { .. } => self.to_string(),
        }
    }
}

impl Certificates {
    /// Reads certificates.
    ///
    /// # Errors
    /// When a file cannot be read or used.
    pub fn compile(files: &config::Tls) -> Result<CompiledCertificates, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let certs = certificates("cert", &files.cert)?;
        let key = PrivateKeyDer::from_pem_slice(&bytes("key", &files.key)?)
            .map_err(|error| wrong("key", &files.key, &error, "private key in clear"))?;
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let pair = |source| TlsError::Pair { cert: files.cert.clone(), key: files.key.clone(), source };
        let config = config.map_err(pair)?;
        let config = match &files.client_ca {
            Some(path) => config.with_client_cert_verifier(verifier(path, provider)?),
            None => config.with_no_client_auth(),
        };
        let any = config.with_single_cert(certs, key).map_err(pair)?;
        let mut http2 = any.clone();
        http2.alpn_protocols = vec![b"h2".to_vec()];
        Ok(CompiledCertificates(Arc::new(Settings { any: Arc::new(any), http2: Arc::new(http2) })))
    }

    /// Puts the first certificates in force.
    pub fn new(CompiledCertificates(first): CompiledCertificates) -> Certificates {
        Certificates { in_force: Arc::new(ArcSwap::new(first)), http2: false }
    }

    /// The same certificates for a listener whose clients speak HTTP/2.
    pub(crate) fn for_http2(&self) -> Certificates {
        Certificates { in_force: Arc::clone(&self.in_force), http2: true }
    }

    /// Puts other certificates in force, for handshakes from now on.
    pub fn swap(&self, CompiledCertificates(next): CompiledCertificates) {
        self.in_force.store(next);
    }

    /// The TLS handshake with a client, within `timeout`.
    pub(crate) async fn accept<S: Stream>(&self, stream: S, timeout: Duration) -> io::Result<TlsStream<S>> {
        let settings = self.in_force.load();
        let acceptor = TlsAcceptor::from(Arc::clone(if self.http2 { &settings.http2 } else { &settings.any }));
        drop(settings);
        match tokio::time::timeout(timeout, acceptor.accept(stream)).await {
            Ok(accepted) => accepted,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// The most bytes of a PEM file. A chain of certificates takes kilobytes, a bundle of all public authorities hundreds
/// of kilobytes.
const MAX_PEM_BYTES: u64 = 16 << 20;

/// Accepts clients with a certificate that an authority in `path` has signed.
fn verifier(path: &Path, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let refuse = |problem: String| TlsError::Wrong { key: "client_ca", path: path.to_owned(), problem };
    let mut roots = RootCertStore::empty();
    for certificate in certificates("client_ca", path)? {
        roots.add(certificate).map_err(|error| refuse(format!("holds a certificate that signs nothing: {error}")))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map_err(|error| refuse(format!("cannot be used: {error}")))
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = bytes(key, path)?;
    let certificates = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|error| wrong(key, path, &error, "certificate"))?;
    if certificates.is_empty() {
        return Err(wrong(key, path, &pem::Error::NoItemsFound, "certificate"));
    }
    Ok(certificates)
}

fn bytes(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let read = config::read_file(path, MAX_PEM_BYTES);
    read.map_err(|source| TlsError::Unreadable { key, path: path.to_owned(), source: source.into() })
}

fn wrong(key: &'static str, path: &Path, error: &pem::Error, expected: &str) -> TlsError {
    let problem = match error {
        pem::Error::NoItemsFound => format!("holds no {expected} in PEM"),
        error => format!("is not a PEM file: {error}"),
    };
    TlsError::Wrong { key, path: path.to_owned(), problem }
}
