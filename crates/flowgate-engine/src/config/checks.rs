//! Contradictions between sections.

use flowgate::MemoryStore;

use super::files;
use super::listen::ListenAddress;
use super::origin::Origin;
use super::render::quoted;
use super::report::Report;
use super::source::Location;
use super::tree::Table;
use super::{Auth, Config, ReadPlaces, Tls};
use crate::rules::RuleSet;

/// Reports contradictions in a configuration whose sections are valid by themselves.
pub(crate) fn check(report: &mut Report, config: &Config, places: &ReadPlaces, root: &Table) {
    check_addresses(report, config, root);
    if !config.auth.insecure {
        check_public_doors(report, config, root);
    }
    check_policy(report, config, places);
}

/// A server does not start without its certificates. A file without read permission is only a warning: the user of the
/// server may have that permission.
pub(crate) fn check_certificates(report: &mut Report, config: &Config, root: &Table) {
    let Some(tls) = &config.tls else { return };
    let files = [("cert", Some(&tls.cert)), ("key", Some(&tls.key)), ("client_ca", tls.client_ca.as_ref())];
    for (key, path) in files {
        let (Some(path), Some(entry)) = (path, root.find(&["tls", key])) else { continue };
        let Err(cause) = files::check(path) else { continue };
        report.add_origin(Origin::file(path, 0, None));
        let message = format!("cannot read {}: {cause}", path.display());
        match cause.is_absence() || path.is_dir() {
            true => report.error(entry.node.at, message).done(),
            false => report.warning(entry.node.at, message).done(),
        }
    }
}

/// Compiles the rules, so that the engine accepts every configuration that was loaded. Each rule has been checked
/// before, with better messages; this finds bounds that all rules exceed together.
fn check_policy(report: &mut Report, config: &Config, places: &ReadPlaces) {
    let Err(error) = RuleSet::compile(&config.policy, &MemoryStore::default()) else { return };
    let message = format!("wrong {}: expected {}, found {}", error.key, error.expected, quoted(&error.found));
    report.error(places.rules.get(error.rule).map(|rule| rule.name), message).done();
}

/// Two listeners cannot share an address. Port 0 is another port each time.
fn check_addresses(report: &mut Report, config: &Config, root: &Table) {
    let addresses = config.listen.addresses();
    for (index, (key, address)) in addresses.iter().enumerate() {
        let Some((other, _)) = addresses[..index].iter().find(|(_, earlier)| collide(earlier, address)) else {
            continue;
        };
        let message = format!("\"{key}\" and \"{other}\" listen on the same address");
        let hint = "give each its own, or close one with \"off\"";
        report.error(place(root, key).or_else(|| place(root, other)), message).hint(hint).done();
    }
}

fn collide(a: &ListenAddress, b: &ListenAddress) -> bool {
    match (a, b) {
        (ListenAddress::Tcp(a), ListenAddress::Tcp(b)) => {
            let overlap = a.ip() == b.ip() || a.is_ipv4() == b.is_ipv4() && (unspecified(a) || unspecified(b));
            a.port() != 0 && a.port() == b.port() && overlap
        }
        (ListenAddress::Unix(a), ListenAddress::Unix(b)) => a == b,
        _ => false,
    }
}

fn unspecified(address: &std::net::SocketAddr) -> bool {
    address.ip().is_unspecified()
}

/// A listener that other machines reach must ask for a secret, or for certificates of clients.
fn check_public_doors(report: &mut Report, config: &Config, root: &Table) {
    let Config { listen, auth, tls, .. } = config;
    for (key, address) in listen.addresses() {
        if !address.is_public() || knows_clients(key, auth, tls.as_ref()) {
            continue;
        }
        let message = format!("{address} can be reached from other machines, and {key} asks for no secret");
        let hint = match key {
            "resp" => "set resp_password (or resp_password_file) in [auth], or insecure = true there to allow it",
            _ => "set api_token (or api_token_file) in [auth], or insecure = true there to allow it",
        };
        report.error(place(root, key), message).hint(hint).done();
    }
}

fn knows_clients(key: &str, auth: &Auth, tls: Option<&Tls>) -> bool {
    let secret = match key {
        "resp" => auth.resp_password.is_some(),
        _ => auth.api_token.is_some(),
    };
    secret || tls.is_some_and(|tls| tls.client_ca.is_some())
}

fn place(root: &Table, key: &str) -> Option<Location> {
    root.find(&["listen", key]).map(|entry| entry.node.at)
}
