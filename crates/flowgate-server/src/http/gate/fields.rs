//! The fields of the original request: `ip`, `method`, `host`, `path`, `header.NAME` and `query.NAME`, each in one
//! spelling, and only those that somebody asks for.

use std::borrow::Cow;

use flowgate_engine::{Request, decoded_query, normalized_path};
use hyper::header::HeaderMap;
use smallvec::SmallVec;

use super::original::Original;

/// Names, as rules and bans have them, and values.
#[derive(Debug)]
pub(super) struct Fields<'a>(SmallVec<[(&'a str, Cow<'a, str>); 8]>);

impl<'a> Fields<'a> {
    /// Reads the fields of these names; what the request lacks, and what no request has, is left out.
    pub(super) fn read(
        original: &'a Original<'_>,
        headers: &'a HeaderMap,
        names: impl Iterator<Item = &'a str>,
    ) -> Fields<'a> {
        Fields(names.filter_map(|name| Some((name, value(original, headers, name)?))).collect())
    }

    pub(super) fn request(&self) -> Request<'_> {
        self.0.iter().map(|(name, value)| (*name, &**value)).collect()
    }
}

fn value<'a>(original: &'a Original<'_>, headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, str>> {
    match name {
        "ip" => Some(Cow::Owned(original.client.to_string())),
        "method" => Some(Cow::Borrowed(&original.method)),
        "host" => original.host.as_deref().map(one_host),
        "path" => original.uri.as_deref().map(|uri| normalized_path(path_and_query(uri))),
        _ => {
            if let Some(name) = name.strip_prefix("header.") {
                return headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
            }
            let name = name.strip_prefix("query.")?;
            let (_, query) = path_and_query(original.uri.as_deref()?).split_once('?')?;
            parameter(query, name)
        }
    }
}

/// A URI without a scheme and a host, which a client may write into its request line.
fn path_and_query(uri: &str) -> &str {
    match uri.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            rest.find(['/', '?']).map_or("/", |at| &rest[at..])
        }
        _ => uri,
    }
}

/// In lower case, without a port and without the dot that ends a name.
fn one_host(host: &str) -> Cow<'_, str> {
    let host = match host.rsplit_once(':') {
        // The colons of an IPv6 address are within brackets.
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) { host.to_ascii_lowercase().into() } else { host.into() }
}

/// The first value of a parameter.
fn parameter<'q>(query: &'q str, name: &str) -> Option<Cow<'q, str>> {
    query.split('&').find_map(|part| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        (decoded_query(key) == name).then(|| decoded_query(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling() {
        for (host, expected) in [
            ("Example.COM:8080", "example.com"),
            ("a.b.", "a.b"),
            ("[::1]:80", "[::1]"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
        ] {
            assert_eq!(one_host(host), expected);
        }
        for (uri, expected) in [
            ("/api?x=1", "/api?x=1"),
            ("http://host/api", "/api"),
            ("HTTP://host:1?x", "?x"),
            ("http://host", "/"),
            ("/redirect?to=http://host/", "/redirect?to=http://host/"),
            ("//api", "//api"),
        ] {
            assert_eq!(path_and_query(uri), expected);
        }
    }

    #[test]
    fn parameters_are_decoded() {
        let query = "a=1&b=x%20y+z&b=2&%61b=3&c&d=%zz&=e";
        for (name, value) in [
            ("a", Some("1")),
            ("b", Some("x y z")),
            ("ab", Some("3")),
            ("c", Some("")),
            ("d", Some("%zz")),
            ("e", None),
        ] {
            assert_eq!(parameter(query, name).as_deref(), value, "{name}");
        }
    }
}
