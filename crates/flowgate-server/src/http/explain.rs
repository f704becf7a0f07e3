//! `POST /v1/explain`: why would this be decided so? Every rule, and how its limits stand. Changes nothing.

use flowgate_api::Explanation;
use hyper::body::Incoming;

use super::error::Error;
use super::reply::{self, Reply};
use super::request::CallRequest;
use super::{Call, body};

/// `{"fields":{..},"cost":1,"gate":false}` -> `{"decision":{..},"ban":null,"rules":[..]}`.
pub(super) async fn explain(call: &Call<'_>, body: Incoming) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let snapshot = call.shared.service.snapshot();
    let asked = CallRequest::new(call.shared, &snapshot, body::parse(&body)?);
    let explanation = call.answered(call.shared.service.explain_by(&snapshot, &asked.request())).await?;
    Ok(reply::json(&Explanation::from(&explanation)))
}
