//! One spelling for a host: `Example.COM:8080` and `example.com.` are `example.com`, so no spelling slips past a rule.

use std::borrow::Cow;

/// The field of a request's host.
pub(crate) const HOST_FIELD: &str = "host";

/// The one spelling of a host: in lower case, without a port and without the dot that ends a name.
///
/// ```
/// use flowgate_engine::http::normalized_host;
///
/// assert_eq!(normalized_host("Example.COM:8080"), "example.com");
/// assert_eq!(normalized_host("[2001:DB8::1]:443"), "[2001:db8::1]");
/// ```
pub fn normalized_host(host: &str) -> Cow<'_, str> {
    let host = match host.rsplit_once(':') {
        // The colons of an IPv6 address are within brackets.
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) { host.to_ascii_lowercase().into() } else { host.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_spelling() {
        for (host, expected) in [
            ("Example.COM:8080", "example.com"),
            ("a.b.", "a.b"),
            ("[::1]:80", "[::1]"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
        ] {
            assert_eq!(normalized_host(host), expected);
        }
    }
}
