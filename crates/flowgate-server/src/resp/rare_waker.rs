//! A waker for rare events, such as a timer or the end of the server.
//!
//! A task that waits for several futures polls all of them whenever it wakes up. A busy connection would poll a timer
//! and the shutdown signal for every read. Futures that are polled with a `RareWaker` set its flag when they wake the
//! task, so the task polls them again only when the flag is set.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::task::{Context, Wake, Waker};

/// The waker of one task for its rare events.
#[derive(Debug, Default)]
pub(crate) struct RareWaker {
    current: Option<(Arc<Flag>, Waker)>,
}

#[derive(Debug)]
struct Flag {
    woken: AtomicBool,
    task: Waker,
}

impl Wake for Flag {
    fn wake(self: Arc<Flag>) {
        self.woken.store(true, Release);
        self.task.wake_by_ref();
    }
}

impl RareWaker {
    /// A context to poll the rare futures with, if one of them may be ready. The caller must then poll all of them.
    #[inline]
    pub(crate) fn woken(&mut self, task: &Waker) -> Option<Context<'_>> {
        match &self.current {
            Some((flag, _)) if flag.task.will_wake(task) && !flag.woken.load(Acquire) => None,
            _ => Some(self.rearm(task)),
        }
    }

    /// Clears the flag. If the task has changed, makes a waker for it.
    #[cold]
    fn rearm(&mut self, task: &Waker) -> Context<'_> {
        let current = match self.current.take() {
            Some(current) if current.0.task.will_wake(task) => current,
            _ => {
                let flag = Arc::new(Flag { woken: AtomicBool::new(false), task: task.clone() });
                (Arc::clone(&flag), Waker::from(flag))
            }
        };
        // Cleared before the futures are polled, so that no wake is lost.
        current.0.woken.swap(false, AcqRel);
        Context::from_waker(&self.current.insert(current).1)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn polls_at_first_and_after_each_wake() {
        let (event, mut rare) = oneshot::channel::<()>();
        let mut waker = RareWaker::default();
        let mut ready = Vec::new();
        let mut event = Some(event);
        let mut wakes = 0;
        poll_fn(|cx| {
            wakes += 1;
            ready.push(waker.woken(cx.waker()).is_some_and(|mut cx| pin!(&mut rare).poll(&mut cx).is_ready()));
            match wakes {
                1 | 2 => cx.waker().wake_by_ref(),
                3 => drop(event.take()),
                _ => return Poll::Ready(()),
            }
            Poll::Pending
        })
        .await;
        assert_eq!(ready, [false, false, false, true], "ready at the fourth poll, after the event");
    }

    #[tokio::test]
    async fn another_task_gets_a_waker_of_its_own() {
        let mut waker = RareWaker::default();
        let first = |cx: &mut Context<'_>, waker: &mut RareWaker| waker.woken(cx.waker()).is_some();
        let (looked, again) = poll_fn(|cx| Poll::Ready((first(cx, &mut waker), first(cx, &mut waker)))).await;
        assert!(looked && !again);
        let other = tokio::spawn(async move { poll_fn(|cx| Poll::Ready(first(cx, &mut waker))).await });
        assert!(other.await.unwrap(), "the other task has not polled its futures yet");
    }
}
