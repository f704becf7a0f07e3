//! Which commands there are, and who answers them.
//!
//! A command translates its arguments, calls the service once and writes one reply. It reads no clock: the time is
//! that of the batch it came with.

mod connection;
mod decide;
mod keys;
mod number;
mod report;
mod throttle;
mod transaction;
mod word;

use flowgate::Reading;

use super::decode::{Command, Decoder};
use super::error::{Error, QuotedText};
use super::pending::Pending;
use super::reply::Reply;
use super::session::{End, Session};
use crate::service::{Answer, Prefetched};
use word::Word;

/// A command at hand: who asks, what, when, and where the reply goes.
pub(crate) struct Call<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) command: Command<'a>,
    pub(crate) at: Reading,
    pub(crate) out: &'a mut Vec<u8>,
    /// Where a reply goes that is not there yet.
    pub(crate) pending: &'a mut Pending,
    /// This command's prefetched counter...
    pub(crate) ahead: Option<Ahead>,
    /// ...and where to put that of the next command.
    pub(crate) next: &'a mut Option<Ahead>,
    /// What answering it takes, in commands of the usual kind.
    pub(crate) work: u32,
}

/// A command on an ad hoc key whose turn has yet to come: the processor is fetching its counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    spec: &'static Spec,
    key: Prefetched,
}

/// What is known of a command: what clients ask for by `COMMAND`, and who answers it.
#[derive(Debug)]
struct Spec {
    name: &'static str,
    word: Word,
    /// The number of words, its name included; negative: at least so many. As Redis says it.
    arity: i32,
    flags: &'static [&'static str],
    /// The first and last argument that is a key (none: 0; -1: to the end).
    keys: (i32, i32),
    /// Whether its first argument is an ad hoc key, to which it is worth to look ahead.
    ad_hoc: bool,
    /// Whether it needs the user `admin`, where there is one.
    admin: bool,
    /// How it is used, for commands that only we have.
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
        ad_hoc: false,
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

    const fn on_ad_hoc_key(mut self) -> Spec {
        self.ad_hoc = true;
        self.on_keys(1, 1, &["write", "fast"])
    }

    const fn used_as(mut self, usage: &'static str) -> Spec {
        self.usage = usage;
        self
    }

    const fn for_admins(mut self) -> Spec {
        self.admin = true;
        self.on_keys(0, 0, &["write", "admin"])
    }

    /// Whether a client that has yet to give the password may use it.
    const fn for_strangers(mut self) -> Spec {
        self.flags = &["fast", "no_auth"];
        self
    }

    fn fits(&self, words: usize) -> bool {
        let needed = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { words >= needed } else { words == needed }
    }
}

/// All commands, those that are asked for most first.
static COMMANDS: &[Spec] = &[
    // Its own error tells how it is used, so any number of arguments reaches it.
    spec("cl.throttle", -1, throttle::throttle).on_ad_hoc_key(),
    spec("fg.take", -2, decide::take)
        .on_keys(0, 0, &["write", "fast"])
        .used_as("FG.TAKE cost field value [field value ...]"),
    spec("fg.limit", -3, decide::limit).on_ad_hoc_key().used_as("FG.LIMIT key limit [cost [TAKE|PEEK|RECORD|REFUND]]"),
    spec("fg.peek", -2, decide::peek)
        .on_keys(0, 0, &["readonly", "fast"])
        .used_as("FG.PEEK cost field value [field value ...]"),
    spec("fg.record", -2, decide::record)
        .on_keys(0, 0, &["write", "fast"])
        .used_as("FG.RECORD cost field value [field value ...]"),
    spec("fg.refund", -2, decide::refund)
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
];

fn find(name: &[u8]) -> Option<&'static Spec> {
    let name = Word::read(name)?;
    COMMANDS.iter().find(|spec| spec.word == name)
}

/// Looks ahead to the first command that a client has sent.
#[inline]
pub(crate) fn look_ahead(decoder: &Decoder, session: &Session) -> Option<Ahead> {
    let (name, key) = decoder.first_words()?;
    let spec = find(name).filter(|spec| spec.ad_hoc)?;
    Some(Ahead { spec, key: session.shared.service.prefetch(key)? })
}

/// Words of which a command of the usual kind has no more.
const USUAL_WORDS: usize = 16;

/// What a command takes by its length, in commands of the usual kind: most look at each of their words.
#[inline]
pub(crate) fn work_by_length(command: &Command<'_>) -> u32 {
    1 + (command.count() / USUAL_WORDS) as u32
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
        if spec.ad_hoc {
            self.look_ahead(spec);
        }
        (spec.answer)(self).map_err(|error| error.with_usage(spec.usage))
    }

    /// What is asked for, if this client may ask for it in this way.
    #[inline]
    fn spec(&mut self) -> Result<&'static Spec, Error> {
        let found = self.ahead.map(|ahead| ahead.spec).or_else(|| find(self.command.name()));
        let Some(spec) = found else { return Err(self.refuse_unknown()) };
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
        // A browser that was tricked into posting commands here says one of these first. Nothing behind it is heard.
        if name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:") {
            self.session.shared.counters.cross_protocol.add(1);
            self.session.end = End::AtOnce;
        }
        if !self.session.authenticated {
            return Error::Unauthenticated;
        }
        Error::UnknownCommand(QuotedText::new(name))
    }

    /// In a pipeline of commands on ad hoc keys: lets the processor fetch the next one's counter while this one is
    /// decided.
    #[inline]
    fn look_ahead(&mut self, spec: &'static Spec) {
        let key = self.command.next_key().and_then(|key| self.session.shared.service.prefetch(key));
        *self.next = key.map(|key| Ahead { spec, key });
    }

    /// The ad hoc key, if it was looked ahead to.
    fn prefetched(&self) -> Option<Prefetched> {
        self.ahead.map(|ahead| ahead.key)
    }

    /// Says that this command takes as long as `commands` of the usual kind, if not longer by its length.
    fn takes(&mut self, commands: usize) {
        self.work = self.work.max(u32::try_from(commands).unwrap_or(u32::MAX));
    }

    pub(crate) fn reply(&mut self) -> Reply<'_> {
        Reply { out: self.out, version: self.session.version }
    }

    /// Writes the reply that follows from an answer: at once, or when it is there.
    #[inline]
    fn reply_with<T: Send + 'static>(
        &mut self,
        answer: Answer<T>,
        write: impl FnOnce(T, &mut Reply<'_>) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        match answer {
            Answer::Now(value) => write(value, &mut self.reply()),
            later => {
                self.pending.push(later, self.session.version, write);
                Ok(())
            }
        }
    }

    /// The argument at `index` as a text.
    fn text(&self, index: usize, what: &'static str) -> Result<&'a str, Error> {
        let bytes = self.command.arg(index).unwrap_or_default();
        std::str::from_utf8(bytes).map_err(|_| Error::NotText(what))
    }

    /// Whether the argument at `index` is this word, in any case.
    fn is(&self, index: usize, word: &str) -> bool {
        self.command.arg(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }
}
