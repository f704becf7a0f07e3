//! Who asked whom: the words at the start of a line, of which the first may be the virtual host.
//!
//! ```text
//! 203.0.113.7 - ann [..                     client, identd, user
//! www.example.com:80 203.0.113.7 - ann [..  virtual host, client, identd, user
//! ```
//!
//! Rule       `name:port` is a virtual host, never a client; so is a name, or `-`, with an address behind it. Any other
//!            first word is the client: its address, or its name where the server looked that up.
//! Rule       An address with a port and no address behind it is a client's; the port, which differs for each of its
//!            connections, is left out.

use std::net::IpAddr;
use std::ops::Range;

use super::{Log, Unreadable};

const IDENTD: &str = "what identd said, mostly -";

/// Where they stand in the line; an empty range is absent.
pub(super) struct Who {
    pub(super) host: Range<usize>,
    pub(super) ip: Range<usize>,
}

#[inline]
pub(super) fn read(log: &mut Log<'_>, line: &str) -> Result<Who, Unreadable> {
    let first = log.word("an address")?;
    let second = log.word(IDENTD)?;
    if second.len() == 1 && memchr::memchr(b':', &line.as_bytes()[first.clone()]).is_none() {
        // Most lines.
        return Ok(Who { host: 0..0, ip: first });
    }
    tell_apart(log, line, [first, second])
}

fn tell_apart(log: &mut Log<'_>, line: &str, [first, second]: [Range<usize>; 2]) -> Result<Who, Unreadable> {
    let before_port = before_port(line, first.clone());
    let is_name_and_port = before_port.clone().is_some_and(|host| !is_address(&line[host]));
    let is_before_address = is_address(&line[second.clone()]) && !is_address(&line[first.clone()]);
    if is_before_address || is_name_and_port && &line[second.clone()] != "-" {
        log.word(IDENTD)?;
        return Ok(Who { host: first, ip: second });
    }
    Ok(match before_port {
        Some(_) if is_name_and_port => Who { host: first, ip: 0..0 },
        Some(address) => Who { host: 0..0, ip: address },
        None => Who { host: 0..0, ip: first },
    })
}

/// What stands in front of a port: `a` of `a:80`, `::1` of `[::1]:80`. An IPv6 address without brackets has none.
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
    // An address of one link names its zone, too.
    let address = word.split_once('%').map_or(word, |(address, _)| address);
    address.parse::<IpAddr>().is_ok()
}
