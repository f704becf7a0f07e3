//! `argsJson=[{"Id":"0","Arg":"<urlencoded k=v&k=v>"}, ..]`: several requests in one.
//!
//! `Arg` is a query string, encoded once more, as Koala's clients send it.

use std::borrow::Cow;

use flowgate_api::koala;
use flowgate_engine::http::decoded_query;

use super::form::Form;
use crate::http::{Error, reply};

/// The most jobs of a call. The event loop decides all jobs without a pause, so more would delay its other connections.
const MAX_JOBS: usize = 1000;

/// One of the requests.
#[derive(Debug)]
pub(super) struct Job {
    id: String,
    query: String,
}

impl Job {
    /// The fields of the request.
    pub(super) fn form(&self) -> Result<Form<'_>, Error> {
        Form::read(b"", &self.query)
    }
}

/// The requests that `argsJson` holds.
pub(super) fn read(form: &Form<'_>) -> Result<Vec<Job>, Error> {
    const FIELD: &str = "argsJson";
    let Some(text) = form.get(FIELD) else { return Err(Error::invalid(FIELD, "it is missing")) };
    let unreadable = |error| Error::invalid(FIELD, format!(r#"expected [{{"Id":"0","Arg":"k%3Dv"}}, ..]: {error}"#));
    let sent: Vec<koala::Job> = serde_json::from_str(text).map_err(unreadable)?;
    if sent.len() > MAX_JOBS {
        return Err(Error::invalid(FIELD, format!("more than {MAX_JOBS} requests")));
    }
    let decoded = |arg: String| match decoded_query(&arg) {
        Cow::Borrowed(_) => arg,
        Cow::Owned(decoded) => decoded,
    };
    Ok(sent.into_iter().map(|koala::Job { id, arg }| Job { id, query: decoded(arg) }).collect())
}

/// `[{"Id":"0","Result":..}, ..]`.
pub(super) fn written(jobs: &[Job], result: impl Fn(usize, &mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + jobs.len() * 256);
    out.push(b'[');
    for (index, job) in jobs.iter().enumerate() {
        out.extend_from_slice(if index == 0 { br#"{"Id":"# } else { br#",{"Id":"# });
        out.extend_from_slice(&reply::written(&job.id));
        out.extend_from_slice(br#","Result":"#);
        result(index, &mut out);
        out.push(b'}');
    }
    out.push(b']');
    out
}
