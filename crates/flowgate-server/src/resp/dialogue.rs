//! A dialogue: commands come in, replies go out in the same order. No I/O.
//!
//! Rule       The clock is read once per batch: what arrived together is decided at one time.
//! Rule       A reply that is not there yet holds back those behind it, and nobody else's: meanwhile further commands
//!            are answered, until too many replies are on their way ([`Pending`]).
//! Bound      A turn of a connection ends after [`MAX_TURN_COMMANDS`] commands of the usual kind, or as much of others, and after
//!            [`MAX_TURN_BYTES`] bytes of replies. What is left of its commands, or of an `EXEC`, waits for its next turn.
//! Bound      A client that reads no replies may go on sending until [`MAX_BACKLOG_BYTES`] bytes of them wait; then it is
//!            closed. (Not to read on would be no better: clients send a whole pipeline before they read any reply, and
//!            both sides would wait for each other.)

use std::task::Context;

use flowgate::Reading;

use super::command::{self, Ahead, Call, work_by_length};
use super::decode::{Command, Decoder, ProtocolError};
use super::error::Error;
use super::pending::Pending;
use super::reply::Reply;
use super::session::{End, Session};
use super::{batch_metrics, buffers};

/// The most replies that wait for one client, in bytes: those to about 400,000 commands.
const MAX_BACKLOG_BYTES: usize = 16 << 20;

/// The commands of a turn: some more than a read brings, so that a pipeline of the usual kind is answered in one.
const MAX_TURN_COMMANDS: u32 = 2048;

/// The bytes of replies that a turn writes before they are sent or, if the client does not read, checked against the bounds.
const MAX_TURN_BYTES: usize = 256 << 10;

/// A client, and the replies to it.
#[derive(Debug)]
pub(super) struct Dialogue {
    pub(super) session: Session,
    out: Vec<u8>,
    /// How much of `out` has been sent.
    sent: usize,
    pending: Pending,
    /// The prefetched counter of the next command, within a turn.
    ahead: Option<Ahead>,
    /// The commands of the batch at hand...
    commands: u64,
    /// ...and what they have taken, in commands of the usual kind.
    work: u32,
    /// What an `EXEC` has yet to do.
    executing: Option<Box<Executing>>,
    /// Commands are left unheard because too many replies are on their way.
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
            ahead: None,
            commands: 0,
            work: 0,
            executing: None,
            held: false,
        }
    }

    /// Begins with what has arrived; gives the time at which all of it is decided.
    pub(super) fn begin_batch(&mut self) -> Reading {
        self.commands = 0;
        self.work = 0;
        self.held = false;
        buffers::lend(&mut self.out);
        self.session.shared.service.read()
    }

    /// Whether another command may be answered.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        self.session.end == End::NotYet && !self.held && self.work < MAX_TURN_COMMANDS
    }

    /// Whether the turn ended before all that was received was answered, for no other reason than its length.
    pub(super) fn is_cut_short(&self) -> bool {
        self.work >= MAX_TURN_COMMANDS && self.session.end == End::NotYet && !self.held
    }

    /// Prefetches the counter of the first command that `decoder` holds.
    #[inline]
    pub(super) fn look_ahead(&mut self, decoder: &Decoder) {
        self.ahead = command::look_ahead(decoder, &self.session);
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
        let work = work_by_length(&command);
        let (session, out, pending) = (&mut self.session, &mut self.out, &mut self.pending);
        let ahead = self.ahead.take();
        let mut call = Call { session, command, at, out, pending, ahead, next: &mut self.ahead, work };
        call.answer();
        self.work = self.work.saturating_add(call.work);
        if !self.pending.is_empty() {
            self.keep_order(written);
        } else if self.out.len() - self.sent > MAX_TURN_BYTES {
            self.end_turn();
        }
    }

    /// Answers what a transaction has kept, if it is due.
    #[cold]
    fn begin_to_execute(&mut self, at: Reading) {
        let due = self.session.transaction.take_if(|transaction| transaction.is_due());
        if let Some(transaction) = due {
            self.executing = Some(Box::new(Executing { commands: transaction.into_decoder(), at }));
            self.execute();
        }
    }

    /// Goes on with an `EXEC` that is under way, until the turn ends. Nothing behind it is heard before it is done.
    #[inline]
    pub(super) fn execute(&mut self) {
        if let Some(executing) = self.executing.take() {
            self.execute_some(executing);
        }
    }

    #[cold]
    fn execute_some(&mut self, mut executing: Box<Executing>) {
        // What is prefetched stands behind the transaction, in the connection's own decoder.
        let behind = self.ahead.take();
        while self.goes_on() {
            // Only whole commands are kept for a transaction.
            let Ok(Some(command)) = executing.commands.next() else {
                self.ahead = behind;
                return;
            };
            self.call(command, executing.at);
        }
        self.ahead = None;
        self.executing = Some(executing);
    }

    /// Ends the turn, so that replies are sent before more are written; and with it a client that reads none.
    #[cold]
    fn end_turn(&mut self) {
        self.work = MAX_TURN_COMMANDS;
        if self.out.len() - self.sent > MAX_BACKLOG_BYTES {
            self.give_up();
        }
    }

    /// Ends with a client that does not speak the protocol, and says so.
    #[cold]
    pub(super) fn break_off(&mut self, error: ProtocolError) {
        let written = self.out.len();
        let error = Error::from(error).to_string();
        Reply { out: &mut self.out, version: self.session.version }.error(&error);
        self.session.shared.counters.protocol_errors.add(1);
        self.session.end = End::AfterReplies;
        self.keep_order(written);
    }

    /// Puts what was written since there were `written` bytes behind the replies that are on their way, and holds back
    /// further commands while these are too many.
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

    /// Ends with a client that reads no replies.
    #[cold]
    fn give_up(&mut self) {
        self.session.shared.counters.backlogs.add(1);
        self.session.end = End::AtOnce;
    }

    /// Tells the metrics what the batch came to that was decided at `at`.
    pub(super) fn end_batch(&mut self, at: Reading) {
        self.ahead = None;
        self.session.batch.report(&self.session.shared, self.commands);
        if self.pending.is_empty() {
            batch_metrics::note_latency(&self.session.shared, self.commands, at);
        }
    }

    /// Takes in the replies that have arrived. True while others are on their way; they wake the task.
    #[inline]
    pub(super) fn poll_pending(&mut self, cx: &mut Context<'_>) -> bool {
        !self.pending.is_empty() && self.take_in(cx)
    }

    #[cold]
    fn take_in(&mut self, cx: &mut Context<'_>) -> bool {
        buffers::lend(&mut self.out);
        self.pending.poll(cx, &mut self.out).is_pending()
    }

    /// Whether commands are left unheard...
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// ...which can now be heard.
    pub(super) fn may_resume(&self) -> bool {
        !self.pending.is_full()
    }

    /// Whether every reply has been sent.
    pub(super) fn is_over(&self) -> bool {
        self.pending.is_empty() && self.out.is_empty()
    }

    /// What can be sent.
    pub(super) fn unsent(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// Takes note that so many bytes were sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Lets go of what was sent when all was.
    pub(super) fn put_away(&mut self) {
        self.out.clear();
        self.sent = 0;
        buffers::give_back(&mut self.out);
    }

    /// Lets replies that are not sent yet hold no more memory than they need.
    pub(super) fn put_down(&mut self) {
        buffers::put_down(&mut self.out);
    }

    /// How many bytes this holds while the client is waited for.
    pub(super) fn bytes(&self) -> usize {
        let executing = self.executing.as_ref().map_or(0, |executing| executing.commands.occupied());
        self.session.transaction_bytes() + executing + self.out.capacity() + self.pending.bytes()
    }
}
