//! A call of `ShouldRateLimit`: its message is read, decided and answered.
//!
//! Rule       Nearly every message arrives together with the head of its call, and memory answers at once. Such a call
//!            is answered by the first poll, without a timer and without a box.
//! Rule       hyper moves the future of a call several times, so it is small: whatever takes longer is boxed.
//! Rule       Envoy gives up after a few milliseconds. What was sent to a shared store is then still carried out to its
//!            end.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flowgate::Reading;
use flowgate_engine::Request;
use hyper::body::Incoming;
use hyper::{Request as HttpRequest, Response};
use smallvec::SmallVec;
use tokio::time::timeout;

use super::body::{MessageReader, ReplyBody};
use super::connection::CallGuard;
use super::message::RateLimitRequest;
use super::question::{self, FieldNames};
use super::status::{self, Code, Failure};
use super::{Shared, brought_limit, check_access, reply};
use crate::metrics::sampling::{self, Kind};
use crate::service::{Answer, JointRequest};

/// A call under way.
pub(crate) struct RateLimitCall {
    guard: CallGuard,
    began: Reading,
    /// The weight of this call in the histogram of latencies, if it is a sample.
    weight: Option<u32>,
    step: Step,
}

type Outcome = Result<Bytes, Failure>;
type LaterOutcome = Pin<Box<dyn Future<Output = Outcome> + Send>>;

enum Step {
    Refused(Failure),
    Read(MessageReader),
    Later(LaterOutcome),
    Answered,
}

impl RateLimitCall {
    pub(super) fn new(guard: CallGuard, request: HttpRequest<Incoming>) -> RateLimitCall {
        let shared = guard.shared();
        let began = shared.service.read();
        let weight = sampling::weight(Kind::Latency, began.now);
        let step = match check_access(shared, request.headers()) {
            Ok(()) => Step::Read(MessageReader::new(request.into_body(), shared.max_message)),
            Err(failure) => Step::Refused(failure),
        };
        RateLimitCall { guard, began, weight, step }
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Response<ReplyBody>> {
        let shared = self.guard.shared();
        let mut later = match std::mem::replace(&mut self.step, Step::Answered) {
            Step::Read(mut message) => match message.poll(context) {
                Poll::Ready(message) => match decide_message(shared, message) {
                    Ok(Answer::Now(reply)) => return Poll::Ready(self.finish(Ok(reply))),
                    Ok(later) => Box::pin(await_store(later, shared.request_timeout)) as LaterOutcome,
                    Err(failure) => return Poll::Ready(self.finish(Err(failure))),
                },
                Poll::Pending => Box::pin(wait_for(message, Arc::clone(shared))),
            },
            Step::Later(later) => later,
            Step::Refused(failure) => return Poll::Ready(self.finish(Err(failure))),
            Step::Answered => return Poll::Pending,
        };
        match later.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(self.finish(outcome)),
            Poll::Pending => {
                self.step = Step::Later(later);
                Poll::Pending
            }
        }
    }

    fn finish(&self, outcome: Outcome) -> Response<ReplyBody> {
        let service = &self.guard.shared().service;
        let code = outcome.as_ref().err().map_or(Code::Ok, |failure| failure.code);
        service.metrics().grpc.codes[code.index()].add(1);
        if let Some(weight) = self.weight {
            let took = self.began.real_wait(service.now().since(self.began.now));
            service.metrics().grpc_latency.note(took, weight.into());
        }
        match outcome {
            Ok(reply) => status::response(ReplyBody::Message(reply)),
            Err(failure) => {
                // Envoy lets requests pass on an error, so an error is worth a line.
                tracing::warn!(code = ?failure.code, message = %failure.message, "a call of the rate limit service was refused");
                failure.response()
            }
        }
    }
}

/// A message that arrives later than the head of its call.
async fn wait_for(mut message: MessageReader, shared: Arc<Shared>) -> Outcome {
    let late = |_| Failure::new(Code::DeadlineExceeded, "the message did not arrive in time");
    let message = timeout(shared.request_timeout, poll_fn(|context| message.poll(context))).await.map_err(late)?;
    await_store(decide_message(&shared, message)?, shared.request_timeout).await
}

async fn await_store(answer: Answer<Bytes>, longest: Duration) -> Outcome {
    if let Answer::Now(reply) = answer {
        return Ok(reply);
    }
    match timeout(longest, tokio::spawn(async move { answer.await })).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(_)) | Err(_) => Err(Failure::new(Code::Unavailable, "the store does not answer")),
    }
}

/// The reply to a message.
fn decide_message(shared: &Shared, message: Result<Bytes, Failure>) -> Result<Answer<Bytes>, Failure> {
    let message = message?;
    let refused = |error: &dyn fmt::Display| Failure::new(Code::InvalidArgument, error.to_string());
    let call = RateLimitRequest::read(&message).map_err(|error| refused(&error))?;
    let names: SmallVec<[FieldNames<'_>; 2]> = call.descriptors.iter().map(FieldNames::new).collect();
    let counted = |descriptor| brought_limit::counted(&call.domain, descriptor);
    let keys: SmallVec<[Option<String>; 2]> =
        call.descriptors.iter().map(|descriptor| descriptor.limit.map(|_| counted(descriptor))).collect();
    let service = &shared.service;
    let in_force = service.snapshot();
    let mut requests: SmallVec<[JointRequest<'_>; 1]> = SmallVec::new();
    for ((descriptor, names), key) in call.descriptors.iter().zip(&names).zip(&keys) {
        let (op, cost) = question::operation(&call, descriptor);
        let request = question::request(&call, descriptor, names, cost);
        match (descriptor.limit, key) {
            (Some(limit), Some(key)) => {
                let rules = shared.brought.rules(service, &in_force, limit).map_err(|error| refused(&error))?;
                let limit = Request::new().field(brought_limit::FIELD, key).cost(cost);
                requests.extend(JointRequest::with_limit(op, request, rules, limit));
            }
            _ => requests.push(JointRequest::new(op, request)),
        }
    }
    service.metrics().grpc.descriptors.add(call.descriptors.len() as u64);
    let hits = call.hits_addend.max(1);
    let decisions = service.decide_requests(&in_force, &requests, service.read());
    Ok(decisions.map(move |decisions| reply::message(&decisions, hits)))
}
