//! Where Redis lives: `redis://`, `rediss://` or `unix://`, perhaps with a user and a password.

use std::fmt;

use super::render::HIDDEN;

/// A checked address of a Redis server. It may hold a password, so it shows itself without.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    text: String,
    /// Where the password stands in the text.
    password: Option<std::ops::Range<usize>>,
}

impl RedisUrl {
    /// Reads an address; a bare `host:port` is one without TLS.
    ///
    /// # Errors
    /// What would fit, in words that repeat nothing of the text.
    pub fn parse(text: &str) -> Result<RedisUrl, &'static str> {
        const SCHEMES: &str = "an address that starts with redis://, rediss:// (TLS) or unix://";
        let is_bare = !text.contains(['/', '@']);
        let full = if is_bare { format!("redis://{text}") } else { text.to_owned() };
        let (scheme, rest) = full.split_once("://").ok_or(SCHEMES)?;
        let offset = scheme.len() + "://".len();
        match scheme {
            "redis" | "rediss" => check_host(rest)?,
            "unix" | "redis+unix" => check_path(rest)?,
            _ => return Err(SCHEMES),
        }
        let password = rest.rsplit_once('@').and_then(|(user, _)| {
            let colon = user.find(':')?;
            Some(offset + colon + 1..offset + user.len())
        });
        Ok(RedisUrl { text: full, password })
    }

    /// The address with its password, for the one who connects.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Whether it is a hidden address, copied from where it was shown.
    pub(crate) fn is_hidden(&self) -> bool {
        self.password.as_ref().is_some_and(|range| &self.text[range.clone()] == HIDDEN)
    }
}

fn check_host(rest: &str) -> Result<(), &'static str> {
    let after_user = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let without_query = after_user.split_once('?').map_or(after_user, |(address, _)| address);
    let (address, database) = without_query.split_once('/').unwrap_or((without_query, ""));
    if !database.is_empty() && database.parse::<u32>().is_err() {
        return Err("the number of a database after the slash, such as /0");
    }
    let port = match address.strip_prefix('[') {
        Some(v6) => {
            let (host, rest) = v6.split_once(']').ok_or("a closing bracket after the IPv6 address")?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| "an IPv6 address between the brackets")?;
            rest.strip_prefix(':')
        }
        None => {
            let (host, port) = match address.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (address, None),
            };
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if host.is_empty() || !host.bytes().all(fits) {
                return Err("a host such as redis://127.0.0.1:6379 (an IPv6 address in brackets)");
            }
            port
        }
    };
    match port {
        Some(port) if port.parse::<u16>().is_err() => Err("a port from 0 to 65535 after the colon"),
        _ => Ok(()),
    }
}

fn check_path(rest: &str) -> Result<(), &'static str> {
    let path = rest.rsplit_once('@').map_or(rest, |(_, path)| path);
    if path.starts_with('/') { Ok(()) } else { Err("an absolute path such as unix:///run/redis.sock") }
}

impl fmt::Display for RedisUrl {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.password {
            Some(range) => write!(f, "{}{HIDDEN}{}", &self.text[..range.start], &self.text[range.end..]),
            None => f.write_str(&self.text),
        }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_show_themselves_without_their_password() {
        let check = |text: &str, shown: &str| assert_eq!(RedisUrl::parse(text).unwrap().to_string(), shown);
        check("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0");
        check("10.0.0.1:6379", "redis://10.0.0.1:6379");
        check("rediss://user:pa:ss@w@redis.example:6380/2", "rediss://user:***@redis.example:6380/2");
        check("redis://:secret@[::1]:6379", "redis://:***@[::1]:6379");
        check("redis://user@host", "redis://user@host");
        check("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1");
        assert_eq!(format!("{:?}", RedisUrl::parse("redis://u:p@h").unwrap()), "redis://u:***@h");
        assert!(RedisUrl::parse("redis://u:***@h").unwrap().is_hidden());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "http://x",
            "redis://",
            "redis://:6379",
            "redis://h:port",
            "redis://h:70000",
            "redis://h/db",
            "redis://[::1",
            "redis://[x]:1",
            "redis://a b",
            "unix://run",
            "redis://h:1:2",
            "redis//u:p@h",
        ] {
            assert!(RedisUrl::parse(text).is_err(), "{text}");
        }
    }
}
