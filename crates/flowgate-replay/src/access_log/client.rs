//! The client and the virtual host: the words at the start of a line.
//!
//! ```text
//! 203.0.113.7 - ann [..                     client, identd, user
//! www.example.com:80 203.0.113.7 - ann [..  virtual host, client, identd, user
//! ```
//!
//! Rule       The first word is the virtual host if it is `name:port`, or if it is a name or `-` and an address
//!            follows. Any other first word is the client: its address, or the name that the server looked up.
//! Rule       An address with a port is the client if no address follows. The port is dropped, since each connection of
//!            a client has another.

use std::net::IpAddr;
use std::ops::Range;

use super::{Cursor, LineError};

const IDENTD: &str = "what identd said, mostly -";

/// The ranges of the line; an empty range is absent.
pub(super) struct Client {
    pub(super) host: Range<usize>,
    pub(super) ip: Range<usize>,
}

#[inline]
pub(super) fn read(cursor: &mut Cursor<'_>, line: &str) -> Result<Client, LineError> {
    let first = cursor.word("an address")?;
    let second = cursor.word(IDENTD)?;
    if second.len() == 1 && memchr::memchr(b':', &line.as_bytes()[first.clone()]).is_none() {
        // Most lines have an address and `-`.
        return Ok(Client { host: 0..0, ip: first });
    }
    distinguish(cursor, line, [first, second])
}

fn distinguish(cursor: &mut Cursor<'_>, line: &str, [first, second]: [Range<usize>; 2]) -> Result<Client, LineError> {
    let before_port = before_port(line, first.clone());
    let is_name_and_port = before_port.clone().is_some_and(|host| !is_address(&line[host]));
    let is_before_address = is_address(&line[second.clone()]) && !is_address(&line[first.clone()]);
    if is_before_address || is_name_and_port && &line[second.clone()] != "-" {
        cursor.word(IDENTD)?;
        return Ok(Client { host: first, ip: second });
    }
    Ok(match before_port {
        Some(_) if is_name_and_port => Client { host: first, ip: 0..0 },
        Some(address) => Client { host: 0..0, ip: address },
        None => Client { host: 0..0, ip: first },
    })
}

/// The host before a port: `a` of `a:80`, `::1` of `[::1]:80`. An IPv6 address without brackets has no port.
fn before_port(line: &str, word: Range<usize>) -> Option<Range<usize>> {
    let (host, port) = line[word.clone()].rsplit_once(':')?;
    if host.is_empty() || port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let end = word.start + host.len();
    if host.starts_with('[') && host.ends_with(']') {
        return Some(word.start + 1..end - 1);
    }
    (!host.contains(':')).then_some(word.start..end)
}

fn is_address(word: &str) -> bool {
    // A link-local address may name its zone: `fe80::1%eth0`.
    let address = word.split_once('%').map_or(word, |(address, _)| address);
    address.parse::<IpAddr>().is_ok()
}
