//! Event loops: threads that serve connections, each with a runtime of its own.
//!
//! Rule       A connection stays on its loop, so it never moves between cores and takes no lock of a scheduler. New
//!            connections go to the loops in turn.
//! End        Dropping the loops ends them and their tasks; blocking work that does not return is abandoned. A loop
//!            ends by itself only after a panic in the runtime. [`Loops::failed`] then returns: the loop's connections
//!            are closed, and new ones on it would hang.
//!
//! One listener serves all loops, instead of one for each under `SO_REUSEPORT`: the system would choose by a hash of
//! addresses, unevenly for few connections, and a second server on the same port would start unnoticed.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};

/// The tasks that a loop runs before it polls for new events. Tokio's default is 61, but fifty busy connections are
/// 150 tasks: each reads, then answers, then sends.
const TASKS_PER_LOOK: u32 = 192;

/// How often a loop wakes by itself. If a timer is due before a loop wakes next, tokio wakes the loop by a write to
/// itself and polls once more for events. Timers of requests are due later than the next beat, so they cause neither.
const BEAT: Duration = Duration::from_millis(200);

/// Threads with a runtime each.
#[derive(Debug)]
pub(crate) struct Loops {
    loops: Vec<Loop>,
    turn: AtomicUsize,
    /// The number of the loop that failed first.
    failed: watch::Receiver<Option<usize>>,
}

#[derive(Debug)]
struct Loop {
    handle: Handle,
    /// Ends the loop when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Lives on a loop's thread, and reports a panic that ends it.
struct Alarm {
    number: usize,
    failed: watch::Sender<Option<usize>>,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if thread::panicking() {
            self.failed.send_if_modified(|failed| failed.replace(self.number).is_none());
        }
    }
}

impl Loops {
    /// Starts a loop on each of `threads` threads; 0: one for each core that the process may use.
    pub(crate) fn start(threads: usize) -> io::Result<Loops> {
        let threads = if threads == 0 { thread::available_parallelism().map_or(1, usize::from) } else { threads };
        let (alarm, failed) = watch::channel(None);
        let start = |number| Loop::start(number, Alarm { number, failed: alarm.clone() });
        let loops = (0..threads).map(start).collect::<io::Result<_>>()?;
        Ok(Loops { loops, turn: AtomicUsize::new(0), failed })
    }

    /// The loop for the next connection.
    pub(crate) fn next(&self) -> &Handle {
        &self.loops[self.turn.fetch_add(1, Relaxed) % self.loops.len()].handle
    }

    /// Returns the number of a loop that has failed, once one has.
    pub(crate) async fn failed(&self) -> usize {
        let failed = self.failed.clone().wait_for(Option::is_some).await.map(|failed| *failed);
        match failed {
            Ok(Some(number)) => number,
            // Every loop has ended without a failure.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

impl Loop {
    fn start(number: usize, alarm: Alarm) -> io::Result<Loop> {
        let runtime = Builder::new_current_thread().enable_all().event_interval(TASKS_PER_LOOK).build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            let _alarm = alarm;
            runtime.spawn(async {
                let mut beat = tokio::time::interval(BEAT);
                loop {
                    beat.tick().await;
                }
            });
            // The channel carries no value: the error says that the sender was dropped.
            let _ = runtime.block_on(stopped);
            // Dropping the runtime would wait for blocking work, such as a read from a disk that hangs.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name(format!("loop-{number}")).spawn(serve)?;
        Ok(Loop { handle, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        drop(self.stop.take());
        // The last owner of the loops may be a task on one of them, which cannot wait for itself.
        if let Some(thread) = self.thread.take_if(|thread| thread.thread().id() != thread::current().id()) {
            // A loop that panicked has ended, too, and was reported.
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

    #[tokio::test]
    async fn blocking_work_that_never_returns_does_not_hold_up_the_end() {
        let loops = Loops::start(1).unwrap();
        let (_never, forever) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        loops.next().spawn_blocking(move || {
            begun.send(()).unwrap();
            let _ = forever.recv();
        });
        has_begun.await.unwrap();
        let ended = thread::spawn(move || drop(loops));
        let deadline = std::time::Duration::from_secs(30);
        let waited = tokio::task::spawn_blocking(move || ended.join().unwrap());
        tokio::time::timeout(deadline, waited).await.expect("the loops wait for the blocking work").unwrap();
    }

    #[tokio::test]
    async fn a_thread_that_panics_is_noticed() {
        let (alarm, failed) = watch::channel(None);
        let loops = Loops { failed, ..Loops::start(1).unwrap() };
        let alarm = Alarm { number: 7, failed: alarm };
        let thread = thread::spawn(move || {
            let _alarm = alarm;
            panic!("a fault in a runtime (part of a test)");
        });
        assert_eq!(loops.failed().await, 7);
        thread.join().unwrap_err();
    }

    #[test]
    fn none_means_one_per_core() {
        assert!(!Loops::start(0).unwrap().loops.is_empty());
    }
}
