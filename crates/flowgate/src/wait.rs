//! Waiting for one's turn, blocking or async.
//!
//! Callers of a key queue up; only the head tries. It sleeps for as long as the limit tells it and charges when it
//! leaves, so a caller who gives up costs nothing, and with `pace` turns stay an interval apart. The others only look
//! whether it is worth the while.
//!
//! Both kinds of caller run the same steps ([`Waiting::step`]) and stand in the same queues; they differ only in how
//! they sleep.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;

use crate::decision::{Decision, Retry, Verdict};
use crate::limiter::Limiter;
use crate::memory::Subject;
use crate::queue::Place;
use crate::time::{Span, Time};

/// Why a caller did not get its turn. Nothing was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// No wait helps: the cost is more than the limit ever grants.
    #[error("the cost is more than the limit ever grants")]
    Never,
    /// The turn is further away than the caller would wait: so far at least, and more if others wait before it.
    #[error("the turn would come in {0} at the earliest, later than the caller would wait")]
    TooLong(Span),
}

/// A caller on its way through a queue.
pub(crate) struct Waiting<'a> {
    limiter: &'a Limiter,
    subject: Subject,
    cost: u64,
    at_most: Span,
    /// The last moment to leave, in monotonic time: the caller's patience is real, whatever the clock does.
    deadline: Time,
    place: Place<'a>,
}

pub(crate) enum Step {
    Done(Result<Decision, WaitError>),
    /// Sleep until woken, or at most so long.
    Sleep(Option<Span>),
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(limiter: &'a Limiter, subject: Subject, cost: u64, at_most: Span) -> Waiting<'a> {
        let deadline = limiter.clock().monotonic() + at_most;
        Waiting { limiter, subject, cost, at_most, deadline, place: limiter.queues().join(subject) }
    }

    pub(crate) fn step(&mut self, waker: &Waker) -> Step {
        let clock = self.limiter.clock();
        let is_head = self.place.is_head(waker);
        // In this order: whoever sleeps until `now + wait` is not early.
        let (at, now) = (clock.read(), clock.monotonic());
        let retry = if is_head {
            let decision = self.limiter.try_turn(self.subject, self.cost, at);
            match decision.verdict {
                Verdict::Allow { .. } => return Step::Done(Ok(decision)),
                Verdict::Deny(retry) => retry,
            }
        } else {
            self.limiter.look_ahead(self.subject, self.cost, at)
        };
        let Retry::After(wait) = retry else { return Step::Done(Err(WaitError::Never)) };
        let too_long = now + wait > self.deadline || !is_head && (now > self.deadline || self.at_most.is_zero());
        if too_long {
            return Step::Done(Err(WaitError::TooLong(wait)));
        }
        // Those before it may leave at the very last moment.
        let until = if is_head { now + wait } else { self.deadline + Span::from_nanos(1) };
        Step::Sleep(clock.sleep_until(until, self.place.id(), waker))
    }

    /// Goes through the queue on the caller's thread.
    pub(crate) fn block(mut self) -> Result<Decision, WaitError> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match self.step(&waker) {
                Step::Done(result) => return result,
                Step::Sleep(Some(span)) => std::thread::park_timeout(span.into()),
                Step::Sleep(None) => std::thread::park(),
            }
        }
    }

    /// Goes through the queue as a task. Dropping the future leaves the queue.
    #[cfg(feature = "tokio")]
    pub(crate) async fn run(mut self) -> Result<Decision, WaitError> {
        use std::future::{Future, poll_fn};
        use std::task::Poll;
        let mut sleep = std::pin::pin!(None::<tokio::time::Sleep>);
        poll_fn(|context| {
            loop {
                match self.step(context.waker()) {
                    Step::Done(result) => return Poll::Ready(result),
                    Step::Sleep(None) => return Poll::Pending,
                    Step::Sleep(Some(span)) => {
                        sleep.set(Some(tokio::time::sleep(span.into())));
                        if let Some(sleep) = sleep.as_mut().as_pin_mut()
                            && sleep.poll(context).is_pending()
                        {
                            return Poll::Pending;
                        }
                    }
                }
            }
        })
        .await
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.limiter.clock().forget(self.place.id());
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
