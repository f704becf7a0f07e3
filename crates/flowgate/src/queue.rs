//! Queues of callers that wait for the same subject: first in, first out.
//!
//! Rule       Only the head of a queue tries. A caller that leaves, served or not, wakes the next one.
//! Invariant  A queue exists while a caller is in it, so the map holds no more queues than there are waiters.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::memory::Subject;

#[derive(Debug, Default)]
pub(crate) struct Queues {
    queues: Mutex<HashMap<Subject, VecDeque<Waiter>>>,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    /// The waker of the waiter, while it sleeps.
    waker: Option<Waker>,
}

impl Queues {
    /// Joins the end of a subject's queue.
    pub(crate) fn join(&self, subject: Subject) -> Place<'_> {
        // Ids are unique in the process: a clock that several limiters share tells waiters apart by them.
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let id = NEXT_ID.fetch_add(1, Relaxed);
        self.lock().entry(subject).or_default().push_back(Waiter { id, waker: None });
        Place { queues: self, subject, id }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Subject, VecDeque<Waiter>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a queue; given up when dropped.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    queues: &'a Queues,
    subject: Subject,
    id: u64,
}

impl Place<'_> {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// True if this place is the head of the queue. Otherwise `waker` is woken when it becomes the head.
    pub(crate) fn is_head(&self, waker: &Waker) -> bool {
        let mut queues = self.queues.lock();
        let Some(queue) = queues.get_mut(&self.subject) else { return true };
        if queue.front().is_none_or(|head| head.id == self.id) {
            return true;
        }
        if let Some(waiter) = queue.iter_mut().find(|waiter| waiter.id == self.id) {
            waiter.waker = Some(waker.clone());
        }
        false
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        let Some(queue) = queues.get_mut(&self.subject) else { return };
        queue.retain(|waiter| waiter.id != self.id);
        let next = queue.front_mut().and_then(|head| head.waker.take());
        if queue.is_empty() {
            queues.remove(&self.subject);
        }
        drop(queues);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}
