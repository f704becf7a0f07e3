//! Counts the wrong secrets of each address within a minute.
//!
//! Rule       The first [`FREE_ATTEMPTS`] wrong secrets of an address within [`ATTEMPT_WINDOW`] are answered at once.
//!            Each further one is answered after [`REPLY_PAUSE`], and the connection is closed. A right secret is not
//!            looked up here, so other clients at the same address (a proxy, a local user) cannot delay it.
//! State      For each address the start of its minute and the wrong secrets since. IPv6 addresses count by their /64,
//!            the network of one customer. All clients of unix sockets count as one address.
//! Bound      [`ADDRESS_SETS`] times [`ADDRESSES_PER_SET`] addresses. In a full set, a new address replaces the one
//!            with the fewest wrong secrets. A random key decides which addresses share a set.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use flowgate::{Span, Time};

use crate::listener::Peer;
use crate::lock::Lock;

/// The wrong secrets of an address that are answered at once. A person who mistypes a password stays below this number,
/// and so does a fleet that restarts with an old password.
const FREE_ATTEMPTS: u32 = 10;
const ATTEMPT_WINDOW: Span = Span::from_secs(60);

/// The delay of the answer to a wrong secret, once its address has given too many.
pub(crate) const REPLY_PAUSE: Duration = Duration::from_secs(1);

const ADDRESS_SETS: usize = 512;
const ADDRESSES_PER_SET: usize = 8;

/// An address as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// An IPv4 address, or the first 64 bits of an IPv6 address. IPv4 addresses in IPv6 form count as IPv4.
    Address(IpAddr),
    Unix,
}

impl From<Peer> for Source {
    fn from(peer: Peer) -> Source {
        match peer {
            Peer::Address(address) => address.ip().into(),
            Peer::Unix => Source::Unix,
        }
    }
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Source {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() >> 64 << 64;
                Source::Address(IpAddr::V6(network.into()))
            }
            address => Source::Address(address),
        }
    }
}

/// When a wrong secret is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyTime {
    AtOnce,
    /// After [`REPLY_PAUSE`], as the last reply on its connection.
    AfterPause,
}

/// The addresses with wrong secrets in the last minute.
#[derive(Debug)]
pub(crate) struct WrongSecrets {
    hasher: RandomState,
    sets: Box<[Lock<[Option<SourceRecord>; ADDRESSES_PER_SET]>]>,
}

#[derive(Clone, Copy, Debug)]
struct SourceRecord {
    source: Source,
    since: Time,
    wrong: u32,
}

impl Default for WrongSecrets {
    fn default() -> WrongSecrets {
        WrongSecrets { hasher: RandomState::new(), sets: (0..ADDRESS_SETS).map(|_| Lock::default()).collect() }
    }
}

impl WrongSecrets {
    /// How long no further secret of `source` is compared: the rest of its minute, once it has given [`FREE_ATTEMPTS`]
    /// wrong secrets; `None`: it may give one now. For callers that refuse instead of answering late.
    pub(crate) fn wait(&self, source: Source, now: Time) -> Option<Span> {
        let entries = self.set(source).lock();
        let entry = entries.iter().flatten().find(|entry| entry.source == source)?;
        let passed = now.since(entry.since);
        let is_over = entry.wrong < FREE_ATTEMPTS || passed >= ATTEMPT_WINDOW;
        (!is_over).then(|| Span::from_nanos(ATTEMPT_WINDOW.as_nanos() - passed.as_nanos()))
    }

    /// Counts a wrong secret from `source` at a monotonic time.
    pub(crate) fn count(&self, source: Source, now: Time) -> ReplyTime {
        let mut entries = self.set(source).lock();
        for entry in entries.iter_mut() {
            if entry.is_some_and(|entry| now.since(entry.since) >= ATTEMPT_WINDOW) {
                *entry = None;
            }
        }
        let known = entries.iter().position(|entry| entry.is_some_and(|entry| entry.source == source));
        let fewest =
            || (0..ADDRESSES_PER_SET).min_by_key(|&way| entries[way].map_or(0, |entry| entry.wrong)).unwrap_or(0);
        let place = known.unwrap_or_else(fewest);
        let entry = match entries[place].filter(|entry| entry.source == source) {
            Some(entry) => SourceRecord { wrong: entry.wrong.saturating_add(1), ..entry },
            None => SourceRecord { source, since: now, wrong: 1 },
        };
        entries[place] = Some(entry);
        if entry.wrong > FREE_ATTEMPTS { ReplyTime::AfterPause } else { ReplyTime::AtOnce }
    }

    fn set(&self, source: Source) -> &Lock<[Option<SourceRecord>; ADDRESSES_PER_SET]> {
        &self.sets[self.hasher.hash_one(source) as usize % ADDRESS_SETS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(address: &str) -> Source {
        Peer::Address(address.parse().unwrap()).into()
    }

    #[test]
    fn ten_a_minute_are_answered_at_once() {
        let wrong = WrongSecrets::default();
        let (guest, other) = (source("192.0.2.1:1000"), source("192.0.2.2:1000"));
        for second in 0..10 {
            assert_eq!(wrong.count(guest, Time::from_secs(1_000 + second)), ReplyTime::AtOnce);
        }
        for second in 10..60 {
            assert_eq!(wrong.count(guest, Time::from_secs(1_000 + second)), ReplyTime::AfterPause);
        }
        assert_eq!(wrong.count(other, Time::from_secs(1_059)), ReplyTime::AtOnce);
        assert_eq!(wrong.count(guest, Time::from_secs(1_060)), ReplyTime::AtOnce, "a new minute");
    }

    #[test]
    fn after_ten_wrong_ones_an_address_waits_for_the_end_of_its_minute() {
        let wrong = WrongSecrets::default();
        let guest = source("192.0.2.1:1000");
        for second in 0..10 {
            assert_eq!(wrong.wait(guest, Time::from_secs(1_000 + second)), None);
            wrong.count(guest, Time::from_secs(1_000 + second));
        }
        assert_eq!(wrong.wait(guest, Time::from_secs(1_009)), Some(Span::from_secs(51)));
        assert_eq!(wrong.wait(guest, Time::from_secs(1_059)), Some(Span::from_secs(1)));
        assert_eq!(wrong.wait(guest, Time::from_secs(1_060)), None);
        assert_eq!(wrong.wait(source("192.0.2.2:1000"), Time::from_secs(1_009)), None);
    }

    #[test]
    fn an_address_is_counted_however_it_is_written_and_whatever_its_port() {
        assert_eq!(source("192.0.2.1:1"), source("192.0.2.1:2"));
        assert_eq!(source("192.0.2.1:1"), source("[::ffff:192.0.2.1]:2"));
        assert_ne!(source("192.0.2.1:1"), source("192.0.2.2:1"));
        assert_eq!(source("[2001:db8:1:2::1]:1"), source("[2001:db8:1:2:ffff::9]:2"));
        assert_ne!(source("[2001:db8:1:2::1]:1"), source("[2001:db8:1:3::1]:1"));
        assert_eq!(Source::from(Peer::Unix), Source::Unix);
    }

    #[test]
    fn many_addresses_take_no_more_memory_and_free_no_busy_one() {
        let wrong = WrongSecrets::default();
        let busy = source("192.0.2.1:1");
        let now = Time::from_secs(1_000);
        for _ in 0..=FREE_ATTEMPTS {
            wrong.count(busy, now);
        }
        for number in 0..100_000u32 {
            let crowd = Source::Address(IpAddr::V4((0x0a00_0000 + number).into()));
            assert_eq!(wrong.count(crowd, now), ReplyTime::AtOnce);
        }
        assert_eq!(wrong.count(busy, now), ReplyTime::AfterPause);
    }
}
