//! The files of the console: where they are, what protects them, and who asks again.

use std::fs;
use std::io::Read;

use super::*;

/// What every file brings.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
    ),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-cache"),
];

/// openapi.json describes the API, not files.
fn files(server: &Running) -> Client {
    Client { described: false, ..server.connect() }
}

#[track_caller]
fn is_protected(reply: &Reply) {
    for (name, value) in HEADERS {
        assert_eq!(reply.header(name), Some(value), "{reply:?}");
    }
}

#[test]
fn the_page_is_open_and_protected() {
    let server = Running::start("");
    for path in ["/", "/console/index.html"] {
        let page = files(&server).call("GET", path, &[("authorization", "")], "");
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
        assert!(page.body.to_ascii_lowercase().starts_with("<!doctype html>"), "{page:?}");
        assert_eq!((page.header("content-encoding"), page.header("vary")), (None, Some("accept-encoding")));
        is_protected(&page);
    }
    let redirected = files(&server).call("GET", "/console/", &[], "");
    assert_eq!((redirected.status, redirected.header("location")), (308, Some("/")));
    for path in ["/console/nothing.js", "/console/../Cargo.toml", "/consolex", "/index.html"] {
        files(&server).call("GET", path, &[], "").is_mistake(404, None);
    }
    let refused = files(&server).call("POST", "/", &[], "");
    refused.is_mistake(405, None);
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
}

#[test]
fn a_file_is_compressed_for_clients_that_ask_for_it() {
    let server = Running::start("");
    let plain = files(&server).call("GET", "/", &[], "").body;
    let mut client = files(&server);
    client.send(request("GET", "/", &[("accept-encoding", "br, gzip"), ("connection", "close")], ""));
    let mut head = Vec::new();
    loop {
        match client.line() {
            line if line.is_empty() => break,
            line => head.push(line.to_ascii_lowercase()),
        }
    }
    assert!(head.contains(&"content-encoding: gzip".to_owned()), "{head:?}");
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(&mut client.stream).read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain);
}

#[test]
fn a_client_that_has_the_file_gets_no_second_copy() {
    let server = Running::start("");
    let etag = files(&server).call("HEAD", "/", &[], "").header("etag").unwrap().to_owned();
    for (known, status) in [(etag.as_str(), 304), (&format!("\"x\", {etag}"), 304), ("\"other\"", 200)] {
        let again = files(&server).call("HEAD", "/", &[("if-none-match", known)], "");
        assert_eq!((again.status, again.header("etag")), (status, Some(&*etag)), "{known}");
        is_protected(&again);
    }
}

#[test]
fn files_of_a_directory_are_read_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    fs::write(path.join("index.html"), "one").unwrap();
    fs::write(path.join("secret.key"), "none of the browser's business").unwrap();
    let server = Running::start_with(Config::default(), move |server| server.set_console_directory(path));
    let one = files(&server).call("GET", "/", &[("accept-encoding", "gzip")], "");
    assert_eq!((one.body.as_str(), one.header("content-encoding")), ("one", None));
    is_protected(&one);
    fs::write(directory.path().join("index.html"), "two").unwrap();
    let known = [("if-none-match", one.header("etag").unwrap())];
    assert_eq!(files(&server).call("GET", "/", &known, "").body, "two");
    for path in ["/console/secret.key", "/console/../index.html", "/console/%2e%2e/index.html", "/console/none.js"] {
        files(&server).call("GET", path, &[], "").is_mistake(404, None);
    }
}

#[test]
fn a_console_that_is_off_has_no_page() {
    let server = Running::start("console.enabled = false");
    for path in ["/", "/console/", "/console/index.html"] {
        server.get(path).is_mistake(404, None);
    }
    assert_eq!(server.get("/v1/stats").status, 200, "the API stays");
}
