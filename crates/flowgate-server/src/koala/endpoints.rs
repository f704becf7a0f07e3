//! Koala's endpoints: fields as query parameters, also as a form; answers as its clients read them.
//!
//! Rule       A field that is given twice has its last value; the form comes after the query. `_writeThrough` and
//!            `_feedbackType` are options, and rules match them like any other field.
//! Rule       Without a rule file in force, all paths answer 404. Paths of `/v1` tell why.

use std::sync::Arc;

use flowgate_api::koala::{CounterValue, Counters, RuleCounter};
use flowgate_koala::{KoalaAnswer, KoalaAsk, KoalaErase, RuleCounts};
use hyper::{Method, StatusCode};

use super::form::Form;
use super::{KoalaInForce, jobs};
use crate::http::body::Body;
use crate::http::{Access, Call, Error, Reply, body, reply};

/// The endpoints of Koala.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Browse,
    BrowseComplete,
    Update,
    Feedback,
    Value,
    MultiBrowse,
    MultiUpdate,
    AllRules,
    Counters,
    Alive,
}

const UPDATED: &str = r#"{"err_no":0, "err_msg":"OK"}"#;
const ALIVE: &str = r#"{"errno": 0, "errmsg": "OK!"}"#;
const STORE_AWAY: &str = r#"{"errno": -1, "errmsg": "redis-error!"}"#;
const UNKNOWN_RULE: &str = r#"{"err_no":-2, "err_msg":"unknown rule_no!"}"#;
const VALUE_AWAY: &str = r#"{"err_no":-1, "err_msg":"system error!"}"#;

/// All routes, the most frequent first. `GET` and `POST` do the same.
const ROUTES: &[(&str, Access, Endpoint)] = &[
    ("/rule/browse", Access::Decide, Endpoint::Browse),
    ("/rule/update", Access::Decide, Endpoint::Update),
    ("/multi/browse", Access::Decide, Endpoint::MultiBrowse),
    ("/multi/update", Access::Decide, Endpoint::MultiUpdate),
    ("/rule/browse_complete", Access::Decide, Endpoint::BrowseComplete),
    ("/rule/feedback", Access::Decide, Endpoint::Feedback),
    ("/rule/value", Access::Decide, Endpoint::Value),
    ("/admin/allrules", Access::Admin, Endpoint::AllRules),
    ("/admin/counters", Access::Admin, Endpoint::Counters),
    ("/monitor/alive", Access::Open, Endpoint::Alive),
];

/// Answers a request to a path that no other route has.
pub(super) async fn answer(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let path = call.head.path;
    let Some(koala) = call.shared.service.koala_rules() else { return Err(Error::NoSuchPath) };
    let Some((_, access, endpoint)) = ROUTES.iter().find(|(known, ..)| *known == path) else {
        return Ok(reply::text("not found").with_status(StatusCode::NOT_FOUND));
    };
    call.check_access(*access)?;
    if !matches!(*call.head.method, Method::GET | Method::HEAD | Method::POST) {
        return Err(Error::Method("GET, HEAD, POST"));
    }
    let sent = body::read_form(call.shared, call.headers(), body).await?;
    let form = Form::read(&sent, call.head.query.unwrap_or_default())?;
    let koala = Koala { call, koala };
    match endpoint {
        Endpoint::Browse => koala.browse(&form).await,
        Endpoint::BrowseComplete => koala.complete(&form).await,
        Endpoint::Update => koala.update(&form).await,
        Endpoint::Feedback => koala.feedback(&form).await,
        Endpoint::Value => koala.value(&form).await,
        Endpoint::MultiBrowse => koala.multi_browse(&form).await,
        Endpoint::MultiUpdate => koala.multi_update(&form).await,
        Endpoint::AllRules => Ok(reply::text(koala.koala.rules.file.text.to_string())),
        Endpoint::Counters => koala.counters(&form),
        Endpoint::Alive => Ok(alive(call).await),
    }
}

/// Asks the store for a key, to learn whether the store answers.
async fn alive(call: &Call<'_>) -> Reply {
    let service = &call.shared.service;
    match call.answered(service.key_lifetime(b"koala:alive", service.read())).await {
        Ok(Ok(_)) => reply::json_text(ALIVE),
        Ok(Err(_)) | Err(_) => reply::json_text(STORE_AWAY).with_status(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// One request to Koala.
struct Koala<'c> {
    call: &'c Call<'c>,
    koala: Arc<KoalaInForce>,
}

impl Koala<'_> {
    async fn browse(&self, form: &Form<'_>) -> Result<Reply, Error> {
        let answer = self.ask(browse_ask(form), form).await?;
        Ok(reply::json_text(self.koala.answers.one(&answer)))
    }

    async fn complete(&self, form: &Form<'_>) -> Result<Reply, Error> {
        let ask = if writes_through(form) { KoalaAsk::CompleteAndCount } else { KoalaAsk::Complete };
        let answer = self.ask(ask, form).await?;
        Ok(reply::json_text(self.koala.answers.list(&answer)))
    }

    async fn update(&self, form: &Form<'_>) -> Result<Reply, Error> {
        self.ask(KoalaAsk::Update, form).await?;
        Ok(reply::json_text(UPDATED))
    }

    async fn ask(&self, ask: KoalaAsk, form: &Form<'_>) -> Result<KoalaAnswer, Error> {
        let service = &self.call.shared.service;
        self.call.answered(service.koala(&self.koala, ask, &form.request(), service.read())).await
    }

    async fn feedback(&self, form: &Form<'_>) -> Result<Reply, Error> {
        let erase = match form.get("_feedbackType") {
            None | Some("erase1") => KoalaErase::Erase1,
            Some("erase2") => KoalaErase::Erase2,
            Some(_) => return Err(Error::invalid("_feedbackType", "expected erase1 or erase2")),
        };
        let given = self.call.shared.service.koala_feedback(&self.koala, erase, &form.request());
        self.call.answered(given).await??;
        Ok(reply::json_text(UPDATED))
    }

    async fn value(&self, form: &Form<'_>) -> Result<Reply, Error> {
        let Some(number) = form.get("rule_no").and_then(|number| number.parse().ok()) else {
            return Ok(reply::json_text(UNKNOWN_RULE).with_status(StatusCode::BAD_REQUEST));
        };
        let value = self.call.shared.service.koala_value(&self.koala, number, &form.request());
        match self.call.answered(value).await? {
            Ok(Some(value)) => Ok(reply::json(&CounterValue { err_no: 0, err_msg: "", cache_val: value })),
            Ok(None) => Ok(reply::json_text(UNKNOWN_RULE).with_status(StatusCode::BAD_REQUEST)),
            Err(_) => Ok(reply::json_text(VALUE_AWAY).with_status(StatusCode::INTERNAL_SERVER_ERROR)),
        }
    }

    async fn multi_browse(&self, form: &Form<'_>) -> Result<Reply, Error> {
        let jobs = jobs::read(form)?;
        let met = self.decide(&jobs, browse_ask).await?;
        let answers = &self.koala.answers;
        Ok(reply::json_text(jobs::written(&jobs, |index, out| out.extend_from_slice(&answers.one(&met[index])))))
    }

    async fn multi_update(&self, form: &Form<'_>) -> Result<Reply, Error> {
        let jobs = jobs::read(form)?;
        self.decide(&jobs, |_| KoalaAsk::Update).await?;
        Ok(reply::json_text(jobs::written(&jobs, |_, out| out.extend_from_slice(UPDATED.as_bytes()))))
    }

    /// Sends all questions before it waits for the first answer, so that they share a round trip.
    async fn decide(&self, jobs: &[jobs::Job], ask: impl Fn(&Form<'_>) -> KoalaAsk) -> Result<Vec<KoalaAnswer>, Error> {
        let at = self.call.shared.service.read();
        let mut asked = Vec::with_capacity(jobs.len());
        // All jobs are read before the first is counted, so a mistake refuses the whole batch.
        let forms = jobs.iter().map(jobs::Job::form).collect::<Result<Vec<_>, _>>()?;
        for form in &forms {
            asked.push(self.call.shared.service.koala(&self.koala, ask(form), &form.request(), at));
        }
        let mut met = Vec::with_capacity(asked.len());
        for answer in asked {
            met.push(self.call.answered(answer).await?);
        }
        Ok(met)
    }

    fn counters(&self, form: &Form<'_>) -> Result<Reply, Error> {
        let only = form.get("rule_no");
        let mut counts = self.koala.rules.daily_counts(self.call.shared.service.now());
        if let Some(only) = only {
            counts.retain(|rule| rule.rule.to_string() == only);
            if counts.is_empty() {
                return Ok(reply::json_text(UNKNOWN_RULE).with_status(StatusCode::BAD_REQUEST));
            }
        }
        let counter = |rule: &RuleCounts| RuleCounter { rule_no: rule.rule, allow: rule.allowed, deny: rule.denied };
        Ok(reply::json(&Counters { err_no: 0, err_msg: "", counters: counts.iter().map(counter).collect() }))
    }
}

fn browse_ask(form: &Form<'_>) -> KoalaAsk {
    if writes_through(form) { KoalaAsk::BrowseAndCount } else { KoalaAsk::Browse }
}

fn writes_through(form: &Form<'_>) -> bool {
    form.get("_writeThrough") == Some("yes")
}
