//! The files of the console: `/` is `index.html`, all others lie under `/console/`.
//!
//! Rule       The files are embedded in the binary (`build.rs` makes the table). With a directory set, they are read
//!            from there on each request, for those who work on them.
//! Rule       The files hold no data, so every client may read them. A browser asks for each file anew and gets 304 if
//!            it has not changed.
//! Rule       A gateway that asks here instead of `/gate` gets 404: it would take the page for a permission.
//! Rule       Every answer carries [`HEADERS`]: no inline and no foreign script, no frame, no other origin.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bytes::Bytes;
use flowgate_engine::config::{fingerprint, read_file};
use hyper::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, LOCATION,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, StatusCode};

use super::Call;
use super::error::Error;
use super::gate;
use super::head::{self, Header};
use super::reply::{self, Reply};

/// An embedded file.
struct File {
    name: &'static str,
    etag: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

const INDEX: &str = "index.html";

/// The largest file that is read from a directory.
const MAX_FILE_BYTES: u64 = 4 << 20;

const HEADERS: [(HeaderName, &str); 7] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
    ),
    (X_FRAME_OPTIONS, "DENY"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    // Browsers ask at each use whether their copy is still current.
    (CACHE_CONTROL, "no-cache"),
];

/// Whether there is a console, and where its files come from.
#[derive(Debug)]
pub(super) struct Console {
    enabled: bool,
    /// The directory to read the files from; empty: they are embedded.
    pub(super) directory: OnceLock<PathBuf>,
}

impl Console {
    pub(super) fn new(enabled: bool) -> Console {
        Console { enabled, directory: OnceLock::new() }
    }
}

/// Answers a request for a file of the console; `None`: the path is not the console's.
pub(super) async fn answer(call: &Call<'_>) -> Option<Result<Reply, Error>> {
    let console = &call.shared.console;
    let path = call.head.path;
    if !console.enabled || !(path == "/" || path == "/console" || path.starts_with("/console/")) {
        return None;
    }
    if let Err(error) = gate::refuse_console(call) {
        return Some(Err(error));
    }
    if !matches!(*call.head.method, Method::GET | Method::HEAD) {
        return Some(Err(Error::Method("GET, HEAD")));
    }
    let mut answer = match path.strip_prefix("/console/") {
        None if path == "/" => file(console, call.headers(), INDEX).await,
        None | Some("") => Ok(redirect_to_index()),
        Some(name) => file(console, call.headers(), name).await,
    };
    if let Ok(reply) = &mut answer {
        protect(reply);
    }
    Some(answer)
}

async fn file(console: &Console, headers: &[Header<'_>], name: &str) -> Result<Reply, Error> {
    match console.directory.get() {
        Some(directory) => from_directory(directory, headers, name).await,
        None => embedded(headers, name),
    }
    .ok_or(Error::NoSuchPath)
}

fn embedded(headers: &[Header<'_>], name: &str) -> Option<Reply> {
    let file = FILES.iter().find(|file| file.name == name)?;
    Some(match accepts_gzip(headers) {
        true => {
            let mut reply = content(headers, name, file.etag, file.gzip)?;
            if reply.status == StatusCode::OK {
                reply.header(&CONTENT_ENCODING, "gzip");
            }
            reply
        }
        false => content(headers, name, file.etag, file.plain)?,
    })
}

async fn from_directory(directory: &Path, headers: &[Header<'_>], name: &str) -> Option<Reply> {
    if !is_plain(name) {
        return None;
    }
    let path = directory.join(name);
    let read = tokio::task::spawn_blocking(move || read_file(&path, MAX_FILE_BYTES)).await;
    let bytes = read.ok()?.ok()?;
    content(headers, name, &format!("W/\"{:032x}\"", fingerprint(&bytes)), bytes)
}

/// True for a name that leads to a file inside the directory: words of letters, digits, `-`, `_` and inner dots.
fn is_plain(name: &str) -> bool {
    let is_word = |word: &str| {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !word.is_empty() && !word.starts_with('.') && word.bytes().all(is_name)
    };
    name.split('/').all(is_word)
}

/// The file, or 304 if the client has it.
fn content(headers: &[Header<'_>], name: &str, etag: &str, bytes: impl Into<Bytes>) -> Option<Reply> {
    let content_type = content_type(name)?;
    let is_known = head::values(headers, "if-none-match").filter_map(head::printable);
    let is_known = is_known.flat_map(|value| value.split(',')).any(|known| known.trim() == etag);
    let mut reply = match is_known {
        true => reply::empty(StatusCode::NOT_MODIFIED),
        false => Reply::new(StatusCode::OK, bytes),
    };
    reply.header(&ETAG, etag);
    reply.header(&VARY, "accept-encoding");
    if !is_known {
        reply.header(&CONTENT_TYPE, content_type);
    }
    Some(reply)
}

/// The type of a file, by its name; `None`: it is not for browsers, such as a list of versions.
fn content_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit('.').next()? {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        _ => return None,
    })
}

fn accepts_gzip(headers: &[Header<'_>]) -> bool {
    let values = head::values(headers, "accept-encoding").filter_map(head::printable);
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

fn redirect_to_index() -> Reply {
    let mut reply = reply::empty(StatusCode::PERMANENT_REDIRECT);
    reply.header(&LOCATION, "/");
    reply
}

fn protect(reply: &mut Reply) {
    for (name, value) in HEADERS {
        reply.header(&name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["index.html", "vendor/preact.js", "a-b_c.1.css"] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["", ".", "..", "../x", "a/../b", "/etc/passwd", "a//b", "a/", ".hidden", "a/.b", "a%2fb", "a\\b"] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn clients_that_accept_gzip() {
        let accepts =
            |value: &'static str| accepts_gzip(&[Header { name: "Accept-Encoding", value: value.as_bytes() }]);
        assert!(accepts("gzip") && accepts("br, GZIP;q=0.5, deflate") && !accepts_gzip(&[]));
        assert!(!accepts("br") && !accepts("gzip;q=0") && !accepts("gzip; q=0.000") && !accepts("xgzip"));
    }

    #[test]
    fn every_embedded_file_has_a_plain_name_and_is_compressed() {
        assert!(FILES.iter().any(|file| file.name == INDEX));
        for File { name, plain, gzip, .. } in FILES {
            assert!(is_plain(name), "{name}");
            assert!(gzip.len() < plain.len() + 64, "{name}");
        }
    }
}
