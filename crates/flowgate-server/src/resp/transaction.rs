//! A transaction: the commands between `MULTI` and `EXEC`, which are answered together.
//!
//! State      The queued commands, encoded one behind the other, and whether one was refused.
//! Rule       `EXEC` decides all commands in order and at one time, and answers with one array. If a command was
//!            refused, `EXEC` executes none.
//! Rule       Each command is atomic. Unlike in Redis, commands of other clients may run in between: a long transaction
//!            takes several turns of its connection. Libraries use transactions to send a pipeline, and no command
//!            here depends on what another one has read.
//! Bound      At most [`MAX_COMMANDS`] commands and [`MAX_TRANSACTION_BYTES`] bytes, which count towards what the
//!            client holds.

use super::decode::{Command, Decoder};

/// The most bytes of a transaction: as many as those of replies that may wait for a client.
pub(super) const MAX_TRANSACTION_BYTES: usize = 16 << 20;

/// The most commands of a transaction: more than client libraries send. Their replies fit into the backlog.
pub(super) const MAX_COMMANDS: usize = 100_000;

/// The commands since `MULTI`.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    kept: Vec<u8>,
    /// The number of queued commands.
    pub(super) commands: usize,
    pub(super) is_refused: bool,
    /// True once `EXEC` has arrived.
    pub(super) is_due: bool,
}

impl Transaction {
    /// Queues a command; false if there are too many commands or bytes.
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
        self.is_refused = true;
        self.kept = Vec::new();
    }

    /// The bytes of the queued commands.
    pub(super) fn bytes(&self) -> usize {
        self.kept.capacity()
    }

    /// A decoder of the commands.
    pub(super) fn into_decoder(self) -> Decoder {
        // Each command was within its bound when it was read.
        let mut decoder = Decoder::new(usize::MAX);
        *decoder.buffer() = self.kept;
        decoder
    }
}
