//! How far a connection is with its present request, as the stream and the answering of it both see it.
//!
//! State      `Idle`, from the first byte that arrives `Head`, from the last of the head `Answering`, then `Idle` again.
//!            Bytes that arrive while a request is answered, such as its body, begin no head. The rest of them may be half
//!            of a next head: until a further byte arrives, the connection counts as idle, which it is.
//! State      Whether the server stops: then every answer is the last on its connection, and says so.
//!
//! One task reads, answers and writes, so the order of memory accesses does not matter; atomics only because that task
//! may move between threads.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No request has begun.
    Idle = 0,
    /// A part of a head is there.
    Head = 1,
    /// A request is being answered.
    Answering = 2,
}

/// The progress of one connection.
#[derive(Debug, Default)]
pub(super) struct Progress {
    stage: AtomicU8,
    stopping: AtomicBool,
}

impl Progress {
    pub(super) fn stage(&self) -> Stage {
        match self.stage.load(Relaxed) {
            0 => Stage::Idle,
            1 => Stage::Head,
            _ => Stage::Answering,
        }
    }

    /// Bytes have arrived; whether they are the first of a head.
    pub(super) fn begin_head(&self) -> bool {
        let is_first = self.stage() == Stage::Idle;
        if is_first {
            self.stage.store(Stage::Head as u8, Relaxed);
        }
        is_first
    }

    /// A head is complete.
    pub(super) fn begin_answer(&self) {
        self.stage.store(Stage::Answering as u8, Relaxed);
    }

    /// There is an answer, yet to be sent.
    pub(super) fn end_answer(&self) {
        self.stage.store(Stage::Idle as u8, Relaxed);
    }

    /// The server stops.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }
}
