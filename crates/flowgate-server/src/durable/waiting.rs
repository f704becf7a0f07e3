//! Answers that wait for the disk: one task of each thread learns of a sync and wakes the answers of its thread.
//!
//! To wake a task of another thread is a call of the system. With `always` each answer waits, so the journal wakes one
//! task of each thread. That task tells the answers of its thread, which needs no such call, and keeps the time for them.

use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use flowgate_journal::SyncStatus;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};

use crate::lock::Lock;

/// The answers that wait, on all threads.
#[derive(Debug)]
pub(super) struct Waiting {
    synced: watch::Receiver<SyncStatus>,
    patience: Duration,
    queues: Lock<Vec<(ThreadId, Arc<Lock<Queue>>)>>,
    /// The newest epoch for which an answer has stopped waiting.
    pub(super) late: watch::Sender<u64>,
}

/// The answers that wait on a thread, in the order of their deadlines.
#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiter>,
    /// True once the task that wakes the answers is gone, with its runtime or the journal.
    is_over: bool,
}

#[derive(Debug)]
struct Waiter {
    epoch: u64,
    deadline: Instant,
    is_synced: oneshot::Sender<bool>,
}

impl Waiting {
    /// An answer waits for nine tenths of the request timeout, so that a client learns that the disk is slow before its
    /// request times out.
    pub(super) fn new(synced: watch::Receiver<SyncStatus>, request_timeout: Duration) -> Waiting {
        let patience = request_timeout * 9 / 10;
        Waiting { synced, patience, queues: Lock::default(), late: watch::Sender::default() }
    }

    /// Waits until an epoch is synced. False: the disk fails, or the sync takes longer than answers wait.
    pub(super) async fn wait(&self, epoch: u64) -> bool {
        let answer = {
            let queue = self.queue();
            // The queue is locked before the epoch is read, so that a later sync finds the waiter.
            let mut queue = queue.lock();
            let (synced, is_failing) = progress(&self.synced.borrow());
            if synced >= epoch || is_failing || queue.is_over {
                return synced >= epoch;
            }
            let (is_synced, answer) = oneshot::channel();
            queue.waiting.push(Waiter { epoch, deadline: sleep(self.patience).deadline(), is_synced });
            answer
        };
        answer.await.unwrap_or(false)
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
        let forwarding = Forwarding { queue: Arc::clone(&queue), late: self.late.clone() };
        tokio::spawn(forwarding.run(self.synced.clone(), self.patience));
        queue
    }
}

/// The last epoch that is synced, and whether the disk fails.
fn progress(status: &SyncStatus) -> (u64, bool) {
    (status.epoch, status.failure.is_some())
}

/// The task that wakes the answers of a queue.
struct Forwarding {
    queue: Arc<Lock<Queue>>,
    late: watch::Sender<u64>,
}

impl Forwarding {
    async fn run(self, mut synced: watch::Receiver<SyncStatus>, patience: Duration) {
        loop {
            // Answers that begin to wait later have later deadlines.
            let oldest = self.queue.lock().waiting.first().map(|waiter| waiter.deadline);
            let until = oldest.unwrap_or_else(|| sleep(patience).deadline());
            match timeout_at(until, synced.changed()).await {
                Ok(Ok(())) => {
                    let (epoch, is_failing) = progress(&synced.borrow_and_update());
                    self.tell(|waiter| (is_failing || waiter.epoch <= epoch).then_some(waiter.epoch <= epoch));
                }
                Ok(Err(_)) => return,
                Err(_) => self.give_up(until),
            }
        }
    }

    /// Wakes the answers whose deadline is `until` or earlier: they wait no longer.
    fn give_up(&self, until: Instant) {
        let late =
            self.queue.lock().waiting.iter().filter(|waiter| waiter.deadline <= until).map(|waiter| waiter.epoch).max();
        if let Some(epoch) = late {
            self.late.send_modify(|late| *late = epoch.max(*late));
            self.tell(|waiter| (waiter.deadline <= until).then_some(false));
        }
    }

    /// Wakes the answers whose wait is over, and tells each whether its epoch is synced.
    fn tell(&self, outcome: impl Fn(&Waiter) -> Option<bool>) {
        let mut queue = self.queue.lock();
        for waiter in queue.waiting.extract_if(.., |waiter| outcome(waiter).is_some()) {
            let is_synced = outcome(&waiter) == Some(true);
            // The send fails if the client has left.
            let _ = waiter.is_synced.send(is_synced);
        }
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        let mut queue = self.queue.lock();
        queue.is_over = true;
        queue.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
    const PATIENCE: Duration = Duration::from_millis(4500);

    fn waiting() -> (watch::Sender<SyncStatus>, Arc<Waiting>) {
        let (sender, synced) = watch::channel(SyncStatus::default());
        (sender, Arc::new(Waiting::new(synced, REQUEST_TIMEOUT)))
    }

    fn wait(waiting: &Arc<Waiting>, epoch: u64) -> tokio::task::JoinHandle<(bool, Duration)> {
        let (waiting, began) = (Arc::clone(waiting), sleep(Duration::ZERO).deadline());
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
        // The sync of an older epoch does not extend any deadline.
        tell(&sender, 0, None);
        let second = wait(&waiting, 1);
        assert_eq!(first.await.unwrap(), (false, PATIENCE));
        assert_eq!(*waiting.late.borrow(), 1);
        tokio::time::sleep(Duration::from_secs(2)).await;
        tell(&sender, 1, None);
        assert_eq!(second.await.unwrap(), (true, Duration::from_millis(3500)));
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

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_told_of_a_failure_waits_for_no_recovery() {
        let (sender, waiting) = waiting();
        let told = wait(&waiting, 1);
        tokio::task::yield_now().await;
        // Tasks run in the order in which they are woken: the forwarding task, the recovery, the answer.
        tell(&sender, 0, Some("full"));
        let recovery = sender.clone();
        tokio::spawn(async move { tell(&recovery, 0, None) });
        let told = tokio::time::timeout(2 * REQUEST_TIMEOUT, told).await.expect("an answer is never lost");
        assert_eq!(told.unwrap(), (false, Duration::ZERO));
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
