//! A transaction: the commands between `MULTI` and `EXEC`, which are answered together.
//!
//! State      The commands that were kept, encoded one behind the other, and whether one was refused.
//! Rule       `EXEC` answers all of them in order and at one time, as one array. If one was refused, none is done.
//! Rule       Each command is atomic. Those of other clients may come in between, unlike in Redis: a long transaction takes
//!            several turns of its connection. Libraries use transactions to send a pipeline, and none of our commands depends
//!            on what another one has read.
//! Bound      At most [`MAX_COMMANDS`] commands and [`MAX_TRANSACTION_BYTES`] bytes, which count with what the client holds.

use super::decode::{Command, Decoder};

/// As much as may wait for a client that reads no replies.
pub(super) const MAX_TRANSACTION_BYTES: usize = 16 << 20;

/// More than client libraries send in one transaction; the replies to as many decisions fit into what may wait unread.
pub(super) const MAX_COMMANDS: usize = 100_000;

/// What was kept since `MULTI`.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    kept: Vec<u8>,
    commands: usize,
    refused: bool,
    due: bool,
}

impl Transaction {
    /// Keeps a command; false when there are too many of them or too many bytes.
    pub(super) fn keep(&mut self, command: &Command<'_>) -> bool {
        if self.commands >= MAX_COMMANDS {
            return false;
        }
        self.kept.extend_from_slice(format!("*{}\r\n", command.count() + 1).as_bytes());
        for word in std::iter::once(command.name()).chain(command.args()) {
            self.kept.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            self.kept.extend_from_slice(word);
            self.kept.extend_from_slice(b"\r\n");
        }
        self.commands += 1;
        self.kept.len() <= MAX_TRANSACTION_BYTES
    }

    /// Notes that a command was refused.
    pub(super) fn refuse(&mut self) {
        self.refused = true;
        self.kept = Vec::new();
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// How many commands were kept.
    pub(super) fn len(&self) -> usize {
        self.commands
    }

    /// How many bytes they take up.
    pub(super) fn bytes(&self) -> usize {
        self.kept.capacity()
    }

    /// Says that what was kept is to be done now.
    pub(super) fn fall_due(&mut self) {
        self.due = true;
    }

    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// The commands, to be heard again.
    pub(super) fn into_decoder(self) -> Decoder {
        // Each was within its bound when it came.
        let mut decoder = Decoder::new(usize::MAX);
        *decoder.buffer() = self.kept;
        decoder
    }
}
