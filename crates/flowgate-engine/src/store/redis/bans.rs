//! Bans by hand, shared through Redis: a hash that every node reads again when its version has changed.
//!
//! State      The hash `PREFIX{bans}`: from whom a ban is on (field and value, however it was written) to the ban.
//! Rule       Whoever imposes or lifts a ban does so in Redis and has the whole table in the reply. The other nodes ask
//!            for the version from time to time, and read the table when it is another.
//! Bound      A ban is in force on other nodes as soon as they ask again.

use std::sync::Arc;

use flowgate::Time;

use super::decode::ReplyError;
use super::script::{BANS, ScriptCall};
use crate::bans::{BanOrder, BanOrderError, MAX_BANS, ManualBan};

/// What the reply to a call about bans says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedBans {
    /// The version of the table, to be handed to the next call.
    pub version: String,
    /// All bans; `None` where the version is the one that was known.
    pub bans: Option<Vec<ManualBan>>,
    /// What became of the order.
    pub result: BanResult,
}

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BanResult {
    /// The number of the ban, or how many were lifted; 0 where nothing was ordered.
    Done(u64),
    /// There are enough.
    Full,
}

/// A call about bans: what to ask, and what the reply means.
#[derive(Clone, Copy, Debug)]
pub struct BanCall<'a> {
    /// Before every key.
    pub prefix: &'a str,
    /// The version of the table that the node has; empty at first.
    pub known: &'a str,
}

impl BanCall<'_> {
    /// Reads the table, if it has changed.
    pub fn refresh(self) -> ScriptCall {
        self.start(b"get")
    }

    /// Imposes a ban, in place of one on the same field and value.
    ///
    /// # Errors
    /// When the value is neither a text nor addresses.
    pub fn impose(self, order: BanOrder<'_>, now: Time) -> Result<ScriptCall, BanOrderError> {
        let name = order.whom()?;
        let until = now + order.length;
        let mut call = self.start(b"set");
        call.args.push(name.as_bytes());
        call.args.number(millis(until));
        call.args.write(|text| {
            text.extend_from_slice(until.as_nanos().to_string().as_bytes());
            for part in [order.field, order.value, order.reason] {
                text.extend_from_slice(format!(" {}:{part}", part.len()).as_bytes());
            }
        });
        call.args.number(MAX_BANS as u64);
        call.args.number(now.as_nanos() / 1_000_000);
        Ok(call)
    }

    /// Lifts bans that were read before.
    pub fn lift<'b>(self, bans: impl IntoIterator<Item = &'b ManualBan>) -> ScriptCall {
        let mut call = self.start(b"del");
        for ban in bans {
            // What was read was imposed, so it can be named.
            if let Ok(name) = ban.whom() {
                call.args.push(name.as_bytes());
            }
        }
        call
    }

    fn start(self, what: &[u8]) -> ScriptCall {
        let mut call = ScriptCall::new(&BANS);
        call.keys.write(|key| super::keys::write(key, self.prefix, b"bans", ""));
        call.args.push(what);
        call.args.push(self.known.as_bytes());
        call
    }
}

impl SharedBans {
    /// What the reply to a call says; `known` is the version that was handed to it. A ban that cannot be read, because
    /// another version of Flowgate wrote it, is left out.
    ///
    /// # Errors
    /// When it is not the script's.
    pub fn read(known: &str, reply: &[Vec<u8>]) -> Result<SharedBans, ReplyError> {
        let [version, result, rest @ ..] = reply else { return Err(ReplyError::Malformed) };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| ReplyError::Malformed);
        let (version, result) = (text(version)?, text(result)?);
        let result = match result.as_str() {
            "full" => BanResult::Full,
            number => BanResult::Done(number.parse().map_err(|_| ReplyError::Malformed)?),
        };
        let bans = (version != known).then(|| {
            let mut bans: Vec<ManualBan> = rest.chunks_exact(2).filter_map(|pair| ban(&pair[1])).collect();
            bans.sort_by_key(|ban| ban.id);
            bans
        });
        Ok(SharedBans { version, bans, result })
    }
}

/// `id millis nanos len:field len:value len:reason`
fn ban(bytes: &[u8]) -> Option<ManualBan> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut words = text.splitn(4, ' ');
    let (id, _, until, mut rest) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let mut part = || -> Option<Arc<str>> {
        let (length, from) = rest.trim_start_matches(' ').split_once(':')?;
        let length: usize = length.parse().ok()?;
        let part = from.get(..length)?;
        rest = &from[length..];
        Some(part.into())
    };
    let (field, value, reason) = (part()?, part()?, part()?);
    Some(ManualBan { id: id.parse().ok()?, field, value, until: Time::from_nanos(until.parse().ok()?), reason })
}

fn millis(time: Time) -> u64 {
    time.as_nanos().div_ceil(1_000_000)
}

#[cfg(test)]
mod tests {
    use flowgate::Span;

    use super::*;

    #[test]
    fn a_ban_is_read_as_it_was_written() {
        let call = BanCall { prefix: "fg:", known: "" };
        let order = BanOrder { field: "user agent", value: "bad: bot 5:x", length: Span::from_secs(5), reason: "" };
        let now = Time::from_secs(100);
        let call = call.impose(order, now).unwrap();
        assert_eq!(call.keys().next(), Some(b"fg:{bans}".as_slice()));
        let args: Vec<&[u8]> = call.args().collect();
        let stored = [b"7 105000 ".as_slice(), args[4]].concat();
        let found = ban(&stored).unwrap();
        assert_eq!((found.id, &*found.field, &*found.value, &*found.reason), (7, "user agent", "bad: bot 5:x", ""));
        assert_eq!(found.until, now + Span::from_secs(5));
    }

    #[test]
    fn one_network_has_one_name() {
        let order = |value| BanOrder { field: "ip", value, length: Span::from_secs(1), reason: "" };
        assert_eq!(order("10.9.9.9/8").whom(), order("10.0.0.0/8").whom());
        assert_ne!(order("10.0.0.0/8").whom(), order("10.0.0.0/9").whom());
        assert_ne!(order("10.0.0.0/8").whom(), BanOrder { field: "x", ..order("10.0.0.0/8") }.whom());
        assert!(order("").whom().is_err());
    }
}
