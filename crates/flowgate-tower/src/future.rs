//! The answer to come: a denial at once, or the inner service's answer, after a turn has been waited for.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

use crate::layer::Taken;

pin_project! {
    /// The answer of a [`RateLimited`](crate::RateLimited) service.
    pub struct ResponseFuture<S: Service<Request<B>>, B> {
        #[pin]
        state: State<S, B>,
    }
}

pin_project! {
    #[project = StateNow]
    enum State<S: Service<Request<B>>, B> {
        Denied { response: Option<Response<Bytes>> },
        /// Until its turn. Boxed, for few requests ever wait.
        Held { held: Option<(Pin<Box<Sleep>>, S, Request<B>, Taken)> },
        Passed { #[pin] answer: S::Future, taken: Option<Taken> },
    }
}

impl<S: Service<Request<B>>, B> ResponseFuture<S, B> {
    pub(crate) fn denied(response: Response<Bytes>) -> Self {
        Self { state: State::Denied { response: Some(response) } }
    }

    pub(crate) fn passed(mut service: S, request: Request<B>, taken: Taken) -> Self {
        let delay = Duration::from(taken.decision.delay());
        if delay.is_zero() {
            return Self { state: State::Passed { answer: service.call(request), taken: Some(taken) } };
        }
        Self { state: State::Held { held: Some((Box::pin(sleep(delay)), service, request, taken)) } }
    }
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: From<Bytes>,
{
    type Output = Result<Response<R>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateNow::Denied { response } => {
                    let response = response.take().expect("a future is not polled after its end");
                    return Poll::Ready(Ok(response.map(R::from)));
                }
                StateNow::Held { held } => {
                    let (turn, ..) = held.as_mut().expect("taken only when the state changes, below");
                    ready!(turn.as_mut().poll(cx));
                    let (_, mut service, request, taken) = held.take().expect("it was there a line above");
                    state.set(State::Passed { answer: service.call(request), taken: Some(taken) });
                }
                StateNow::Passed { answer, taken } => {
                    let mut answer = ready!(answer.poll(cx));
                    if let Some(taken) = taken.take() {
                        match &mut answer {
                            Ok(response) => taken.answered(response),
                            Err(_) => taken.failed(),
                        }
                    }
                    return Poll::Ready(answer);
                }
            }
        }
    }
}

impl<S: Service<Request<B>>, B> fmt::Debug for ResponseFuture<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
