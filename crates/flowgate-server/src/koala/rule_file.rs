//! `/v1/koala`: the rule file in force, and a check of the text of another.

use std::path::Path;
use std::sync::Arc;

use flowgate_api::koala::{FileRule, RuleFile, RuleText};
use flowgate_api::{BrokenFile, Validation};
use flowgate_engine::front::absolute;
use flowgate_koala::{LoadedKoala, RuleDescription};
use hyper::Method;

use super::{KoalaInForce, endpoints};
use crate::http::body::Body;
use crate::http::route_table::{self, routes};
use crate::http::{Access, Call, Error, Reply, body, broken, reply};
use crate::service::Service;

// All rows are described in `openapi.json`.
routes! { call, body:
    "/v1/koala" Read { GET => read(call).await }
    "/v1/koala/validate" Admin { POST => validate(call, body).await }
    _ => endpoints::answer(call, body).await
}

fn in_force(call: &Call<'_>) -> Result<Arc<KoalaInForce>, Error> {
    let koala = call.shared.service.koala_rules();
    koala.ok_or(Error::NoSuchThing("there are no Koala rules: name a rule file by koala.rules or --koala"))
}

/// The rules with today's counts of each, and the whole file as TOML.
async fn read(call: &Call<'_>) -> Result<Reply, Error> {
    let (service, koala, broken) = (call.shared.service.clone(), in_force(call)?, broken(call.shared));
    // Paths in the TOML are relative to the configuration's directory, or to the server's working directory.
    let directory = call.shared.rules.get().map_or_else(|| absolute(Path::new("")), |file| file.directory());
    let written = call.on_thread(move || document(&service, &koala, broken, &directory)).await?;
    Ok(reply::json_text(written))
}

fn document(service: &Service, koala: &KoalaInForce, broken: Option<BrokenFile>, directory: &Path) -> Vec<u8> {
    let now = service.now();
    let rule = |rule: RuleDescription<'_>| FileRule {
        number: rule.counts.rule,
        line: rule.line,
        method: rule.method.into(),
        conditions: rule.conditions.to_owned().into(),
        time: rule.time,
        count: rule.count,
        base: rule.base,
        result: rule.result.into(),
        passed: rule.counts.allowed,
        refused: rule.counts.denied,
    };
    let rules = koala.rules.describe(now).map(rule).collect();
    reply::written(&RuleFile { now: now.into(), broken, rules, toml: koala.rules.file.to_toml(directory) })
}

/// Checks a text in place of the rule file: `{"valid":true,"rules":3,"findings":[..],"report":".."}`.
async fn validate(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let koala = in_force(call)?;
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let RuleText { text } = body::parse(&body)?;
    let text = text.0.into_owned();
    let checked = call.on_thread(move || koala.rules.file.check(&text)).await?;
    Ok(reply::json(&match &checked {
        Ok(LoadedKoala { file, warnings, .. }) => {
            let (rules, findings) = (Some(file.number_of_rules() as u64), warnings.into());
            Validation { valid: true, rules, restart_needed: Vec::new(), findings }
        }
        Err(report) => Validation::wrong(report.into()),
    }))
}
