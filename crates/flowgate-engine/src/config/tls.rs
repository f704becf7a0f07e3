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
    pub(crate) fn read(report: &mut Report, root: &mut TableReader<'_>) -> Option<Tls> {
        let mut fields = root.section(report, "tls");
        let cert = fields.read(report, "cert", value::path).flatten();
        let key = fields.read(report, "key", value::path).flatten();
        let client_ca = fields.read(report, "client_ca", value::path).flatten();
        let wrong = match (&cert, &key) {
            (Some(_), None) => Some(("cert", "\"cert\" needs \"key\"", "such as key = \"server.key\"")),
            (None, Some(_)) => Some(("key", "\"key\" needs \"cert\"", "such as cert = \"server.pem\"")),
            (None, None) if client_ca.is_some() => {
                let hint = "clients can only show a certificate over TLS, which these two switch on";
                Some(("client_ca", "\"client_ca\" needs \"cert\" and \"key\"", hint))
            }
            _ => None,
        };
        if let Some((name, message, hint)) = wrong
            && let Some(node) = fields.node(name)
        {
            report.error(node.at, message).hint(hint).done();
        }
        fields.finish(report);
        Some(Tls { cert: cert?, key: key?, client_ca })
    }

    pub(crate) fn write(tls: Option<&Tls>, out: &mut Writer) {
        out.section("tls");
        out.path("cert", tls.map(|tls| tls.cert.as_path()));
        out.path("key", tls.map(|tls| tls.key.as_path()));
        out.path("client_ca", tls.and_then(|tls| tls.client_ca.as_deref()));
    }
}
