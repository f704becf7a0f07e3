//! A dialogue: commands come in, replies go out in the same order. No I/O.
//!
//! Rule       The clock is read once per batch: what arrived together is decided at one time.
//! Rule       A pending reply delays the replies behind it on its connection only. Meanwhile further commands are
//!            answered, until too many replies are pending ([`Pending`]).
//! Bound      A turn of a connection ends after [`MAX_TURN_COMMANDS`] commands of the usual kind, or as much work of
//!            others, and after [`MAX_TURN_BYTES`] bytes of replies. The rest waits for the next turn, also within an
//!            `EXEC`.
//! Bound      A client that does not read is closed once [`MAX_BACKLOG_BYTES`] bytes of replies wait for it. (The
//!            server reads on until then: clients send a whole pipeline before they read a reply, so a server that
//!            stops reading would wait for a client that waits for the server.)

use std::sync::Arc;
use std::task::Context;

use flowgate::Reading;

use super::command::{Call, work_by_length};
use super::decode::{Command, Decoder, ProtocolError};
use super::error::Error;
use super::pending::Pending;
use super::planned::{self, FirstCommand, Group};
use super::reply::Reply;
use super::session::{End, Session};
use super::{batch_metrics, buffers};
use crate::service::TakeWork;

/// The most bytes of replies that wait for one client: those to about 400,000 commands.
const MAX_BACKLOG_BYTES: usize = 16 << 20;

/// The commands of a turn: more than one read brings, so that a usual pipeline is answered in one turn.
const MAX_TURN_COMMANDS: u32 = 2048;

/// The number of commands from which on a batch is long: answering it takes longer than one more turn of the event
/// loop's tasks.
const MIN_LONG_BATCH: u64 = 8;

/// The bytes of replies of a turn. After each turn they are sent or, if the client does not read, checked against the
/// bounds.
const MAX_TURN_BYTES: usize = 256 << 10;

/// A client, and the replies to it.
#[derive(Debug)]
pub(super) struct Dialogue {
    pub(super) session: Session,
    out: Vec<u8>,
    /// The bytes of `out` that have been sent.
    sent: usize,
    pending: Pending,
    /// The plan of the first command that has arrived.
    first: Option<FirstCommand>,
    /// True if the next commands are worth planning together.
    plans: bool,
    /// The number of commands in the current batch.
    commands: u64,
    /// The work of the current batch, as a number of usual commands.
    work: u32,
    /// The `EXEC` under way.
    executing: Option<Box<Executing>>,
    /// True while commands wait because too many replies are pending.
    held: bool,
}

/// A transaction under way, and the time at which all of it is decided.
#[derive(Debug)]
struct Executing {
    commands: Decoder,
    at: Reading,
}

impl Dialogue {
    pub(super) fn new(session: Session) -> Dialogue {
        Dialogue {
            session,
            out: Vec::new(),
            sent: 0,
            pending: Pending::default(),
            first: None,
            plans: false,
            commands: 0,
            work: 0,
            executing: None,
            held: false,
        }
    }

    /// Begins a batch. Returns the time at which all its commands are decided.
    pub(super) fn begin_batch(&mut self) -> Reading {
        self.commands = 0;
        self.work = 0;
        self.held = false;
        buffers::lend(&mut self.out);
        self.session.shared.service.read()
    }

    /// True if another command may be answered in this turn.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        self.session.end == End::NotYet && !self.held && self.work < MAX_TURN_COMMANDS
    }

    /// True if the turn ended by its length alone, so commands may be left.
    pub(super) fn is_cut_short(&self) -> bool {
        self.work >= MAX_TURN_COMMANDS && self.session.end == End::NotYet && !self.held
    }

    /// Prefetches the counters of the first command that `decoder` holds.
    #[inline]
    pub(super) fn look_ahead(&mut self, decoder: &Decoder) {
        self.first = if self.plans { planned::plan_first(decoder, &self.session) } else { None };
    }

    /// Plans and answers commands that `decoder` holds, as many as may be planned together. False if there are none, and
    /// while replies are pending: theirs come first.
    #[inline]
    pub(super) fn answer_planned(&mut self, decoder: &mut Decoder, at: Reading) -> bool {
        self.plans && self.pending.is_empty() && self.answer_group(decoder, at)
    }

    /// True if the next commands are worth planning together.
    #[cfg(test)]
    pub(super) fn plans(&self) -> bool {
        self.plans
    }

    fn answer_group(&mut self, decoder: &mut Decoder, at: Reading) -> bool {
        // The group borrows from here, while the session counts.
        let shared = Arc::clone(&self.session.shared);
        let snapshot = shared.service.load_snapshot();
        let size = planned::with_memory(|memory| {
            let group = Group::plan(memory, decoder, &self.session, &snapshot, self.first.take());
            let (mut work, mut size) = (TakeWork::new(&snapshot), 0);
            for command in group.commands() {
                let answered = self.goes_on()
                    && group.answer(command, &mut self.session, &mut work, at, &mut self.out).is_continue();
                if !answered {
                    break;
                }
                size += command.size();
                self.commands += 1;
                self.count_work(work_by_length(command.arguments));
            }
            size
        });
        decoder.skip_plain(size);
        self.plans = size > 0;
        self.plans
    }

    /// Answers the next command.
    #[inline]
    pub(super) fn answer(&mut self, command: Command<'_>, at: Reading) {
        self.commands += 1;
        self.call(command, at);
        if self.session.transaction.is_some() {
            self.begin_to_execute(at);
        }
    }

    #[inline]
    fn call(&mut self, command: Command<'_>, at: Reading) {
        let written = self.out.len();
        let work = work_by_length(command.count());
        let (session, out, pending) = (&mut self.session, &mut self.out, &mut self.pending);
        let mut call = Call { session, command, at, out, pending, plans: &mut self.plans, work };
        call.answer();
        let work = call.work;
        if self.pending.is_empty() {
            self.count_work(work);
        } else {
            self.work = self.work.saturating_add(work);
            self.keep_order(written);
        }
    }

    /// Counts the work of a command whose reply is written, and ends the turn if there are too many replies.
    #[inline]
    fn count_work(&mut self, work: u32) {
        self.work = self.work.saturating_add(work);
        if self.out.len() - self.sent > MAX_TURN_BYTES {
            self.end_turn();
        }
    }

    /// Answers the commands of a transaction, if `EXEC` has come.
    #[cold]
    fn begin_to_execute(&mut self, at: Reading) {
        let due = self.session.transaction.take_if(|transaction| transaction.is_due);
        if let Some(transaction) = due {
            self.executing = Some(Box::new(Executing { commands: transaction.into_decoder(), at }));
            self.execute();
        }
    }

    /// Continues an `EXEC`, until the turn ends. Commands behind it wait until it is done.
    #[inline]
    pub(super) fn execute(&mut self) {
        if let Some(executing) = self.executing.take() {
            self.execute_some(executing);
        }
    }

    #[cold]
    fn execute_some(&mut self, mut executing: Box<Executing>) {
        // The plan has hashed a key of the current database, which the transaction may change.
        self.first = None;
        while self.goes_on() {
            // A transaction keeps only whole commands.
            let Ok(Some(command)) = executing.commands.next() else { return };
            self.call(command, executing.at);
        }
        self.executing = Some(executing);
    }

    /// Ends the turn, so that replies are sent before more are written. Closes a client that does not read.
    #[cold]
    fn end_turn(&mut self) {
        self.work = MAX_TURN_COMMANDS;
        if self.out.len() - self.sent > MAX_BACKLOG_BYTES {
            self.give_up();
        }
    }

    /// Answers a protocol error and closes the connection.
    #[cold]
    pub(super) fn break_off(&mut self, error: ProtocolError) {
        let written = self.out.len();
        let error = Error::from(error).to_string();
        Reply { out: &mut self.out, version: self.session.version }.error(&error);
        self.session.shared.counters.protocol_errors.add(1);
        self.session.end = End::AfterReplies;
        self.keep_order(written);
    }

    /// Moves the bytes of `out` from `written` on behind the pending replies. Holds further commands while too many
    /// replies are pending.
    #[cold]
    fn keep_order(&mut self, written: usize) {
        if !self.pending.is_empty() {
            self.pending.put_behind(&self.out[written..]);
            self.out.truncate(written);
        }
        if self.out.len() - self.sent + self.pending.bytes() > MAX_BACKLOG_BYTES {
            self.give_up();
        }
        self.held = self.pending.is_full() && self.session.end == End::NotYet;
    }

    /// Closes a client that does not read its replies.
    #[cold]
    fn give_up(&mut self) {
        self.session.shared.counters.backlogs.add(1);
        self.session.end = End::AtOnce;
    }

    /// Reports the batch that was decided at `at` to the metrics.
    pub(super) fn end_batch(&mut self, at: Reading) {
        self.first = None;
        self.session.batch.report(&self.session.shared, self.commands);
        if self.pending.is_empty() {
            batch_metrics::note_latency(&self.session.shared, self.commands, at);
        }
    }

    /// Takes the replies that have arrived. True while others are pending; they wake the task.
    #[inline]
    pub(super) fn poll_pending(&mut self, cx: &mut Context<'_>) -> bool {
        !self.pending.is_empty() && self.take_in(cx)
    }

    #[cold]
    fn take_in(&mut self, cx: &mut Context<'_>) -> bool {
        buffers::lend(&mut self.out);
        self.pending.poll(cx, &mut self.out).is_pending()
    }

    /// True if commands wait for pending replies.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// True if waiting commands can be answered now.
    pub(super) fn may_resume(&self) -> bool {
        !self.pending.is_full()
    }

    /// True if the batch is long: its replies should leave together with those of other connections.
    pub(super) fn is_long_batch(&self) -> bool {
        self.commands >= MIN_LONG_BATCH
    }

    /// True if every reply has been sent.
    pub(super) fn is_over(&self) -> bool {
        self.pending.is_empty() && self.out.is_empty()
    }

    /// The bytes to send.
    pub(super) fn unsent(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// Notes that `bytes` bytes were sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Returns the output buffer, all of which was sent.
    pub(super) fn put_away(&mut self) {
        self.out.clear();
        self.sent = 0;
        buffers::give_back(&mut self.out);
    }

    /// Shrinks the output buffer to the replies that are not sent yet.
    pub(super) fn put_down(&mut self) {
        buffers::put_down(&mut self.out);
    }

    /// The bytes that this dialogue holds while it waits for the client.
    pub(super) fn bytes(&self) -> usize {
        let executing = self.executing.as_ref().map_or(0, |executing| executing.commands.occupied());
        self.session.transaction_bytes() + executing + self.out.capacity() + self.pending.bytes()
    }
}
