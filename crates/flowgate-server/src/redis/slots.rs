//! Slots: which part of a cluster a key belongs to, and which server has that part.
//!
//! Rule       A key's slot is the CRC-16 of its hash tag, what stands between its first brace and the next closing one,
//!            or of all of it where there is none, modulo [`SLOTS`].

use super::wire::Reply;

/// The number of slots of a cluster.
pub(crate) const SLOTS: u16 = 16384;

/// The slot of a key.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    crc16(tag_of(key)) % SLOTS
}

fn tag_of(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        Some(length) if length > 0 => &rest[..length],
        _ => key,
    }
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = 0_u16;
    for &byte in bytes {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
        }
    }
    crc
}

/// The slots of a server, as the cluster lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) first: u16,
    pub(crate) last: u16,
    /// The host of the server; `None`: the server that was asked.
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
}

/// The slots of the servers that take writes, in the reply to `CLUSTER SLOTS`; `None`: the reply has another form.
pub(crate) fn parts(reply: &Reply) -> Option<Vec<Part>> {
    let Reply::List(ranges) = reply else { return None };
    let part = |range: &Reply| {
        let Reply::List(range) = range else { return None };
        let [Reply::Integer(first), Reply::Integer(last), Reply::List(server), ..] = range.as_slice() else {
            return None;
        };
        let [host, Reply::Integer(port), ..] = server.as_slice() else { return None };
        let host = match host {
            Reply::Text(host) if !host.is_empty() => Some(String::from_utf8(host.to_vec()).ok()?),
            _ => None,
        };
        let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
        let fits = first <= last && last < SLOTS;
        fits.then_some(Part { first, last, host, port: u16::try_from(*port).ok()? })
    };
    ranges.iter().map(part).collect()
}

/// A server that an error points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// The slot belongs to that server now.
    Moved { slot: u16, host: Option<String>, port: u16 },
    /// The slot is moving, and this key may already be on that server. Only this command is to be sent there.
    Ask { host: Option<String>, port: u16 },
    /// Some keys are on one server and some on another: the command is sent again after a pause.
    Nowhere,
}

/// Where an error says that a command belongs. The server has not carried the command out, so it runs only once.
pub(crate) fn elsewhere(error: &str) -> Option<Elsewhere> {
    let mut words = error.split(' ');
    let kind = words.next()?;
    // A long log has a key of its own, which may move before its subject does. The script then counts nothing.
    if kind == "TRYAGAIN" || error.contains("attempted to access a non local key") {
        return Some(Elsewhere::Nowhere);
    }
    if !matches!(kind, "MOVED" | "ASK") {
        return None;
    }
    let slot = words.next()?.parse().ok().filter(|slot| *slot < SLOTS)?;
    let (host, port) = words.next()?.rsplit_once(':')?;
    let (host, port) = (Some(host.to_owned()).filter(|host| !host.is_empty()), port.parse().ok()?);
    Some(match kind {
        "MOVED" => Elsewhere::Moved { slot, host, port },
        _ => Elsewhere::Ask { host, port },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_slots_that_redis_gives_them() {
        // The slots that `CLUSTER KEYSLOT` returns.
        for (key, slot) in [("123456789", 12739), ("foo", 12182), ("{foo}bar", 12182), ("a{foo}{bar}", 12182)] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
        assert_eq!(slot_of(b"{}foo"), crc16(b"{}foo") % SLOTS);
        assert_eq!(slot_of(b"{foo"), crc16(b"{foo") % SLOTS);
        assert_eq!(slot_of(b"fg:{s:user=42}:reply"), slot_of(b"s:user=42"));
    }

    #[test]
    fn the_parts_of_a_cluster() {
        let server = |host: &str, port| {
            Reply::List(vec![
                Reply::Text(host.as_bytes().into()),
                Reply::Integer(port),
                Reply::Text(b"id"[..].into()),
                Reply::List(vec![]),
            ])
        };
        let range =
            |first, last, server| Reply::List(vec![Reply::Integer(first), Reply::Integer(last), server, Reply::Nil]);
        let part = |first, last, host: Option<&str>, port| Part { first, last, host: host.map(str::to_owned), port };
        let reply = Reply::List(vec![range(0, 5460, server("::1", 7000)), range(5461, 16383, server("", 7001))]);
        let expected = [part(0, 5460, Some("::1"), 7000), part(5461, 16383, None, 7001)];
        assert_eq!(parts(&reply), Some(expected.to_vec()));
        for wrong in [Reply::Nil, Reply::List(vec![Reply::Nil]), Reply::List(vec![range(5, 4, server("h", 1))])] {
            assert_eq!(parts(&wrong), None);
        }
    }

    #[test]
    fn errors_that_point_elsewhere() {
        let host = || Some("10.0.0.1".to_owned());
        let moved = Elsewhere::Moved { slot: 3999, host: host(), port: 6381 };
        assert_eq!(elsewhere("MOVED 3999 10.0.0.1:6381"), Some(moved));
        assert_eq!(elsewhere("MOVED 1 :7"), Some(Elsewhere::Moved { slot: 1, host: None, port: 7 }));
        assert_eq!(elsewhere("ASK 3999 10.0.0.1:6381"), Some(Elsewhere::Ask { host: host(), port: 6381 }));
        assert_eq!(elsewhere("TRYAGAIN Multiple keys request"), Some(Elsewhere::Nowhere));
        let elsewhere_in_script =
            "ERR Script attempted to access a non local key in a cluster node script: 4a, on @user_script:1.";
        assert_eq!(elsewhere(elsewhere_in_script), Some(Elsewhere::Nowhere));
        for other in ["", "MOVED", "MOVED 99999 h:1", "MOVED 1 h", "MOVED 1 h:x", "ERR MOVED 1 h:1"] {
            assert_eq!(elsewhere(other), None, "{other}");
        }
    }
}
