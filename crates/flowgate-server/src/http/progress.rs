//! The stage of a connection's current request, shared by the stream and the handler.
//!
//! State      `Idle`; `Head` from the first byte; `Answering` from the last byte of the head; then `Idle` again. Bytes
//!            that arrive while a request is answered, such as its body, do not begin a head. They may end with half
//!            of the next head: the connection counts as idle until one more byte arrives.
//! State      Whether the server stops. Then every answer is the last of its connection, and says so.
//!
//! One task reads, answers and writes, so the order of memory accesses does not matter. The values are atomic because
//! that task may move between threads.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

/// The stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No request has begun.
    Idle = 0,
    /// A part of a head has arrived.
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

    /// Notes bytes that have arrived. True if they begin a head.
    pub(super) fn begin_head(&self) -> bool {
        let is_first = self.stage() == Stage::Idle;
        if is_first {
            self.stage.store(Stage::Head as u8, Relaxed);
        }
        is_first
    }

    /// Notes that a head is complete.
    pub(super) fn begin_answer(&self) {
        self.stage.store(Stage::Answering as u8, Relaxed);
    }

    /// Notes that the answer is complete. It is not sent yet.
    pub(super) fn end_answer(&self) {
        self.stage.store(Stage::Idle as u8, Relaxed);
    }

    /// Notes that the server stops.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }
}
