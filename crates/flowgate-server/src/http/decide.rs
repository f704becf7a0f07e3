//! `POST /v1/take` and its siblings, and `POST /v1/batch`: requests by their fields, decided by the rules.

use flowgate_api::{AtomicBatch, BatchItem, DecideCall, MAX_ATOMIC_BATCH, MAX_BATCH, Operation};
use flowgate_engine::Decision;

use super::body::Body;
use super::error::Error;
use super::reply::{self, Reply};
use super::request::CallRequest;
use super::{Call, body};
use crate::service::{Answer, JointRequest, StoreAway};

/// `{"fields":{..},"cost":1,"gate":false}` -> a decision.
pub(super) async fn one(call: &Call<'_>, body: Body<'_>, operation: Operation) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let (service, snapshot) = (&call.shared.service, call.shared.service.snapshot());
    let asked = CallRequest::new(call.shared, &snapshot, body::parse(&body)?);
    let (request, at) = (call.named(asked.request()), call.time());
    let decision = match operation {
        Operation::Reset => call.answered(service.reset_by(&snapshot, &request, at)).await??,
        operation => call.answered(service.decide_by(&snapshot, operation, &request, at)).await?,
    };
    Ok(reply::decision(&flowgate_api::Decision::from(&decision)))
}

/// `[{"op":"take","fields":{..},"cost":1,"gate":false}, ..]` -> a decision for each, in order. A mistake in one request
/// refuses the whole batch. With `?atomic=true` the requests pass together or not at all.
pub(super) async fn batch(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let is_atomic = is_atomic(call.head.query.unwrap_or_default())?;
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let items: Vec<BatchItem<'_>> = body::parse(&body)?;
    if is_atomic {
        return atomic_batch(call, items).await;
    }
    if items.len() > MAX_BATCH {
        return Err(Error::invalid(format!("[{MAX_BATCH}]"), format!("more than {MAX_BATCH} requests")));
    }
    let (service, snapshot) = (&call.shared.service, call.shared.service.snapshot());
    let at = call.time();
    // The service is asked about every request before the first answer is awaited, so that they share a round trip.
    let ask = |BatchItem { op, fields, cost, gate }: BatchItem<'_>| {
        let asked = CallRequest::new(call.shared, &snapshot, DecideCall { fields, cost, gate });
        let request = call.named(asked.request());
        match op {
            Operation::Reset => service.reset_by(&snapshot, &request, at),
            op => service.decide_by(&snapshot, op, &request, at).map(Ok),
        }
    };
    let answers: Vec<Answer<Result<Decision, StoreAway>>> = items.into_iter().map(ask).collect();
    let mut decisions = Vec::with_capacity(answers.len());
    for answer in answers {
        decisions.push(call.answered(answer).await??);
    }
    Ok(reply::json(&decisions.iter().map(flowgate_api::Decision::from).collect::<Vec<_>>()))
}

/// Reads `atomic=true` or `atomic=false`. Any other parameter is refused: a misspelled one must not turn an atomic
/// batch into an ordinary one.
fn is_atomic(query: &str) -> Result<bool, Error> {
    let mut atomic = false;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        atomic = match pair.split_once('=').unwrap_or((pair, "")) {
            ("atomic", "true") => true,
            ("atomic", "false") => false,
            ("atomic", _) => return Err(Error::invalid("atomic", "expected true or false")),
            (key, _) => return Err(Error::invalid(key.to_owned(), "expected atomic=true or atomic=false")),
        };
    }
    Ok(atomic)
}

/// The requests of a batch in one step: `{"allowed":false,"decisions":[{..,"charged":false}, ..]}`.
async fn atomic_batch(call: &Call<'_>, items: Vec<BatchItem<'_>>) -> Result<Reply, Error> {
    if items.len() > MAX_ATOMIC_BATCH {
        let problem = format!("more than {MAX_ATOMIC_BATCH} requests in an atomic batch");
        return Err(Error::invalid(format!("[{MAX_ATOMIC_BATCH}]"), problem));
    }
    let (service, snapshot) = (&call.shared.service, call.shared.service.snapshot());
    let mut asked = Vec::with_capacity(items.len());
    for (index, BatchItem { op, fields, cost, gate }) in items.into_iter().enumerate() {
        let Some(op) = op.op() else {
            return Err(Error::invalid(format!("[{index}].op"), "an atomic batch cannot reset"));
        };
        asked.push((op, CallRequest::new(call.shared, &snapshot, DecideCall { fields, cost, gate })));
    }
    let requests: Vec<JointRequest<'_>> =
        asked.iter().map(|(op, asked)| JointRequest::new(*op, call.named(asked.request()))).collect();
    let joint = call.answered(service.decide_together(&snapshot, &requests, service.read())).await?;
    Ok(reply::json(&AtomicBatch::from(&joint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_key_makes_a_batch_atomic() {
        assert!(is_atomic("atomic=true").unwrap());
        assert!(!is_atomic("").unwrap() && !is_atomic("atomic=false").unwrap());
        for wrong in ["atomic", "atomic=1", "atomic=yes", "atomically=true", "x=1&atomic=true"] {
            assert!(is_atomic(wrong).is_err(), "{wrong}");
        }
    }
}
