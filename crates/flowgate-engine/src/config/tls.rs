//! `[tls]`: encryption on all listeners.

use std::path::PathBuf;

use super::report::Report;
use super::table_reader::TableReader;
use super::value;
use super::writer::Writer;

/// Certificates, in PEM files. Without them connections are not encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificate, with its chain.
    pub cert: PathBuf,
    /// The private key of that certificate.
    pub key: PathBuf,
    /// Clients must show a certificate signed by one of these.
    pub client_ca: Option<PathBuf>,
}

impl Tls {
    pub(crate) fn read(report: &mut Report, mut fields: TableReader<'_>) -> Option<Tls> {
        let cert_at = fields.node("cert").map(|node| node.at);
        let key_at = fields.node("key").map(|node| node.at);
        let client_ca_at = fields.node("client_ca").map(|node| node.at);
        let cert = fields.read(report, "cert", value::path).flatten();
        let key = fields.read(report, "key", value::path).flatten();
        let client_ca = fields.read(report, "client_ca", value::path).flatten();
        fields.finish(report);
        match (cert, key) {
            (Some(cert), Some(key)) => return Some(Tls { cert, key, client_ca }),
            (Some(_), None) => {
                let at = cert_at?;
                report.error(at, "\"cert\" needs \"key\"").hint("such as key = \"server.key\"").done();
            }
            (None, Some(_)) => {
                let at = key_at?;
                report.error(at, "\"key\" needs \"cert\"").hint("such as cert = \"server.pem\"").done();
            }
            (None, None) if client_ca.is_some() => {
                let at = client_ca_at?;
                let hint = "clients can only show a certificate over TLS, which these two switch on";
                report.error(at, "\"client_ca\" needs \"cert\" and \"key\"").hint(hint).done();
            }
            (None, None) => {}
        }
        None
    }

    pub(crate) fn write(tls: Option<&Tls>, out: &mut Writer) {
        out.section("tls");
        out.path("cert", tls.map(|tls| tls.cert.as_path()));
        out.path("key", tls.map(|tls| tls.key.as_path()));
        out.path("client_ca", tls.and_then(|tls| tls.client_ca.as_deref()));
    }
}
