//! A bell: tells a task that something has happened which seldom does, such as a timer or the end of the server.
//!
//! Whoever waits for several things at once has to ask all of them whenever it wakes up, for whichever reason. A busy
//! connection would ask a timer and the server's end a hundred thousand times in vain. Things that are polled with a
//! bell's waker ring it, so they are asked again only when it has rung.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::task::{Context, Wake, Waker};

/// A bell for one task.
#[derive(Debug, Default)]
pub(super) struct Bell {
    line: Option<(Arc<Line>, Waker)>,
}

#[derive(Debug)]
struct Line {
    rung: AtomicBool,
    task: Waker,
}

impl Wake for Line {
    fn wake(self: Arc<Line>) {
        self.rung.store(true, Release);
        self.task.wake_by_ref();
    }
}

impl Bell {
    /// What to poll those with that ring this bell, if one of them may be ready. All must be polled then.
    #[inline]
    pub(super) fn rung(&mut self, task: &Waker) -> Option<Context<'_>> {
        match &self.line {
            Some((line, _)) if line.task.will_wake(task) && !line.rung.load(Acquire) => None,
            _ => Some(self.hang_up(task)),
        }
    }

    /// Makes it silent, or hangs it up where the task is another one.
    #[cold]
    fn hang_up(&mut self, task: &Waker) -> Context<'_> {
        let line = self.line.take().filter(|(line, _)| line.task.will_wake(task)).unwrap_or_else(|| {
            let line = Arc::new(Line { rung: AtomicBool::new(false), task: task.clone() });
            (Arc::clone(&line), Waker::from(line))
        });
        // Before they are polled, so that none rings unheard.
        line.0.rung.swap(false, AcqRel);
        Context::from_waker(&self.line.insert(line).1)
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
    async fn it_asks_to_look_at_first_and_whenever_it_has_rung() {
        let (ring, mut rings) = oneshot::channel::<()>();
        let mut bell = Bell::default();
        let mut looks = Vec::new();
        let mut ring = Some(ring);
        let mut wakes = 0;
        poll_fn(|cx| {
            wakes += 1;
            looks.push(bell.rung(cx.waker()).is_some_and(|mut cx| pin!(&mut rings).poll(&mut cx).is_ready()));
            match wakes {
                1 | 2 => cx.waker().wake_by_ref(),
                3 => drop(ring.take()),
                _ => return Poll::Ready(()),
            }
            Poll::Pending
        })
        .await;
        assert_eq!(looks, [false, false, false, true], "the fourth time because it was rung");
    }

    #[tokio::test]
    async fn another_task_hangs_it_up_anew() {
        let mut bell = Bell::default();
        let first = |cx: &mut Context<'_>, bell: &mut Bell| bell.rung(cx.waker()).is_some();
        let (looked, again) = poll_fn(|cx| Poll::Ready((first(cx, &mut bell), first(cx, &mut bell)))).await;
        assert!(looked && !again);
        let other = tokio::spawn(async move { poll_fn(|cx| Poll::Ready(first(cx, &mut bell))).await });
        assert!(other.await.unwrap(), "its own things have yet to be asked with it");
    }
}
