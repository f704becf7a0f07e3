//! Reads from every ready connection before answering any, so that their cache misses overlap, and answers every ready
//! connection before sending to any, so that their replies leave together.
//!
//! Bound      At most [`MAX_YIELDED`] connections of an event loop hold unanswered commands or unsent replies while others
//!            read and answer. The next connection goes on at once.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

/// More than 64 waiting connections gain nothing measurable, and each holds a read buffer.
pub(crate) const MAX_YIELDED: usize = 64;

thread_local! {
    static YIELDED: Cell<usize> = const { Cell::new(0) };
}

/// Counts its connection as waiting while it lives.
struct YieldPermit;

impl YieldPermit {
    /// A permit; `None` if [`MAX_YIELDED`] other connections wait already.
    fn new() -> Option<YieldPermit> {
        let others = YIELDED.get();
        if others >= MAX_YIELDED {
            return None;
        }
        YIELDED.set(others + 1);
        Some(YieldPermit)
    }
}

impl Drop for YieldPermit {
    fn drop(&mut self) {
        YIELDED.set(YIELDED.get().saturating_sub(1));
    }
}

/// As [`yield_to_ready_tasks`], unless too many connections wait already.
pub(crate) async fn yield_to_ready() {
    let Some(_permit) = YieldPermit::new() else { return };
    yield_to_ready_tasks().await;
}

/// Lets every ready task of the event loop run once before this one continues.
pub(crate) async fn yield_to_ready_tasks() {
    let mut queued = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut queued, true) {
            return Poll::Ready(());
        }
        // The runtime's own `yield_now` would poll for new events first.
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    async fn serve_connections(count: usize) -> String {
        let said = Arc::new(Mutex::new(String::new()));
        let connections: Vec<_> = (0..count)
            .map(|number| {
                let said = Arc::clone(&said);
                let say = move |what: &str| said.lock().unwrap().push_str(&format!("{number} {what}, "));
                tokio::spawn(async move {
                    say("read");
                    yield_to_ready().await;
                    say("answered");
                })
            })
            .collect();
        for connection in connections {
            connection.await.unwrap();
        }
        std::mem::take(&mut *said.lock().unwrap())
    }

    #[tokio::test]
    async fn all_connections_are_read_before_the_first_is_answered() {
        assert_eq!(serve_connections(3).await, "0 read, 1 read, 2 read, 0 answered, 1 answered, 2 answered, ");
    }

    #[tokio::test]
    async fn connection_beyond_the_bound_is_answered_at_once() {
        let said = serve_connections(MAX_YIELDED + 1).await;
        let at_once = format!("{MAX_YIELDED} read, {MAX_YIELDED} answered, 0 answered, ");
        assert!(said.contains(&at_once), "{said}");
        assert_eq!(YIELDED.get(), 0);
    }

    #[tokio::test]
    async fn closed_connection_no_longer_counts() {
        let gone = tokio::spawn(yield_to_ready());
        tokio::task::yield_now().await;
        gone.abort();
        let _ = gone.await;
        assert_eq!(YIELDED.get(), 0);
    }
}
