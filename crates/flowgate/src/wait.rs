//! Waiting until a limit lets a caller pass, blocking or async.
//!
//! Callers of a key form a queue, and only its head asks the limit. The head sleeps for the wait that the limit gives,
//! and is charged when it leaves. A caller that gives up therefore costs nothing, and with `pace` turns stay an
//! interval apart. The other callers only check whether their turn can come in time.
//!
//! Both kinds of caller run the same steps ([`Waiting::step`]) and stand in the same queues; they differ only in how
//! they sleep.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;

use crate::clock::{Clock, Reading};
use crate::decision::{Decision, Retry, Verdict};
use crate::memory::Subject;
use crate::queue::{Place, Queues};
use crate::time::{Span, Time};

/// Why a caller did not get its turn. Nothing was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// No wait helps: the cost is more than the limit ever grants.
    #[error("the cost is more than the limit ever grants")]
    Never,
    /// The turn comes later than the caller waits: after at least this span, and later if other callers wait before it.
    #[error("the turn would come in {0} at the earliest, later than the caller would wait")]
    TooLong(Span),
}

/// The turns that a caller waits for: those of a limiter's key, or of a single counter.
pub(crate) trait Turns<'a>: Copy {
    fn clock(self) -> &'a Clock;
    fn queues(self) -> &'a Queues;
    /// The subject that names the queue.
    fn subject(self) -> Subject;
    /// Takes the units if they may go at once.
    fn try_turn(self, cost: u64, at: Reading) -> Decision;
    /// The least time until the turn of a caller that has other callers before it.
    fn look_ahead(self, cost: u64, at: Reading) -> Verdict;
}

/// A caller on its way through a queue.
pub(crate) struct Waiting<'a, T: Turns<'a>> {
    turns: T,
    cost: u64,
    at_most: Span,
    /// The end of the wait, in monotonic time: a step of the wall clock does not move it.
    deadline: Time,
    place: Place<'a>,
}

pub(crate) enum Step {
    Done(Result<Decision, WaitError>),
    /// The caller is to sleep until it is woken, or for at most this span.
    Sleep(Option<Span>),
}

impl<'a, T: Turns<'a>> Waiting<'a, T> {
    pub(crate) fn new(turns: T, cost: u64, at_most: Span) -> Waiting<'a, T> {
        let deadline = turns.clock().monotonic() + at_most;
        Waiting { turns, cost, at_most, deadline, place: turns.queues().join(turns.subject()) }
    }

    pub(crate) fn step(&mut self, waker: &Waker) -> Step {
        let clock = self.turns.clock();
        let is_head = self.place.is_head(waker);
        // The clock is read before the monotonic time, so a caller that sleeps until `now + wait` is never early.
        let (at, now) = (clock.read(), clock.monotonic());
        let verdict = if is_head {
            let decision = self.turns.try_turn(self.cost, at);
            if decision.allowed() {
                return Step::Done(Ok(decision));
            }
            decision.verdict
        } else {
            self.turns.look_ahead(self.cost, at)
        };
        let wait = match verdict {
            Verdict::Allow { delay } => delay,
            Verdict::Deny(Retry::After(wait)) => wait,
            Verdict::Deny(Retry::Never) => return Step::Done(Err(WaitError::Never)),
        };
        let too_long = now + wait > self.deadline || !is_head && (now > self.deadline || self.at_most.is_zero());
        if too_long {
            return Step::Done(Err(WaitError::TooLong(wait)));
        }
        // The callers before this one may all leave at the last moment.
        let until = if is_head { now + wait } else { self.deadline + Span::from_nanos(1) };
        Step::Sleep(clock.sleep_until(until, self.place.id(), waker))
    }

    /// Waits in the queue on the caller's thread.
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

    /// Waits in the queue as a task. Dropping the future leaves the queue.
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

impl<'a, T: Turns<'a>> Drop for Waiting<'a, T> {
    fn drop(&mut self) {
        self.turns.clock().forget(self.place.id());
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
