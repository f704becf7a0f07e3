//! Answers that wait for the disk: one task of each thread hears of a sync and wakes those of its thread.
//!
//! To wake a task of another thread is a call of the system. With `always` each answer waits, so the journal wakes one
//! task of each thread. That task wakes the answers of its thread, which needs no such call, and keeps the time for them.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use flowgate_journal::SyncStatus;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use crate::lock::Lock;

/// The answers that wait, on any thread.
#[derive(Debug)]
pub(super) struct Waiting {
    synced: watch::Receiver<SyncStatus>,
    patience: Duration,
    queues: Lock<Vec<(ThreadId, Arc<Lock<Queue>>)>>,
    /// The last epoch that somebody did not wait for any longer.
    pub(super) late: watch::Sender<u64>,
}

/// The answers that wait on a thread, in the order in which they began to.
#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiter>,
    /// The task that wakes them is gone, with its runtime or the journal.
    is_over: bool,
}

#[derive(Debug)]
struct Waiter {
    epoch: u64,
    deadline: Instant,
    waker: Waker,
}

impl Waiting {
    pub(super) fn new(synced: watch::Receiver<SyncStatus>, patience: Duration) -> Waiting {
        Waiting { synced, patience, queues: Lock::default(), late: watch::Sender::default() }
    }

    /// Waits until an epoch is synced. False: the disk fails, or it takes longer than anybody waits.
    pub(super) async fn wait(&self, epoch: u64) -> bool {
        let (queue, deadline) = (self.queue(), timer_now() + self.patience);
        let mut known: Option<Waker> = None;
        poll_fn(|cx| {
            // Locked before the epoch is read: a later sync finds the waker.
            let mut queue = queue.lock();
            let (synced, is_failing) = {
                let status = self.synced.borrow();
                (status.epoch, status.failure.is_some())
            };
            if synced >= epoch || is_failing || queue.is_over {
                return Poll::Ready(synced >= epoch);
            }
            if timer_now() >= deadline {
                self.late.send_modify(|late| *late = epoch.max(*late));
                return Poll::Ready(false);
            }
            if !known.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
                known = Some(cx.waker().clone());
                queue.waiting.push(Waiter { epoch, deadline, waker: cx.waker().clone() });
            }
            Poll::Pending
        })
        .await
    }

    /// The queue of this thread.
    fn queue(&self) -> Arc<Lock<Queue>> {
        let (thread, mut queues) = (thread::current().id(), self.queues.lock());
        if let Some((_, queue)) = queues.iter().find(|(of, queue)| *of == thread && !queue.lock().is_over) {
            return Arc::clone(queue);
        }
        let queue = Arc::<Lock<Queue>>::default();
        queues.retain(|(of, _)| *of != thread);
        queues.push((thread, Arc::clone(&queue)));
        let forwarding = Forwarding(Arc::clone(&queue));
        tokio::spawn(forwarding.run(self.synced.clone(), self.patience));
        queue
    }
}

/// The task that wakes the answers of a queue.
struct Forwarding(Arc<Lock<Queue>>);

impl Forwarding {
    async fn run(self, mut synced: watch::Receiver<SyncStatus>, patience: Duration) {
        loop {
            // An answer that begins to wait later has a later deadline than this, too.
            let oldest = self.0.lock().waiting.first().map(|waiter| waiter.deadline);
            let until = oldest.unwrap_or_else(|| timer_now() + patience);
            if let Ok(Err(_)) = timeout_at(until, synced.changed()).await {
                return;
            }
            let (epoch, is_failing) = {
                let status = synced.borrow_and_update();
                (status.epoch, status.failure.is_some())
            };
            let now = timer_now();
            self.wake(|waiter| is_failing || waiter.epoch <= epoch || waiter.deadline <= now);
        }
    }

    fn wake(&self, is_over: impl Fn(&Waiter) -> bool) {
        let mut queue = self.0.lock();
        queue.waiting.extract_if(.., |waiter| is_over(waiter)).for_each(|waiter| waiter.waker.wake());
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.wake(|_| true);
    }
}

/// The time of the runtime's timer, which keeps the deadlines: that of a sleep of no length. Decisions never read it.
fn timer_now() -> Instant {
    sleep(Duration::ZERO).deadline()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn waiting() -> (watch::Sender<SyncStatus>, Arc<Waiting>) {
        let (sender, synced) = watch::channel(SyncStatus::default());
        (sender, Arc::new(Waiting::new(synced, PATIENCE)))
    }

    fn wait(waiting: &Arc<Waiting>, epoch: u64) -> tokio::task::JoinHandle<(bool, Duration)> {
        let (waiting, began) = (Arc::clone(waiting), timer_now());
        tokio::spawn(async move { (waiting.wait(epoch).await, began.elapsed()) })
    }

    fn tell(sender: &watch::Sender<SyncStatus>, epoch: u64, failure: Option<&str>) {
        sender.send_replace(SyncStatus { epoch, failure: failure.map(str::to_owned) });
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_leaves_with_the_sync_of_its_epoch() {
        let (sender, waiting) = waiting();
        let [first, second] = [1, 2].map(|epoch| wait(&waiting, epoch));
        tokio::time::sleep(Duration::from_secs(1)).await;
        tell(&sender, 1, None);
        assert_eq!(first.await.unwrap(), (true, Duration::from_secs(1)));
        assert!(!second.is_finished());
        tokio::time::sleep(Duration::from_secs(1)).await;
        tell(&sender, 2, None);
        assert_eq!(second.await.unwrap(), (true, Duration::from_secs(2)));
        assert!(wait(&waiting, 2).await.unwrap().0, "at once");
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_waits_for_as_long_as_it_may() {
        let (sender, waiting) = waiting();
        let first = wait(&waiting, 1);
        tokio::time::sleep(Duration::from_secs(3)).await;
        // A sync of what was before starts the time of nobody anew.
        tell(&sender, 0, None);
        let second = wait(&waiting, 1);
        assert_eq!(first.await.unwrap(), (false, PATIENCE));
        assert_eq!(*waiting.late.borrow(), 1);
        tokio::time::sleep(Duration::from_secs(2)).await;
        tell(&sender, 1, None);
        assert_eq!(second.await.unwrap(), (true, Duration::from_secs(4)));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_disk_that_fails_or_a_journal_that_is_gone() {
        let (sender, waiting) = waiting();
        let failed = wait(&waiting, 1);
        tokio::task::yield_now().await;
        tell(&sender, 0, Some("full"));
        assert_eq!(failed.await.unwrap(), (false, Duration::ZERO));
        tell(&sender, 0, None);
        let left = wait(&waiting, 1);
        tokio::task::yield_now().await;
        drop(sender);
        assert_eq!(left.await.unwrap(), (false, Duration::ZERO));
        assert_eq!(wait(&waiting, 1).await.unwrap(), (false, Duration::ZERO));
        assert_eq!(*waiting.late.borrow(), 0);
    }

    #[test]
    fn a_runtime_that_ends_leaves_its_thread_to_the_next_one() {
        let (sender, waiting) = waiting();
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let first = runtime();
        first.block_on(async {
            wait(&waiting, 1);
            tokio::task::yield_now().await;
        });
        drop(first);
        runtime().block_on(async {
            let second = wait(&waiting, 1);
            tokio::task::yield_now().await;
            tell(&sender, 1, None);
            assert!(second.await.unwrap().0);
        });
    }
}
