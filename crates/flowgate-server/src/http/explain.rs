//! `POST /v1/explain`: why a request would be decided as it would be: every rule, and the state of its limits. Changes
//! nothing.

use std::borrow::Cow;

use flowgate_api::{Explanation, FrontReport, RuleReport};

use super::body::Body;
use super::error::Error;
use super::reply::{self, Reply};
use super::request::CallRequest;
use super::{Call, body};
use crate::fronts::FrontExplanation;

/// `{"fields":{..},"cost":1,"gate":false}` -> `{"decision":{..},"ban":null,"rules":[..],"fields":[..]}`, with `paused_until` while
/// the rules are paused, and `fronts` where other systems' rules are served.
pub(super) async fn explain(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let snapshot = call.shared.service.snapshot();
    let asked = CallRequest::new(call.shared, &snapshot, body::parse(&body)?);
    let (service, request) = (&call.shared.service, asked.request());
    let (explained, of_fronts) = (service.explain(&snapshot, &request), snapshot.fronts.explain(service, &request));
    let (explained, of_fronts) = (call.answered(explained).await?, call.answered(of_fronts).await?);
    let mut fields: Vec<Cow<'_, str>> = snapshot.rules.field_names().map(Cow::from).collect();
    fields.sort_unstable();
    let mut explanation = Explanation {
        fields,
        paused_until: service.paused().map(|pause| pause.until.into()),
        fronts: of_fronts.iter().map(front).collect(),
        ..Explanation::from(&explained)
    };
    // Who imposed a ban is for those who may read the list of bans.
    if let Some(ban) = explanation.ban.as_mut().filter(|_| !call.may_read()) {
        ban.author = None;
    }
    Ok(reply::json(&explanation))
}

fn front(FrontExplanation { name, allowed, rule, explanation }: &FrontExplanation) -> FrontReport<'_> {
    let rules = explanation.rules.iter().map(RuleReport::from).collect();
    FrontReport { name: (*name).into(), allowed: *allowed, rule: rule.as_deref().map(Into::into), rules }
}
