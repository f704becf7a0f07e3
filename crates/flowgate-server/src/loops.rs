//! Event loops: threads that serve connections, each with a runtime of its own.
//!
//! Rule       A connection stays on the loop that it was given, so what it does never moves between cores and takes
//!            no lock of a scheduler. Connections are dealt out in turn.
//! End        Dropping the loops ends them, and whatever still runs on them.
//!
//! One listener deals out to all loops, rather than one for each under `SO_REUSEPORT`: the system would deal by a hash
//! of addresses, unevenly where connections are few, and a second server on the same port would start unnoticed.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Threads with a runtime each.
#[derive(Debug)]
pub(crate) struct Loops {
    loops: Vec<Loop>,
    turn: AtomicUsize,
}

#[derive(Debug)]
struct Loop {
    handle: Handle,
    /// Dropped to end the loop.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Loops {
    /// Starts so many loops; 0: one per core that the process may use.
    pub(crate) fn start(threads: usize) -> io::Result<Loops> {
        let threads = if threads == 0 { thread::available_parallelism().map_or(1, usize::from) } else { threads };
        let loops = (0..threads).map(Loop::start).collect::<io::Result<_>>()?;
        Ok(Loops { loops, turn: AtomicUsize::new(0) })
    }

    /// The loop whose turn it is.
    pub(crate) fn next(&self) -> &Handle {
        &self.loops[self.turn.fetch_add(1, Relaxed) % self.loops.len()].handle
    }
}

impl Loop {
    fn start(number: usize) -> io::Result<Loop> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            // Nothing is ever sent: the error that this ends with says that the sender is gone.
            let _ = runtime.block_on(stopped);
        };
        let thread = thread::Builder::new().name(format!("loop-{number}")).spawn(serve)?;
        Ok(Loop { handle, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A loop that panicked has ended, too; what it served has been reported.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[tokio::test]
    async fn work_is_dealt_out_in_turn_and_ends_with_the_loops() {
        let loops = Loops::start(3).unwrap();
        let mut threads = HashSet::new();
        for _ in 0..6 {
            threads.insert(loops.next().spawn(async { thread::current().id() }).await.unwrap());
        }
        assert_eq!(threads.len(), 3);
        let endless = loops.next().spawn(std::future::pending::<()>());
        drop(loops);
        assert!(endless.await.unwrap_err().is_cancelled());
    }

    #[test]
    fn none_means_one_per_core() {
        assert!(!Loops::start(0).unwrap().loops.is_empty());
    }
}
