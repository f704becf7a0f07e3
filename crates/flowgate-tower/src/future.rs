//! The response to come: a denial at once, or the inner service's response, after a hold for a `pace` limit's turn.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Request, Response};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

use crate::charge::Charge;

pin_project! {
    /// The response of a [`RateLimited`](crate::RateLimited) service.
    pub struct ResponseFuture<S: Service<Request<B>>, B> {
        #[pin]
        state: State<S, B>,
    }
}

pin_project! {
    #[project = StateNow]
    enum State<S: Service<Request<B>>, B> {
        Denied { response: Option<S::Response> },
        /// Held until the request's turn. Few requests wait, so the timer is boxed.
        Held { held: Option<(Pin<Box<Sleep>>, S, Request<B>, Charge)> },
        Passed { #[pin] answer: S::Future, charge: Charge },
    }
}

impl<S: Service<Request<B>>, B> ResponseFuture<S, B> {
    pub(crate) fn denied(response: S::Response) -> Self {
        Self { state: State::Denied { response: Some(response) } }
    }

    pub(crate) fn passed(service: S, request: Request<B>, charge: Charge) -> Self {
        let delay = Duration::from(charge.decision.delay());
        if delay.is_zero() {
            return Self { state: State::reached(service, request, charge) };
        }
        Self { state: State::Held { held: Some((Box::pin(sleep(delay)), service, request, charge)) } }
    }
}

impl<S: Service<Request<B>>, B> State<S, B> {
    fn reached(mut service: S, request: Request<B>, mut charge: Charge) -> Self {
        charge.reached();
        State::Passed { answer: service.call(request), charge }
    }
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<R>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateNow::Denied { response } => {
                    return Poll::Ready(Ok(response.take().expect("a future is not polled after its end")));
                }
                StateNow::Held { held } => {
                    let (turn, ..) = held.as_mut().expect("taken only when the state changes, below");
                    ready!(turn.as_mut().poll(cx));
                    let (_, service, request, charge) = held.take().expect("it was there a line above");
                    state.set(State::reached(service, request, charge));
                }
                StateNow::Passed { answer, charge } => {
                    let mut answer = ready!(answer.poll(cx));
                    match &mut answer {
                        Ok(response) => charge.answered(response),
                        Err(_) => charge.failed(),
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
