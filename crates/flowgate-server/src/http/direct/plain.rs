//! A plain request: the only kind that is answered without hyper.
//!
//! Rule       A request is plain if all of it has arrived; if it is a `GET` or a `POST` of a path that is asked for most, in
//!            HTTP/1.1; if it has at most [`MAX_HEADERS`] headers, which announce nothing but a length and keep the
//!            connection open; and if its length says where the next request begins. Any other is hyper's.
//! Rule       The head is read by `httparse`, as hyper reads it, so the two never see different requests in the same bytes.

use std::mem::MaybeUninit;

use httparse::{Header, Status};
use hyper::Method;

use crate::http::head::Head;

/// The most headers of a plain request. Gateways pass on those of browsers, about twenty.
pub(super) const MAX_HEADERS: usize = 48;

/// Room for the headers of a request.
pub(super) type Room<'b> = [MaybeUninit<Header<'b>>; MAX_HEADERS];

/// A plain request.
#[derive(Debug)]
pub(super) struct Plain<'b> {
    pub(super) head: Head<'b>,
    pub(super) body: &'b [u8],
    /// The bytes of the request.
    pub(super) length: usize,
}

/// Reads the request at the beginning of `bytes`; `None`: it is not plain.
pub(super) fn read<'r, 'b: 'r>(bytes: &'b [u8], room: &'r mut Room<'b>, max_body: usize) -> Option<Plain<'r>> {
    let mut parsed = httparse::Request::new(&mut []);
    let Ok(Status::Complete(head_bytes)) = parsed.parse_with_uninit_headers(bytes, room) else { return None };
    let (target, headers): (&str, &'r [Header<'b>]) = (parsed.path?, parsed.headers);
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let method = match parsed.method? {
        "GET" => &Method::GET,
        "POST" => &Method::POST,
        _ => return None,
    };
    if parsed.version != Some(1)
        || !is_frequent(path)
        || !query.is_none_or(|query| query.bytes().all(is_plain_in_query))
    {
        return None;
    }
    let body_bytes = match announced(headers)? {
        Some(length) if length == 0 || method == Method::POST => length,
        None if method == Method::GET => 0,
        _ => return None,
    };
    if body_bytes > max_body {
        return None;
    }
    let body = bytes[head_bytes..].get(..body_bytes)?;
    Some(Plain { head: Head { method, path, query, headers }, body, length: head_bytes + body_bytes })
}

/// True for the paths that are asked for most. All of them answer with few bytes.
fn is_frequent(path: &str) -> bool {
    match path.strip_prefix("/v1/") {
        Some(endpoint) => matches!(endpoint, "take" | "limit" | "peek" | "record" | "refund"),
        None => path
            .strip_prefix("/gate")
            .is_some_and(|rest| matches!(rest.as_bytes(), [] | [b'/', b'4', b'0'..=b'9', b'0'..=b'9'])),
    }
}

/// True for a byte that hyper accepts in every query.
fn is_plain_in_query(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~=&%+/?:@!$,;*'()".contains(&byte)
}

/// The announced length of the body; `None`: a header says something else about the body or the connection.
fn announced(headers: &[Header<'_>]) -> Option<Option<usize>> {
    let mut length = None;
    for Header { name, value } in headers {
        // Comparing lengths first rules out most names.
        let is_plain = match name.len() {
            6 => !name.eq_ignore_ascii_case("expect"),
            7 => !name.eq_ignore_ascii_case("upgrade") && !name.eq_ignore_ascii_case("trailer"),
            10 if name.eq_ignore_ascii_case("connection") => value.eq_ignore_ascii_case(b"keep-alive"),
            14 if name.eq_ignore_ascii_case("content-length") => length.replace(number(value)?).is_none(),
            17 => !name.eq_ignore_ascii_case("transfer-encoding"),
            _ => true,
        };
        if !is_plain {
            return None;
        }
    }
    Some(length)
}

/// A length in digits alone, below a gigabyte.
fn number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The method, path, body and length of a plain request.
    fn plain(request: &str) -> Option<(String, String, String, usize)> {
        let mut room = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let Plain { head, body, length } = read(request.as_bytes(), &mut room, 1000)?;
        let body = String::from_utf8(body.to_vec()).unwrap();
        Some((head.method.to_string(), head.path.to_owned(), body, length))
    }

    #[test]
    fn plain_requests_end_where_their_length_says() {
        let get = "GET /gate HTTP/1.1\r\nHost: x\r\nX-Forwarded-Uri: /a?b\r\n\r\n";
        assert_eq!(plain(get), Some(("GET".into(), "/gate".into(), String::new(), get.len())));
        assert_eq!(plain(&format!("{get}GET /")), Some(("GET".into(), "/gate".into(), String::new(), get.len())));
        let post = "POST /v1/take HTTP/1.1\r\ncontent-LENGTH: 2\r\nConnection: Keep-Alive\r\n\r\n{}";
        assert_eq!(plain(&format!("{post}POST")), Some(("POST".into(), "/v1/take".into(), "{}".into(), post.len())));
        for path in ["/gate/403", "/gate?a=b%20c", "/v1/limit", "/v1/peek", "/v1/record", "/v1/refund"] {
            assert!(plain(&format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).is_some(), "{path}");
        }
    }

    #[test]
    fn all_else_is_left_to_hyper() {
        let post = "POST /v1/take HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";
        for cut in 0..post.len() {
            assert_eq!(plain(&post[..cut]), None, "{cut}");
        }
        for target in [
            "/",
            "/gate/",
            "/gate/500",
            "/gate/4030",
            "/gates",
            "/v1/takes",
            "/v1/bans",
            "*",
            "http://x/gate",
            "/gate?a#b",
            "/gate?\"",
            "/gate#",
        ] {
            assert_eq!(plain(&format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n")), None, "{target}");
        }
        for head in [
            "HEAD /gate HTTP/1.1\r\n",
            "PUT /gate HTTP/1.1\r\n",
            "GET /gate HTTP/1.0\r\n",
            "GET /gate HTTP/2.0\r\n",
            "GET /gate\r\n",
            "GET /gate HTTP/1.1\r\nconnection: close\r\n",
            "GET /gate HTTP/1.1\r\nConnection: keep-alive, upgrade\r\n",
            "GET /gate HTTP/1.1\r\nupgrade: h2c\r\n",
            "GET /gate HTTP/1.1\r\ncontent-length: 1\r\n",
            "POST /v1/take HTTP/1.1\r\n",
            "POST /v1/take HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n",
            "POST /v1/take HTTP/1.1\r\ntransfer-encoding: chunked\r\n",
            "POST /v1/take HTTP/1.1\r\nTransfer-Encoding: chunked\r\ncontent-length: 2\r\n",
            "POST /v1/take HTTP/1.1\r\ntrailer: x\r\ncontent-length: 2\r\n",
            "POST /v1/take HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 2\r\n",
            "POST /v1/take HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n",
            "POST /v1/take HTTP/1.1\r\ncontent-length: 2, 2\r\n",
            "POST /v1/take HTTP/1.1\r\ncontent-length: +2\r\n",
            "POST /v1/take HTTP/1.1\r\ncontent-length: 0x2\r\n",
            "POST /v1/take HTTP/1.1\r\ncontent-length:\r\n",
            "POST /v1/take HTTP/1.1\r\ncontent-length: 1001\r\n",
            "POST /v1/take HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n",
            "POST /v1/take HTTP/1.1\r\n content-length: 2\r\n",
            "POST /v1/take HTTP/1.1\r\ncontent-length : 2\r\n",
        ] {
            assert_eq!(plain(&format!("{head}\r\n{}", "x".repeat(2000))), None, "{head}");
        }
        let many = "a: b\r\n".repeat(MAX_HEADERS + 1);
        assert_eq!(plain(&format!("GET /gate HTTP/1.1\r\n{many}\r\n")), None);
    }
}
