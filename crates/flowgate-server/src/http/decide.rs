//! `POST /v1/take` and its siblings, and `POST /v1/batch`: requests by their fields, decided by the rules.

use flowgate_engine::{Decision, Request};
use hyper::body::Incoming;
use serde::Deserialize;

use super::error::Error;
use super::fields::{Cost, Fields};
use super::reply::{self, Reply};
use super::{Call, body, json};
use crate::decision_json;
use crate::service::{Answer, Operation};

/// A decision is about this long.
const DECISION: usize = 256;

/// A batch is decided in one go; a longer one would hold up the other connections of its event loop.
const MAX_BATCH: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked<'b> {
    #[serde(borrow)]
    fields: Fields<'b>,
    #[serde(default)]
    cost: Cost,
    #[serde(default)]
    gate: bool,
}

impl<'b> Asked<'b> {
    /// Reads a body.
    pub(super) fn read(call: &Call<'_>, body: &'b [u8]) -> Result<Asked<'b>, Error> {
        let mut asked: Asked<'b> = body::parse(body)?;
        if asked.gate {
            let spelling = call.shared.service.rules().path_spelling();
            asked.fields.as_at_the_gate(call.shared.gate.addresses(), spelling);
        }
        Ok(asked)
    }

    pub(super) fn request(&self) -> Request<'_> {
        self.fields.request(self.cost)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item<'b> {
    #[serde(default)]
    op: Operation,
    #[serde(borrow)]
    fields: Fields<'b>,
    #[serde(default)]
    cost: Cost,
    #[serde(default)]
    gate: bool,
}

/// `{"fields":{..},"cost":1,"gate":false}` -> a decision.
pub(super) async fn one(call: &Call<'_>, body: Incoming, operation: Operation) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let asked = Asked::read(call, &body)?;
    let decision = call.answered(call.shared.service.decide(operation, &call.named(asked.request()))).await?;
    let mut out = Vec::with_capacity(DECISION);
    decision_json::write(&mut out, &decision);
    Ok(reply::json(out))
}

/// `[{"op":"take","fields":{..},"cost":1,"gate":false}, ..]` -> as many decisions, in order. One mistake, and nothing is done.
pub(super) async fn batch(call: &Call<'_>, body: Incoming) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let mut items: Vec<Item<'_>> = body::parse(&body)?;
    if items.len() > MAX_BATCH {
        return Err(Error::invalid(format!("[{MAX_BATCH}]"), format!("more than {MAX_BATCH} requests")));
    }
    let spelling = call.shared.service.rules().path_spelling();
    for item in items.iter_mut().filter(|item| item.gate) {
        item.fields.as_at_the_gate(call.shared.gate.addresses(), spelling);
    }
    let at = call.shared.service.read();
    // All are asked before the first is waited for, so that they share a round trip.
    let ask = |item: &Item<'_>| call.shared.service.decide_at(item.op, &call.named(item.fields.request(item.cost)), at);
    let answers: Vec<Answer<Decision>> = items.iter().map(ask).collect();
    let mut decisions = Vec::with_capacity(answers.len());
    for answer in answers {
        decisions.push(call.answered(answer).await?);
    }
    let mut out = Vec::with_capacity(DECISION * decisions.len());
    json::list(&mut out, &decisions, decision_json::write);
    Ok(reply::json(out))
}
