//! `/v1/rules`: reads, checks, changes and rolls back the configuration file.
//!
//! Files are read and written on threads of their own, so that no event loop waits for a disk.

use std::str;
use std::sync::Arc;

use flowgate_api::{History, ReplacedRules, Rollback, Validation};
use flowgate_engine::config::{Config, LoadedConfig, Report};
use hyper::header::{ETAG, HeaderName};
use percent_encoding::percent_decode;
use tokio::time::timeout;

use super::body::Body;
use super::error::Error;
use super::head::{self, Header};
use super::reply::{self, Reply};
use super::{Call, body};
use crate::rules_file::{
    AdminFile, FileState, FileText, MAX_NOTE_BYTES, Precondition, Text, Turn, WriteError, WriteReport,
};

const TOML: &str = "application/toml";

/// The header with the author's note about a version.
const NOTE: &str = "x-flowgate-note";

/// What the server made of the text that is on disk.
const FILE_STATE: HeaderName = HeaderName::from_static("x-flowgate-file");

/// The text, with an `ETag` and its state. Secrets are hidden.
pub(super) async fn read(call: &Call<'_>) -> Result<Reply, Error> {
    let FileText { text, state } = on_disk(call, |file| file.read().map_err(WriteError::Io)).await??;
    let mut reply = with_etag(reply::with_type(text.text, TOML), &text.etag);
    reply.header(
        &FILE_STATE,
        match state {
            FileState::InForce => "in-force",
            FileState::Wrong => "wrong",
            FileState::Changing => "changing",
        },
    );
    Ok(reply)
}

/// Replaces the text that `If-Match` names. Hidden secrets keep their values.
pub(super) async fn write(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let expected = expected(call.headers()).ok_or(Error::NoIfMatch)?;
    let note = note(call.headers())?;
    let text = text(call, body).await?;
    let written = in_turn(call, move |file, turn| file.write(turn, &text, &expected, note.as_deref())).await??;
    Ok(written_reply(&written))
}

/// Checks a text: `{"valid":true,"rules":3,"restart_needed":[],"findings":[..],"report":".."}`.
pub(super) async fn validate(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let text = text(call, body).await?;
    let checked = on_disk(call, move |file| {
        let loaded = file.check(&text)?;
        Ok((file.restart_needed(&loaded.config), loaded))
    });
    let checked: Result<_, Report> = checked.await?;
    Ok(reply::json(&match &checked {
        Ok((restart_needed, LoadedConfig { config, warnings, .. })) => Validation {
            valid: true,
            rules: Some(config.policy.rules.len() as u64),
            restart_needed: restart_needed.iter().map(|&setting| setting.into()).collect(),
            findings: warnings.into(),
        },
        Err(report) => Validation::wrong(report.into()),
    }))
}

/// `{"versions":[{"version":2,"time":1700000000,"bytes":512,"note":null,"author":{"by":"admin token", ..}}, ..]}`, newest first.
pub(super) async fn history(call: &Call<'_>) -> Result<Reply, Error> {
    let versions = on_disk(call, |file| file.versions().map_err(WriteError::Io)).await??;
    Ok(reply::json(&History { versions }))
}

/// `{"version":n}`: puts the text of that version in force, as a new version.
pub(super) async fn roll_back(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let Rollback { version } = body::parse(&body)?;
    let expected = expected(call.headers()).unwrap_or(Precondition::Anything);
    let note = note(call.headers())?;
    let written = in_turn(call, move |file, turn| file.roll_back(turn, version, &expected, note.as_deref())).await??;
    Ok(written_reply(&written))
}

/// The text of a version, with an `ETag`. Secrets are hidden.
pub(super) async fn version(call: &Call<'_>) -> Result<Reply, Error> {
    let number = call.head.path.rsplit('/').next().and_then(|number| number.parse().ok());
    let number: u64 = number.ok_or(WriteError::NoSuchVersion)?;
    let Text { text, etag } = on_disk(call, move |file| file.version(number)).await??;
    Ok(with_etag(reply::with_type(text, TOML), &etag))
}

/// Loads the configuration file, and a draft in its place.
pub(super) async fn both(call: &Call<'_>, draft: String) -> Result<(Config, Config), Error> {
    let (file, draft) = on_disk(call, move |file| (file.check_file(), file.check(&draft))).await?;
    let draft = draft.map_err(|report| Error::Rules(WriteError::Wrong(report)))?;
    Ok((file?.map_err(Error::WrongFile)?.config, draft.config))
}

/// Works on the file on a thread of its own.
async fn on_disk<T: Send + 'static>(
    call: &Call<'_>,
    work: impl FnOnce(&AdminFile) -> T + Send + 'static,
) -> Result<T, Error> {
    let file = call.shared.rules.get().map(Arc::clone).ok_or(Error::NoFile)?;
    call.on_thread(move || work(&file)).await
}

/// As [`on_disk`], for a change, one at a time.
async fn in_turn<T: Send + 'static>(
    call: &Call<'_>,
    work: impl FnOnce(&AdminFile, Turn) -> T + Send + 'static,
) -> Result<T, Error> {
    let file = call.shared.rules.get().ok_or(Error::NoFile)?;
    let turn = timeout(call.shared.request_timeout, file.turn(call.author())).await.map_err(|_| Error::Overloaded)?;
    on_disk(call, move |file| work(file, turn)).await
}

pub(super) async fn text(call: &Call<'_>, body: Body<'_>) -> Result<String, Error> {
    // A web page of another site can send plain text without this server's consent, but not this type.
    if !body::is_type(call.headers(), TOML) {
        return Err(Error::ContentType(TOML));
    }
    let body = body::read(call.shared, body).await?;
    String::from_utf8(body.to_vec()).map_err(|_| Error::Body("expected UTF-8".to_owned()))
}

/// The note in `X-Flowgate-Note`, whose characters beyond ASCII are percent-encoded.
fn note(headers: &[Header<'_>]) -> Result<Option<String>, Error> {
    let Some(value) = head::value(headers, NOTE) else { return Ok(None) };
    let text = percent_decode(value).decode_utf8();
    match text {
        Ok(text) if text.len() <= MAX_NOTE_BYTES => Ok(Some(text.into_owned()).filter(|text| !text.is_empty())),
        Ok(_) => Err(Error::invalid(NOTE, format!("longer than {MAX_NOTE_BYTES} bytes"))),
        Err(_) => Err(Error::invalid(NOTE, "expected percent-encoded UTF-8")),
    }
}

/// The texts that `If-Match` names; `None`: there is no such header.
fn expected(headers: &[Header<'_>]) -> Option<Precondition> {
    let mut etags = Vec::new();
    for value in head::values(headers, "if-match") {
        // A value that is not text matches nothing.
        for etag in head::printable(value).unwrap_or_default().split(',').map(str::trim) {
            if etag == "*" {
                return Some(Precondition::Anything);
            }
            etags.push(etag.to_owned());
        }
    }
    (!etags.is_empty()).then_some(Precondition::Etags(etags))
}

fn written_reply(written: &WriteReport) -> Reply {
    let (rules, findings) = (written.rules as u64, (&written.warnings).into());
    let restart_needed = written.restart_needed.iter().map(|&setting| setting.into()).collect();
    let replaced = ReplacedRules { version: written.version, rules, restart_needed, findings };
    with_etag(reply::json(&replaced), &written.etag)
}

fn with_etag(mut reply: Reply, etag: &str) -> Reply {
    reply.header(&ETAG, etag);
    reply
}
