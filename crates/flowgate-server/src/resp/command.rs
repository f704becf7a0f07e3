//! The table of commands, and the function that answers each.
//!
//! A command translates its arguments, calls the service once and writes one reply. Its time is that of its batch.

mod connection;
mod decide;
mod keys;
mod number;
mod report;
mod throttle;
mod transaction;
mod unknown;
mod word;

use flowgate::Reading;

use super::decode::Command;
use super::error::Error;
use super::pending::Pending;
use super::reply::Reply;
use super::session::{End, Session};
use crate::service::{Answer, Operation};
pub(super) use connection::MAX_CLIENT_NAME_BYTES;
pub(super) use decide::{request, take_fields, write_answer, write_limit};
pub(super) use throttle::numbers as throttle_numbers;
use word::Word;

/// A command to answer: its client, its arguments, its time, and where its reply goes.
pub(crate) struct Call<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) command: Command<'a>,
    pub(crate) at: Reading,
    pub(crate) out: &'a mut Vec<u8>,
    /// Where a pending reply goes.
    pub(crate) pending: &'a mut Pending,
    /// Set to true if the commands behind this one are worth planning together.
    pub(crate) plans: &'a mut bool,
    /// The work of answering the command, as a number of usual commands.
    pub(crate) work: u32,
}

/// The kind of a command that a pipeline plans together (see [`planned`](super::planned)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planning {
    /// A take by the rules.
    Take,
    /// A take from an ad hoc key.
    Limit,
    /// A call of `CL.THROTTLE`.
    Throttle,
}

/// One row of the table: what `COMMAND` tells clients, and the function that answers.
#[derive(Debug)]
struct Spec {
    name: &'static str,
    word: Word,
    /// The number of words, the name included; a negative number is a minimum. As in Redis.
    arity: i32,
    flags: &'static [&'static str],
    /// The first and the last argument that is a key (0: none; -1: to the end).
    keys: (i32, i32),
    /// How a group of these commands is planned; `None`: they are not planned together.
    planning: Option<Planning>,
    /// True if the command needs the user `admin`, where `auth.admin_token` is set.
    admin: bool,
    /// The usage, for a command that Redis does not have.
    usage: &'static str,
    answer: fn(&mut Call<'_>) -> Result<(), Error>,
}

const fn spec(name: &'static str, arity: i32, answer: fn(&mut Call<'_>) -> Result<(), Error>) -> Spec {
    Spec {
        name,
        word: Word::new(name),
        arity,
        flags: &["fast"],
        keys: (0, 0),
        planning: None,
        admin: false,
        usage: "",
        answer,
    }
}

impl Spec {
    const fn on_keys(mut self, first: i32, last: i32, flags: &'static [&'static str]) -> Spec {
        self.keys = (first, last);
        self.flags = flags;
        self
    }

    const fn on_ad_hoc_key(self) -> Spec {
        self.on_keys(1, 1, &["write", "fast"])
    }

    const fn planned_as(mut self, planning: Planning) -> Spec {
        self.planning = Some(planning);
        self
    }

    const fn used_as(mut self, usage: &'static str) -> Spec {
        self.usage = usage;
        self
    }

    const fn for_admins(mut self) -> Spec {
        self.admin = true;
        self.on_keys(0, 0, &["write", "admin"])
    }

    /// Lets clients use the command before `AUTH`.
    const fn for_strangers(mut self) -> Spec {
        self.flags = &["fast", "no_auth"];
        self
    }

    fn fits(&self, words: usize) -> bool {
        let needed = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { words >= needed } else { words == needed }
    }
}

/// All commands, the most frequent first.
static COMMANDS: &[Spec] = &[
    // The command's own error shows its usage, so any number of arguments reaches it.
    spec("cl.throttle", -1, throttle::throttle).on_ad_hoc_key().planned_as(Planning::Throttle),
    spec("fg.take", -2, |call| decide::decide(call, Operation::Take))
        .on_keys(0, 0, &["write", "fast"])
        .planned_as(Planning::Take)
        .used_as("FG.TAKE cost field value [field value ...]"),
    spec("fg.limit", -3, decide::limit)
        .on_ad_hoc_key()
        .planned_as(Planning::Limit)
        .used_as("FG.LIMIT key limit [cost [TAKE|PEEK|RECORD|REFUND]]"),
    spec("fg.peek", -2, |call| decide::decide(call, Operation::Peek))
        .on_keys(0, 0, &["readonly", "fast"])
        .used_as("FG.PEEK cost field value [field value ...]"),
    spec("fg.record", -2, |call| decide::decide(call, Operation::Record))
        .on_keys(0, 0, &["write", "fast"])
        .used_as("FG.RECORD cost field value [field value ...]"),
    spec("fg.refund", -2, |call| decide::decide(call, Operation::Refund))
        .on_keys(0, 0, &["write", "fast"])
        .used_as("FG.REFUND cost field value [field value ...]"),
    spec("fg.ban", -4, decide::ban).for_admins().used_as("FG.BAN field value seconds [reason]"),
    spec("fg.unban", 3, decide::unban).for_admins().used_as("FG.UNBAN field value"),
    spec("ping", -1, connection::ping),
    spec("echo", 2, connection::echo),
    spec("del", -2, keys::del).on_keys(1, -1, &["write"]),
    spec("exists", -2, keys::exists).on_keys(1, -1, &["readonly", "fast"]),
    spec("ttl", 2, keys::ttl).on_keys(1, 1, &["readonly", "fast"]),
    spec("pttl", 2, keys::pttl).on_keys(1, 1, &["readonly", "fast"]),
    spec("hello", -1, connection::hello).for_strangers(),
    spec("auth", -2, connection::auth).for_strangers(),
    spec("quit", -1, connection::quit).for_strangers(),
    spec("reset", 1, connection::reset).for_strangers(),
    spec("multi", 1, transaction::multi),
    spec("exec", 1, transaction::exec),
    spec("discard", 1, transaction::discard),
    spec("select", 2, connection::select),
    spec("client", -2, connection::client),
    spec("command", -1, report::command),
    spec("info", -1, report::info),
    spec("config", -2, report::config),
    spec("dbsize", 1, keys::dbsize),
    spec("time", 1, report::time),
    spec("cluster", -2, connection::cluster),
    spec("asking", 1, connection::cluster),
    spec("readonly", 1, connection::cluster),
    spec("readwrite", 1, connection::cluster),
];

fn find(name: &[u8]) -> Option<&'static Spec> {
    let name = Word::read(name)?;
    COMMANDS.iter().find(|spec| spec.word == name)
}

/// How a command is planned; `None`: a pipeline does not plan it together with others.
#[inline]
pub(crate) fn planning(name: &[u8]) -> Option<Planning> {
    find(name)?.planning
}

/// The most words of a usual command.
const USUAL_WORDS: usize = 16;

/// The work of a command by its length, as a number of usual commands: most commands read each of their words.
#[inline]
pub(crate) fn work_by_length(arguments: usize) -> u32 {
    1 + (arguments / USUAL_WORDS) as u32
}

impl<'a> Call<'a> {
    /// Writes the one reply to this command.
    pub(crate) fn answer(&mut self) {
        if let Err(error) = self.try_answer() {
            self.reply().error(&error.to_string());
        }
    }

    fn try_answer(&mut self) -> Result<(), Error> {
        let spec = self.spec().inspect_err(|_| self.session.refuse())?;
        if self.session.transaction.is_some() && !transaction::DONE_AT_ONCE.contains(&spec.name) {
            return transaction::keep(self);
        }
        *self.plans |= spec.planning.is_some();
        (spec.answer)(self).map_err(|error| error.with_usage(spec.usage))
    }

    /// The row of the table, if this client may use the command with this number of arguments.
    #[inline]
    fn spec(&mut self) -> Result<&'static Spec, Error> {
        let Some(spec) = find(self.command.name()) else { return Err(self.refuse_unknown()) };
        if !self.session.authenticated && !spec.flags.contains(&"no_auth") {
            return Err(Error::Unauthenticated);
        }
        if spec.admin && !self.session.admin {
            return Err(Error::NotAdmin(spec.name));
        }
        if !spec.fits(self.command.count() + 1) {
            return Err(Error::Arity(spec.name).with_usage(spec.usage));
        }
        Ok(spec)
    }

    #[cold]
    fn refuse_unknown(&mut self) -> Error {
        let name = self.command.name();
        // A web page that makes a browser post commands here sends one of these first. All that follows is dropped.
        if name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:") {
            let cross_protocol = &self.session.shared.counters.cross_protocol;
            if cross_protocol.get() == 0 {
                tracing::warn!(
                    peer = ?self.session.peer,
                    "HTTP arrives at the port of the Redis protocol: gateways and HTTP clients ask the port of listen.http"
                );
            }
            cross_protocol.add(1);
            self.session.end = End::AtOnce;
        }
        if !self.session.authenticated {
            return Error::Unauthenticated;
        }
        unknown::refuse(&self.command)
    }

    /// Counts this command as `commands` usual ones, or as more by its length.
    fn takes(&mut self, commands: usize) {
        self.work = self.work.max(u32::try_from(commands).unwrap_or(u32::MAX));
    }

    pub(crate) fn reply(&mut self) -> Reply<'_> {
        Reply { out: self.out, version: self.session.version }
    }

    /// Writes the reply for an answer, now or once the answer arrives.
    #[inline]
    fn reply_with<T: Send + 'static>(
        &mut self,
        answer: Answer<T>,
        write: impl FnOnce(T, &mut Reply<'_>) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        match answer {
            Answer::Now(value) => write(value, &mut self.reply()),
            Answer::Later(answer) => {
                self.pending.push(answer, self.session.version, write);
                Ok(())
            }
        }
    }

    /// The argument at `index` as a text.
    fn text(&self, index: usize, what: &'static str) -> Result<&'a str, Error> {
        let bytes = self.command.arg(index).unwrap_or_default();
        std::str::from_utf8(bytes).map_err(|_| Error::NotText(what))
    }

    /// True if the argument at `index` is this word, in upper or lower case.
    fn is(&self, index: usize, word: &str) -> bool {
        self.command.arg(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }
}
