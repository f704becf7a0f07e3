//! What a request was charged, until it is known how the request ended.

use std::sync::Arc;

use flowgate::Op;
use flowgate_engine::{self as engine, Decision};
use http::Response;
use http::request::Parts;

use crate::fields::{FieldError, FieldValue};
use crate::layer::{Outcome, Settings};
use crate::response;

/// What a request was charged: enough to refund it. Dropping it settles it.
pub(crate) struct Charge {
    settings: Arc<Settings>,
    /// The values of the settings' fields.
    values: Vec<Option<FieldValue>>,
    cost: u64,
    pub(crate) decision: Arc<Decision>,
    progress: Progress,
}

/// What has become of a request so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The request waits for its turn.
    Waiting,
    /// The inner service has the request.
    Reached,
    /// The request has ended, or was denied: nothing is left to refund.
    Settled,
}

impl Charge {
    pub(crate) fn new(settings: &Arc<Settings>, head: &Parts) -> Result<Charge, FieldError> {
        let values = settings.fields.iter().map(|(_, value)| value(head)).collect::<Result<Vec<_>, _>>()?;
        let cost = settings.cost.as_ref().map_or(1, |cost| cost(head));
        let at = settings.clock.read();
        let take = Op::TakeWithin(settings.max_delay.into());
        let decision = settings.engine.decide(take, &request(settings, &values, cost), at);
        let progress = if decision.allowed() { Progress::Waiting } else { Progress::Settled };
        Ok(Charge { settings: Arc::clone(settings), values, cost, decision: Arc::new(decision), progress })
    }

    /// The inner service gets the request now.
    pub(crate) fn reached(&mut self) {
        self.progress = Progress::Reached;
    }

    /// The service has failed without a response.
    pub(crate) fn failed(&mut self) {
        self.settle(Outcome::Failed);
    }

    /// The service has responded: adds the headers, after a refund.
    pub(crate) fn answered<R>(&mut self, response: &mut Response<R>) {
        let outcome = Outcome::Answered { status: response.status(), headers: response.headers() };
        let refunded = self.settle(outcome);
        let decision = refunded.as_ref().unwrap_or(&self.decision);
        response::add_headers(response.headers_mut(), decision, &self.settings.families);
    }

    /// Refunds the charge if the outcome asks for it, and returns how the limits stand then.
    fn settle(&mut self, outcome: Outcome<'_>) -> Option<Decision> {
        self.progress = Progress::Settled;
        let refund_if = self.settings.refund_if.as_ref()?;
        refund_if(outcome).then(|| self.refund())
    }

    fn refund(&self) -> Decision {
        let Charge { settings, values, cost, .. } = self;
        settings.engine.decide(Op::Refund, &request(settings, values, *cost), settings.clock.read())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        match self.progress {
            Progress::Waiting => {
                self.refund();
            }
            Progress::Reached => {
                self.settle(Outcome::Dropped);
            }
            Progress::Settled => {}
        }
    }
}

/// The request as the engine sees it.
fn request<'a>(settings: &'a Settings, values: &'a [Option<FieldValue>], cost: u64) -> engine::Request<'a> {
    let mut request = engine::Request::new().cost(cost);
    for ((name, _), value) in settings.fields.iter().zip(values) {
        match value {
            Some(FieldValue { text, counted: None }) => request.push(name, text),
            Some(FieldValue { text, counted: Some(counted) }) if request.counted.is_none() => {
                request.push(name, text);
                request = request.counted_as(name, counted);
            }
            // Only one field of a request can have a second value to count by. Further fields have that second value
            // alone, for conditions, too.
            Some(FieldValue { counted: Some(counted), .. }) => request.push(name, counted),
            None => {}
        }
    }
    request
}
