//! The client's address behind proxies, from the connection and `X-Forwarded-For`.
//!
//! Rule       Every proxy appends the address of its peer, so only the right end of the header can be trusted. The walk
//!            starts at the connection's peer and goes left while the current address is a trusted proxy. Entries that
//!            a client invents stand further left and are never reached.
//! Rule       An entry that is not an address ends the walk: its proxy hides its clients, and is counted for them.
//! Rule       An IPv6 client is counted by its network, since one client may use all addresses in it.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use crate::config::{Gate, ProxyAddresses};

/// The trusted proxies, and the prefix length by which IPv6 clients are counted.
///
/// ```
/// # use flowgate_engine::http::ClientAddresses; // flowgate_tower::ClientAddresses in a program with the layer
/// let addresses = ClientAddresses { trusted_proxies: vec!["10.0.0.0/8".parse()?], ..ClientAddresses::default() };
/// let client = addresses.find("10.0.0.2".parse()?, ["6.6.6.6, 203.0.113.7, 10.0.0.1"]);
/// assert_eq!(client.address.to_string(), "203.0.113.7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAddresses {
    /// The proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<ProxyAddresses>,
    /// The bits of an IPv6 address that tell clients apart.
    pub ipv6_prefix: u8,
}

/// The client behind a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The client's address. An IPv4 address mapped into IPv6 is the IPv4 address.
    pub address: IpAddr,
    /// The address by which it is counted: an IPv6 address without the bits beyond the prefix.
    pub counted: IpAddr,
    /// True if an untrusted peer sent `X-Forwarded-For`.
    pub untrusted_header: bool,
}

impl Default for ClientAddresses {
    /// Loopback is trusted; IPv6 clients are counted by /64.
    fn default() -> ClientAddresses {
        ClientAddresses::from(&Gate::default())
    }
}

impl From<&Gate> for ClientAddresses {
    fn from(gate: &Gate) -> ClientAddresses {
        ClientAddresses { trusted_proxies: gate.trusted_proxies.clone(), ipv6_prefix: gate.ipv6_prefix }
    }
}

impl ClientAddresses {
    /// The client behind a connection from `peer`. `forwarded` holds the values of all `X-Forwarded-For` headers.
    pub fn find<'h>(
        &self,
        peer: IpAddr,
        forwarded: impl IntoIterator<Item = &'h str, IntoIter: DoubleEndedIterator>,
    ) -> Client {
        let mut entries = forwarded.into_iter().rev().flat_map(|header| header.rsplit(',')).peekable();
        let mut address = peer.to_canonical();
        let untrusted_header = entries.peek().is_some() && !self.trusts(address);
        while self.trusts(address) {
            match entries.next().and_then(entry) {
                Some(further) => address = further,
                None => break,
            }
        }
        Client { address, counted: self.counted(address), untrusted_header }
    }

    /// The address by which a client is counted: an IPv6 address without the bits beyond the prefix.
    pub fn counted(&self, address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            v4 @ IpAddr::V4(_) => v4,
            IpAddr::V6(v6) => {
                let beyond = u128::MAX.checked_shr(self.ipv6_prefix.into()).unwrap_or(0);
                Ipv6Addr::from_bits(v6.to_bits() & !beyond).into()
            }
        }
    }

    /// True if the proxy at this address is trusted.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(address))
    }
}

/// The number of untrusted peers that are remembered, so that clients cannot fill the memory or the log.
const MAX_UNTRUSTED_PEERS: usize = 64;

/// Untrusted peers that sent `X-Forwarded-For`: the log warns of each once.
#[derive(Debug, Default)]
pub struct UntrustedPeers(Mutex<Vec<IpAddr>>);

impl UntrustedPeers {
    /// Remembers a peer. True if it is new.
    pub fn insert(&self, peer: IpAddr) -> bool {
        // A list that lost an entry repeats a warning.
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = peers.len() < MAX_UNTRUSTED_PEERS && !peers.contains(&peer);
        if is_new {
            peers.push(peer);
        }
        is_new
    }
}

/// An entry of the header: an address, perhaps with a port; an IPv6 address with a port is in brackets.
fn entry(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = match text.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?.0.parse().ok()?,
        None => match text.parse() {
            Ok(address) => address,
            // Only an IPv4 address can stand before a port without brackets.
            Err(_) => IpAddr::V4(text.rsplit_once(':')?.0.parse().ok()?),
        },
    };
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(peer: &str, forwarded: &[&str], address: &str) -> Client {
        let trusted_proxies = ["127.0.0.0/8", "::1", "10.0.0.0/8", "fd00::/8"].map(|text| text.parse().unwrap()).into();
        let addresses = ClientAddresses { trusted_proxies, ipv6_prefix: 64 };
        let client = addresses.find(peer.parse().unwrap(), forwarded.iter().copied());
        assert_eq!(client.address.to_string(), address, "{peer} {forwarded:?}");
        client
    }

    #[test]
    fn the_walk_goes_left_past_trusted_proxies_only() {
        check("203.0.113.7", &[], "203.0.113.7");
        check("10.0.0.1", &["203.0.113.7"], "203.0.113.7");
        check("10.0.0.1", &["1.1.1.1, 203.0.113.7, 10.0.0.2"], "203.0.113.7");
        check("10.0.0.1", &["1.1.1.1", "203.0.113.7", " 10.0.0.2 "], "203.0.113.7");
        check("::ffff:10.0.0.1", &["::ffff:203.0.113.7"], "203.0.113.7");
        check("fd00::1", &["2001:db8::9"], "2001:db8::9");
        check("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3");
        check("10.0.0.1", &[], "10.0.0.1");
    }

    #[test]
    fn whatever_a_client_writes_changes_nothing() {
        for own in ["1.1.1.1", "10.0.0.9", "127.0.0.1", "", ",", "unknown", "[", "1.1.1.1:", "\u{7f}", "::1, ::1"] {
            check("10.0.0.1", &[&format!("{own}, 203.0.113.7")], "203.0.113.7");
            check("10.0.0.1", &[own, "203.0.113.7"], "203.0.113.7");
            assert!(check("203.0.113.7", &[own], "203.0.113.7").untrusted_header);
        }
    }

    #[test]
    fn a_proxy_that_does_not_say_stands_for_its_clients() {
        check("10.0.0.1", &["203.0.113.7, unknown"], "10.0.0.1");
        check("10.0.0.1", &["203.0.113.7, unknown, 10.0.0.2"], "10.0.0.2");
        check("10.0.0.1", &[""], "10.0.0.1");
    }

    #[test]
    fn ports_and_brackets_are_stripped() {
        for entry in ["203.0.113.7:4711", "203.0.113.7"] {
            check("10.0.0.1", &[entry], "203.0.113.7");
        }
        for entry in ["[2001:db8::9]:4711", "[2001:db8::9]", "2001:db8::9"] {
            check("10.0.0.1", &[entry], "2001:db8::9");
        }
    }

    #[test]
    fn an_ipv6_client_is_counted_by_its_network() {
        assert_eq!(check("2001:db8:1:2:3:4:5:6", &[], "2001:db8:1:2:3:4:5:6").counted.to_string(), "2001:db8:1:2::");
        assert_eq!(check("203.0.113.7", &[], "203.0.113.7").counted.to_string(), "203.0.113.7");
        let whole = ClientAddresses { ipv6_prefix: 128, ..ClientAddresses::default() };
        assert_eq!(whole.find("2001:db8::6".parse().unwrap(), []).counted.to_string(), "2001:db8::6");
    }

    #[test]
    fn an_untrusted_peer_is_new_once_and_their_number_is_bounded() {
        let peers = UntrustedPeers::default();
        let peer = |number: u32| IpAddr::V4(std::net::Ipv4Addr::from_bits(number));
        assert_eq!((peers.insert(peer(1)), peers.insert(peer(1))), (true, false));
        assert_eq!((2..1000).filter(|&number| peers.insert(peer(number))).count(), MAX_UNTRUSTED_PEERS - 1);
    }

    #[test]
    fn a_header_of_a_trusted_peer_is_no_cause_for_a_warning() {
        assert!(!check("10.0.0.1", &["203.0.113.7"], "203.0.113.7").untrusted_header);
        assert!(!check("203.0.113.7", &[], "203.0.113.7").untrusted_header);
    }
}
