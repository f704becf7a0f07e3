//! An answer that is known at once, or later: after a round trip to the store that several nodes share, or once a change
//! is on the disk.
//!
//! Rule       The call to the store is sent before an [`Answer`] is returned, whether or not a caller awaits the
//!            answer. Calls that are made one after the other therefore share a round trip.
//! Invariant  A decision from memory is [`Answer::Now`]: no allocation, no future, no wait. With `durable = "always"` one that
//!            changed a counter waits for the disk.

use std::fmt;
use std::future::ready;
use std::pin::Pin;

/// An answer that is known, or what becomes one: a future that is not boxed yet, or the question that a store has sent.
pub(crate) enum Pending<T, L> {
    Now(T),
    Later(L),
}

/// An answer that is on its way.
pub type AnswerFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a call of the service answers, now or later: `answer.await` in asynchronous code.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use flowgate_server::Answer;
///
/// assert_eq!(Answer::Now(42).await, 42);
/// assert_eq!(Answer::later(async { 6 * 7 }).await, 42);
/// # });
/// ```
#[must_use = "what was asked for is in it"]
pub enum Answer<T> {
    /// The answer is known.
    Now(T),
    /// The answer is pending.
    Later(AnswerFuture<T>),
}

impl<T> Answer<T> {
    /// An answer that is on its way.
    pub fn later(future: impl Future<Output = T> + Send + 'static) -> Answer<T> {
        Answer::Later(Box::pin(future))
    }

    /// The answer, if it is known. A decision from memory is, unless `durable = "always"` makes it wait for the disk.
    pub fn now(self) -> Option<T> {
        match self {
            Answer::Now(value) => Some(value),
            Answer::Later(_) => None,
        }
    }

    /// Converts the answer by `make`, now or when it arrives.
    #[inline]
    pub fn map<U>(self, make: impl FnOnce(T) -> U + Send + 'static) -> Answer<U>
    where
        T: 'static,
    {
        match self {
            Answer::Now(value) => Answer::Now(make(value)),
            Answer::Later(future) => Answer::later(async move { make(future.await) }),
        }
    }

    /// Folds any number of answers into one, in order. One future awaits all of them: nested futures are polled and
    /// dropped by recursion, and those of a long command overflow the stack.
    pub fn fold<U>(
        answers: impl Iterator<Item = Answer<U>>,
        first: T,
        mut add: impl FnMut(T, U) -> T + Send + 'static,
    ) -> Answer<T>
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        let (mut sum, mut rest) = (first, Vec::new());
        for answer in answers {
            match answer {
                Answer::Now(value) if rest.is_empty() => sum = add(sum, value),
                answer => rest.push(answer),
            }
        }
        if rest.is_empty() {
            return Answer::Now(sum);
        }
        Answer::later(async move {
            for answer in rest {
                sum = add(sum, answer.await);
            }
            sum
        })
    }

    /// Combines two answers into one.
    pub fn with<U, V>(self, other: Answer<U>, make: impl FnOnce(T, U) -> V + Send + 'static) -> Answer<V>
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        match (self, other) {
            (Answer::Now(one), Answer::Now(other)) => Answer::Now(make(one, other)),
            (one, other) => Answer::later(async move {
                let one = one.await;
                make(one, other.await)
            }),
        }
    }
}

/// Waiting for an answer that is known allocates: match [`Answer::Now`] first where that counts.
impl<T: Send + 'static> IntoFuture for Answer<T> {
    type Output = T;
    type IntoFuture = AnswerFuture<T>;

    fn into_future(self) -> AnswerFuture<T> {
        match self {
            Answer::Now(value) => Box::pin(ready(value)),
            Answer::Later(future) => future,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Now(value) => f.debug_tuple("Now").field(value).finish(),
            Answer::Later(_) => f.write_str("Later"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_made_of_an_answer_is_there_as_soon_as_the_answer_is() {
        assert_eq!(Answer::Now(1).map(|n| n + 1).now(), Some(2));
        assert_eq!(Answer::Now(1).with(Answer::Now(2), |a, b| a + b).now(), Some(3));
        let later = || Answer::later(async { 1 });
        assert_eq!(later().now(), None);
        assert_eq!(later().map(|n| n + 1).await, 2);
        assert_eq!(later().with(Answer::Now(2), |a, b| a + b).await, 3);
        assert_eq!(Answer::Now(2).with(later(), |a, b| a + b).await, 3);
    }

    /// The number is that of the keys of the longest command.
    #[tokio::test]
    async fn any_number_of_answers_makes_one() {
        let later = |number: u64| {
            Answer::later(async move {
                tokio::task::yield_now().await;
                number
            })
        };
        let mixed = |number: u64| if number.is_multiple_of(3) { Answer::Now(number) } else { later(number) };
        let (numbers, whole) = (|| 0..65_535_u64, 65_535 * 65_534 / 2);
        assert_eq!(Answer::fold(numbers().map(mixed), 0, |sum, one| sum + one).await, whole);
        assert_eq!(Answer::fold(numbers().map(Answer::Now), 0, |sum, one| sum + one).now(), Some(whole));
        // An answer that is not awaited is dropped.
        drop(Answer::fold(numbers().map(later), 0, |sum, one| sum + one));
    }
}
