//! Turns: who is ready is heard before anybody is answered.
//!
//! Bound      At most [`MAX_HEARD`] on an event loop wait for their answer with what they have sent in hand: one more is
//!            answered at once.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

/// Beyond these there is little to be gained, and each holds a buffer.
pub(super) const MAX_HEARD: usize = 64;

thread_local! {
    static HEARD: Cell<usize> = const { Cell::new(0) };
}

/// One who was heard and waits to be answered, for as long as this lives.
struct Heard;

impl Heard {
    /// `None` when enough others are.
    fn new() -> Option<Heard> {
        let others = HEARD.get();
        (others < MAX_HEARD).then(|| {
            HEARD.set(others + 1);
            Heard
        })
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        HEARD.set(HEARD.get().saturating_sub(1));
    }
}

/// Lets every task of the event loop that is ready run once before this one goes on.
pub(super) async fn hear_others() {
    let Some(_heard) = Heard::new() else { return };
    let mut queued = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut queued, true) {
            return Poll::Ready(());
        }
        // Unlike `yield_now` of the runtime, which would first look whether anybody else has become ready.
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    async fn conversations(count: usize) -> String {
        let said = Arc::new(Mutex::new(String::new()));
        let conversations: Vec<_> = (0..count)
            .map(|number| {
                let said = Arc::clone(&said);
                let say = move |what: &str| said.lock().unwrap().push_str(&format!("{number} {what}, "));
                tokio::spawn(async move {
                    say("heard");
                    hear_others().await;
                    say("answered");
                })
            })
            .collect();
        for conversation in conversations {
            conversation.await.unwrap();
        }
        std::mem::take(&mut *said.lock().unwrap())
    }

    #[tokio::test]
    async fn all_are_heard_before_the_first_is_answered() {
        assert_eq!(conversations(3).await, "0 heard, 1 heard, 2 heard, 0 answered, 1 answered, 2 answered, ");
    }

    #[tokio::test]
    async fn but_not_too_many() {
        let said = conversations(MAX_HEARD + 1).await;
        let at_once = format!("{MAX_HEARD} heard, {MAX_HEARD} answered, 0 answered, ");
        assert!(said.contains(&at_once), "{said}");
        assert_eq!(HEARD.get(), 0);
    }

    #[tokio::test]
    async fn who_leaves_meanwhile_makes_room() {
        let gone = tokio::spawn(hear_others());
        tokio::task::yield_now().await;
        gone.abort();
        let _ = gone.await;
        assert_eq!(HEARD.get(), 0);
    }
}
