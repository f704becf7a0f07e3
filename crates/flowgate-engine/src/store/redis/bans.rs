//! Bans by hand, shared through Redis: what to ask of it, and what its replies mean.
//!
//! State      Four keys `PREFIX{bans}`, see `bans.lua`. Every node has a [copy](BanCopy) of the bans.
//! Rule       A ban is imposed and lifted in Redis, at Redis's time, and in the copy of the node that asked for it. The
//!            other nodes ask from time to time for what has changed since the version that they have read.
//! Bound      A ban is in force on other nodes as soon as they ask again. A change costs the same for any number of
//!            bans; a reply has at most [`MAX_BANS_IN_REPLY`] bans.

mod copy;

use flowgate::{Span, Time};

use super::decode::ReplyError;
use super::encode::ScriptTime;
use super::script::{BANS, ScriptCall};
use crate::bans::{BanAuthor, BanId, BanOrder, BanOrderError, MAX_BANS, MAX_BANS_BYTES, ManualBan, target_name};

pub use copy::BanCopy;

/// The most bans in a reply: half a megabyte if all texts are as long as they may be.
const MAX_BANS_IN_REPLY: u64 = 256;

/// The longest ban, about 140 years: every instant stays a whole number of microseconds below 2^53.
const LONGEST_BAN: Span = Span::from_micros(1 << 52);

/// How to call the script of bans.
#[derive(Clone, Copy, Debug)]
pub struct BanCall<'a> {
    /// The prefix of every key.
    pub prefix: &'a str,
    /// Whose clock decides.
    pub time: ScriptTime,
}

impl BanCall<'_> {
    /// Reads what has changed since the copy was brought up to date.
    pub fn read(self, copy: &BanCopy) -> ScriptCall {
        let mut call = self.start(b"get");
        call.args.push(copy.known_epoch().as_bytes());
        call.args.number(copy.read);
        call.args.number(copy.floor);
        call.args.number(MAX_BANS_IN_REPLY);
        call
    }

    /// Imposes a ban, in place of one on the same target.
    ///
    /// # Errors
    /// When the order makes no sense, or one of its texts is too long.
    pub fn impose(self, order: BanOrder<'_>, id: BanId) -> Result<ScriptCall, BanOrderError> {
        order.check_sizes()?;
        let name = target_name(order.field, order.value)?;
        let mut call = self.start(b"set");
        call.args.push(name.as_bytes());
        call.args.push(id.to_string().as_bytes());
        call.args.number(order.length.min(LONGEST_BAN).as_micros_ceil());
        call.args.number(order.bytes() as u64);
        call.args.write(|text| {
            let [by, from] = BanAuthor::texts(order.author);
            for part in [order.field, order.value, order.reason, by, from] {
                text.extend_from_slice(format!("{}:{part} ", part.len()).as_bytes());
            }
        });
        call.args.number(MAX_BANS as u64);
        call.args.number(MAX_BANS_BYTES as u64);
        Ok(call)
    }

    /// Lifts the ban of a field's value, if it is the one of that id.
    ///
    /// # Errors
    /// If no ban could have that value.
    pub fn lift(self, field: &str, value: &str, id: Option<BanId>) -> Result<ScriptCall, BanOrderError> {
        let name = target_name(field, value)?;
        let mut call = self.start(b"del");
        call.args.push(name.as_bytes());
        call.args.push(id.map(|id| id.to_string()).unwrap_or_default().as_bytes());
        Ok(call)
    }

    fn start(self, what: &[u8]) -> ScriptCall {
        let mut call = ScriptCall::new(&BANS);
        for key in ["", ":order", ":ends", ":lifted"] {
            call.keys.write(|out| super::keys::write(out, self.prefix, b"bans", key));
        }
        match self.time.micros() {
            None => call.args.push(b""),
            Some(micros) => call.args.number(micros),
        }
        call.args.push(what);
        call
    }
}

/// The reply to a `set` or a `del`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChangeReply {
    now: Time,
    epoch: String,
    version: u64,
    result: ChangeResult,
    until: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeResult {
    Done,
    NoSuchBan,
    TooMany,
    TooMuchText,
}

impl ChangeReply {
    fn read(reply: &[Vec<u8>]) -> Result<ChangeReply, ReplyError> {
        let [now, epoch, version, result, until] = reply else { return Err(ReplyError::Malformed) };
        let result = match result.as_slice() {
            b"done" => ChangeResult::Done,
            b"none" => ChangeResult::NoSuchBan,
            b"bans" => ChangeResult::TooMany,
            b"bytes" => ChangeResult::TooMuchText,
            _ => return Err(ReplyError::Malformed),
        };
        let (now, version, until) = (number(now)?, number(version)?, number(until)?);
        let epoch = text(epoch)?.to_owned();
        Ok(ChangeReply { now: Time::from_micros(now), epoch, version, result, until: Time::from_micros(until) })
    }
}

/// The reply to a `get`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Page {
    now: Time,
    epoch: String,
    /// The page has the changes after this version.
    from: u64,
    /// The page has the changes up to this version.
    version: u64,
    floor: u64,
    /// The reading starts anew: a ban of the copy that no page has is gone.
    whole: bool,
    more: bool,
    changes: Vec<Change>,
}

/// The new state of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    name: String,
    /// `None` where the ban was lifted, or cannot be read because another version of Flowgate wrote it.
    ban: Option<ManualBan>,
}

impl Page {
    fn read(reply: &[Vec<u8>]) -> Result<Page, ReplyError> {
        let [now, epoch, from, version, floor, whole, more, rest @ ..] = reply else {
            return Err(ReplyError::Malformed);
        };
        let change = |parts: &[Vec<u8>]| -> Result<Change, ReplyError> {
            Ok(Change { name: text(&parts[0])?.to_owned(), ban: ban(&parts[1]) })
        };
        Ok(Page {
            now: Time::from_micros(number(now)?),
            epoch: text(epoch)?.to_owned(),
            from: number(from)?,
            version: number(version)?,
            floor: number(floor)?,
            whole: number(whole)? == 1,
            more: number(more)? == 1,
            changes: rest.chunks_exact(2).map(change).collect::<Result<_, _>>()?,
        })
    }
}

/// `bytes end id len:field len:value len:reason len:right len:address`; earlier versions end after the reason.
fn ban(bytes: &[u8]) -> Option<ManualBan> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut words = text.splitn(4, ' ');
    let (_, until, id, mut rest) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let mut part = || {
        let (length, from) = rest.split_once(':')?;
        let length: usize = length.parse().ok()?;
        let part = from.get(..length)?;
        rest = from.get(length + 1..)?;
        Some(part)
    };
    let [field, value, reason] = [part()?.into(), part()?.into(), part()?.into()];
    let author = BanAuthor::from_texts([part().unwrap_or_default(), part().unwrap_or_default()]);
    let until = Time::from_micros(until.parse().ok()?);
    Some(ManualBan { id: id.parse().ok()?, field, value, since: None, until, reason, author })
}

fn text(bytes: &[u8]) -> Result<&str, ReplyError> {
    std::str::from_utf8(bytes).map_err(|_| ReplyError::Malformed)
}

fn number(bytes: &[u8]) -> Result<u64, ReplyError> {
    text(bytes)?.parse().map_err(|_| ReplyError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ban_is_read_as_it_was_written() {
        let call = BanCall { prefix: "fg:", time: ScriptTime::Redis };
        let order = BanOrder {
            field: "user agent",
            value: "bad: bot 5:x",
            length: Span::from_secs(5),
            reason: "",
            author: None,
        };
        let id: BanId = "h-3f0k2m9qav-7".parse().unwrap();
        let call = call.impose(order, id).unwrap();
        let keys: Vec<&[u8]> = call.keys().collect();
        assert_eq!(keys, [b"fg:{bans}".as_slice(), b"fg:{bans}:order", b"fg:{bans}:ends", b"fg:{bans}:lifted"]);
        let args: Vec<&[u8]> = call.args().collect();
        assert_eq!(&args[..6], [b"".as_slice(), b"set", b"10:user agent=bad: bot 5:x", args[3], b"5000000", b"22"]);
        let stored = [b"22 105000000 h-3f0k2m9qav-7 ".as_slice(), args[6]].concat();
        let found = ban(&stored).unwrap();
        assert_eq!((found.id, &*found.field, &*found.value, &*found.reason), (id, "user agent", "bad: bot 5:x", ""));
        assert_eq!(found.until, Time::from_secs(105));
        assert_eq!(ban(b"7 105000 1700 4:user 2:42 0:"), None, "not an id of ours");
    }

    #[test]
    fn a_ban_tells_its_author_unless_an_earlier_version_wrote_it() {
        let author = BanAuthor { by: "admin token".into(), from: None };
        let order =
            BanOrder { field: "user", value: "7", length: Span::from_secs(5), reason: "a b", author: Some(&author) };
        let call = BanCall { prefix: "fg:", time: ScriptTime::Redis };
        let call = call.impose(order, "h-3f0k2m9qav-7".parse().unwrap()).unwrap();
        let args: Vec<&[u8]> = call.args().collect();
        let stored = [b"19 105000000 h-3f0k2m9qav-7 ".as_slice(), args[6]].concat();
        assert_eq!((args[5], ban(&stored).unwrap().author), (b"19".as_slice(), Some(author)));
        let earlier = ban(b"8 105000000 h-3f0k2m9qav-7 4:user 1:7 3:a b ").unwrap();
        assert_eq!((&*earlier.reason, earlier.author), ("a b", None));
    }

    #[test]
    fn what_is_too_long_is_not_sent() {
        let call = BanCall { prefix: "fg:", time: ScriptTime::Redis };
        let long = "x".repeat(1025);
        let order = BanOrder { field: "user", value: "42", length: Span::from_secs(5), reason: &long, author: None };
        let wrong = call.impose(order, "h-3f0k2m9qav-7".parse().unwrap()).unwrap_err();
        assert_eq!(wrong.to_string(), "reason: 1025 bytes, expected at most 1024");
    }
}
