//! `POST /v1/take` and its siblings, and `POST /v1/batch`: requests by their fields, decided by the rules.

use flowgate_api::{BatchItem, DecideCall, MAX_BATCH, Operation};
use flowgate_engine::Decision;
use hyper::body::Incoming;

use super::error::Error;
use super::reply::{self, Reply};
use super::request::CallRequest;
use super::{Call, body};
use crate::service::{Answer, StoreAway};

/// `{"fields":{..},"cost":1,"gate":false}` -> a decision.
pub(super) async fn one(call: &Call<'_>, body: Incoming, operation: Operation) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let (service, snapshot) = (&call.shared.service, call.shared.service.snapshot());
    let asked = CallRequest::new(call.shared, &snapshot, body::parse(&body)?);
    let (request, at) = (call.named(asked.request()), service.read());
    let decision = match operation {
        Operation::Reset => call.answered(service.reset_by(&snapshot, &request, at)).await??,
        operation => call.answered(service.decide_by(&snapshot, operation, &request, at)).await?,
    };
    Ok(reply::decision(&flowgate_api::Decision::from(&decision)))
}

/// The answer to one request of a batch.
enum BatchAnswer {
    Decision(Answer<Decision>),
    Reset(Answer<Result<Decision, StoreAway>>),
}

/// `[{"op":"take","fields":{..},"cost":1,"gate":false}, ..]` -> a decision for each, in order. A mistake in one request
/// refuses the whole batch.
pub(super) async fn batch(call: &Call<'_>, body: Incoming) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let items: Vec<BatchItem<'_>> = body::parse(&body)?;
    if items.len() > MAX_BATCH {
        return Err(Error::invalid(format!("[{MAX_BATCH}]"), format!("more than {MAX_BATCH} requests")));
    }
    let (service, snapshot) = (&call.shared.service, call.shared.service.snapshot());
    let at = service.read();
    // The service is asked about every request before the first answer is awaited, so that they share a round trip.
    let ask = |BatchItem { op, fields, cost, gate }: BatchItem<'_>| {
        let asked = CallRequest::new(call.shared, &snapshot, DecideCall { fields, cost, gate });
        let request = call.named(asked.request());
        match op {
            Operation::Reset => BatchAnswer::Reset(service.reset_by(&snapshot, &request, at)),
            op => BatchAnswer::Decision(service.decide_by(&snapshot, op, &request, at)),
        }
    };
    let answers: Vec<BatchAnswer> = items.into_iter().map(ask).collect();
    let mut decisions = Vec::with_capacity(answers.len());
    for answer in answers {
        decisions.push(match answer {
            BatchAnswer::Decision(answer) => call.answered(answer).await?,
            BatchAnswer::Reset(answer) => call.answered(answer).await??,
        });
    }
    Ok(reply::json(&decisions.iter().map(flowgate_api::Decision::from).collect::<Vec<_>>()))
}
