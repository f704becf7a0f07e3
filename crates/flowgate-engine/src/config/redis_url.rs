//! Addresses of Redis: `redis://`, `rediss://` or `unix://`, perhaps with a user and a password.

use std::fmt;
use std::ops::Range;

use super::render::HIDDEN;

/// A valid address of a Redis server. It may hold a password, which `Display` and `Debug` hide.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    text: String,
    /// The hidden parts of the text, in order: the password, and the values of parameters other than `db`.
    secrets: Vec<Range<usize>>,
}

impl RedisUrl {
    /// Reads an address. A bare `host:port` means `redis://`.
    ///
    /// # Errors
    /// A description of a valid address, which repeats nothing of the text.
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
        let values = parameters(&full).filter(|(name, _)| *name != "db").map(|(_, value)| value);
        let secrets = joined(password.into_iter().chain(values).collect());
        Ok(RedisUrl { text: full, secrets })
    }

    /// A parameter that looks like a login. It has no effect: a login belongs before the host.
    pub(crate) fn login_parameter(&self) -> Option<&'static str> {
        const LOGIN: [&str; 4] = ["password", "pass", "username", "user"];
        LOGIN.into_iter().find(|login| parameters(&self.text).any(|(name, _)| name == *login))
    }

    /// The address with its password, for the connection.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// True if it has a user, a password or parameters.
    pub(crate) fn has_login(&self) -> bool {
        self.text.contains(['@', '?'])
    }

    /// True if it names a host, perhaps with a port, and nothing else.
    pub(crate) fn is_host_and_port(&self) -> bool {
        let rest = self.text.split_once("://").map_or("", |(_, rest)| rest);
        !rest.contains(['/', '@', '?'])
    }

    /// True if it was copied from an output that hides its secrets.
    pub(crate) fn is_hidden(&self) -> bool {
        self.secrets.iter().any(|range| &self.text[range.clone()] == HIDDEN)
    }
}

/// The parameters of an address, each with the place of its value.
fn parameters(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let start = text.find('?').map_or(text.len(), |sign| sign + 1);
    let mut at = start;
    text[start..].split('&').filter_map(move |parameter| {
        let end = at + parameter.len();
        at = end + 1;
        let (name, value) = parameter.split_once('=')?;
        Some((name, end - value.len()..end))
    })
}

/// The same places in order, overlapping ones joined.
fn joined(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.sort_unstable_by_key(|place| place.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for place in places {
        match joined.last_mut() {
            Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
            _ => joined.push(place),
        }
    }
    joined
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
    /// Without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut from = 0;
        for secret in &self.secrets {
            write!(f, "{}{HIDDEN}", &self.text[from..secret.start])?;
            from = secret.end;
        }
        f.write_str(&self.text[from..])
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
        assert!(RedisUrl::parse("redis://h?password=***").unwrap().is_hidden());
    }

    #[test]
    fn parameters_are_shown_without_their_values() {
        let check = |text: &str, shown: &str| assert_eq!(RedisUrl::parse(text).unwrap().to_string(), shown);
        check("redis://h:1/0?password=s3cret", "redis://h:1/0?password=***");
        check("rediss://h?db=1&password=a=b&x=s3cret&", "rediss://h?db=1&password=***&x=***&");
        check("unix:///run/r?user=u&pass=s3cret", "unix:///run/r?user=***&pass=***");
        check("redis://u:word@h?password=s3cret", "redis://u:***@h?password=***");
        // An `@` in a parameter, or a `?` in a password, makes the hidden part longer, never shorter.
        check("redis://h/0?password=s3c@ret", "redis://h/0?password=***");
        check("redis://h:1/0?password=s3c@ret", "redis://h:***");
        check("redis://u:wo?rd@h", "redis://u:***@h");
        check("redis://u:wo?r=d@h", "redis://u:***");
        let login = |text: &str| RedisUrl::parse(text).unwrap().login_parameter();
        assert_eq!((login("redis://h?db=1&pass=x"), login("redis://u:p@h?db=1")), (Some("pass"), None));
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
