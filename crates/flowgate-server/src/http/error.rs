//! Errors to clients: the one table from an error to a status, a text and a code.
//!
//! Rule       4xx is the caller's mistake and says what to change and where; 503 asks to retry. 500 is a fault that
//!            only the operator can mend, and no input causes it.
//! Rule       A code names one kind of mistake and never changes. With the values it says what the text says, so that a
//!            client can say it in another language.

use std::borrow::Cow;

use flowgate::{LimitError, OtherAlgorithm, Span};
use flowgate_api::{ErrorBody, Values};
use flowgate_engine::bans::{BanOrderError, MAX_BANS, MAX_BANS_BYTES};
use hyper::StatusCode;
use hyper::header;

use super::reply::{self, Reply};
use crate::rules_file::WriteError;
use crate::service::{BanError, StoreAway};

/// Why a request fails. Displayed as `error`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{problem}")]
    Invalid { field: Cow<'static, str>, problem: String },
    #[error("expected a length such as \"10m\", \"1h\" or \"7d\", at most 366d")]
    BanLength,
    #[error(transparent)]
    Ban(#[from] BanOrderError),
    #[error("the body: {0}")]
    Body(String),
    #[error("content-type: expected {0}")]
    ContentType(&'static str),
    #[error("the body exceeds {0} bytes")]
    TooLarge(usize),
    #[error("the body did not arrive in time")]
    BodyTimeout,
    #[error("the body broke off")]
    BodyBroken,
    #[error("no such path")]
    NoSuchPath,
    #[error("{0}")]
    NoSuchThing(&'static str),
    #[error("the method does not fit: use {0}")]
    Method(&'static str),
    #[error("authorization: expected `Bearer` and the {0}")]
    Unauthorized(&'static str),
    #[error("the token is neither the admin token, which `flowgate token` prints, nor the view token")]
    WrongToken,
    #[error("too many wrong tokens from this address: try again in {} s", .0.as_secs_ceil())]
    TooManyLogins(Span),
    #[error("{0}")]
    Forbidden(&'static str),
    #[error("the key is in use by a limit of another algorithm")]
    OtherAlgorithm(#[from] OtherAlgorithm),
    #[error(transparent)]
    Away(#[from] StoreAway),
    #[error("nothing is recorded: start a recording by POST /v1/sample")]
    NothingRecorded,
    #[error("another draft is being tried: one at a time")]
    TryUnderWay,
    #[error("the try took longer than 10 seconds")]
    TryTooLong,
    #[error("the configuration file is wrong, so there is nothing to compare with: {0}")]
    WrongFile(flowgate_engine::config::Report),
    #[error("no answer in time")]
    Overloaded,
    #[error("there is no configuration file: start the server with --config FILE")]
    NoFile,
    #[error("if-match: expected the etag of the text that is to be replaced, or *")]
    NoIfMatch,
    #[error(transparent)]
    Rules(#[from] WriteError),
}

impl Error {
    /// A mistake in a field of the body or the query.
    pub(crate) fn invalid(field: impl Into<Cow<'static, str>>, problem: impl ToString) -> Error {
        Error::Invalid { field: field.into(), problem: problem.to_string() }
    }

    fn status(&self) -> StatusCode {
        match self {
            Error::Invalid { .. }
            | Error::BanLength
            | Error::Ban(_)
            | Error::Body(_)
            | Error::BodyBroken
            | Error::Rules(WriteError::Wrong(_)) => StatusCode::BAD_REQUEST,
            Error::Unauthorized(_) | Error::WrongToken => StatusCode::UNAUTHORIZED,
            Error::TooManyLogins(_) => StatusCode::TOO_MANY_REQUESTS,
            Error::Forbidden(_) => StatusCode::FORBIDDEN,
            Error::NoSuchPath | Error::NoSuchThing(_) | Error::Rules(WriteError::NoSuchVersion) => {
                StatusCode::NOT_FOUND
            }
            Error::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Error::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Error::NothingRecorded | Error::TryUnderWay | Error::WrongFile(_) => StatusCode::CONFLICT,
            Error::OtherAlgorithm(_) | Error::NoFile | Error::Rules(WriteError::NotInForce(_)) => StatusCode::CONFLICT,
            Error::Rules(WriteError::Changed) => StatusCode::PRECONDITION_FAILED,
            Error::NoIfMatch => StatusCode::PRECONDITION_REQUIRED,
            Error::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            // A full disk, or a file without write permission.
            Error::Rules(WriteError::Io(_)) => StatusCode::INTERNAL_SERVER_ERROR,
            Error::Away(_) | Error::Overloaded | Error::TryTooLong => StatusCode::SERVICE_UNAVAILABLE,
            Error::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }

    /// The part of the request that is wrong, if it is one part.
    fn field(&self) -> Option<&str> {
        match self {
            Error::Invalid { field, .. } => Some(field),
            Error::BanLength => Some("for"),
            Error::Ban(error) => Some(match error {
                BanOrderError::Field => "field",
                BanOrderError::TooLong { part, .. } => part,
                BanOrderError::Value { .. } | BanOrderError::Full | BanOrderError::TooMuchText => "value",
            }),
            Error::ContentType(_) => Some("content-type"),
            Error::Unauthorized(_) => Some("authorization"),
            Error::WrongToken => Some("token"),
            Error::OtherAlgorithm(_) => Some("limit"),
            Error::NoIfMatch | Error::Rules(WriteError::Changed) => Some("if-match"),
            Error::Rules(WriteError::NoSuchVersion) => Some("version"),
            _ => None,
        }
    }

    /// The name of the mistake.
    fn code(&self) -> &'static str {
        match self {
            Error::Invalid { .. } => "invalid",
            Error::BanLength => "ban-length",
            Error::Ban(BanOrderError::Value { .. }) => "ban-value",
            Error::Ban(BanOrderError::Field) => "ban-field",
            Error::Ban(BanOrderError::TooLong { .. }) => "ban-too-long",
            Error::Ban(BanOrderError::Full) => "bans-full",
            Error::Ban(BanOrderError::TooMuchText) => "bans-too-much-text",
            Error::Body(_) => "body",
            Error::ContentType(_) => "content-type",
            Error::TooLarge(_) => "body-too-large",
            Error::BodyTimeout => "body-late",
            Error::BodyBroken => "body-broken",
            Error::NoSuchPath => "no-such-path",
            Error::NoSuchThing(_) => "not-found",
            Error::Method(_) => "method",
            Error::Unauthorized(_) => "unauthorized",
            Error::WrongToken => "wrong-token",
            Error::TooManyLogins(_) => "too-many-wrong-tokens",
            Error::Forbidden(_) => "forbidden",
            Error::OtherAlgorithm(_) => "other-algorithm",
            Error::Away(_) => "store-away",
            Error::NothingRecorded => "nothing-recorded",
            Error::TryUnderWay => "try-under-way",
            Error::TryTooLong => "try-too-long",
            Error::WrongFile(_) => "file-wrong",
            Error::Overloaded => "overloaded",
            Error::NoFile => "no-file",
            Error::NoIfMatch => "no-if-match",
            Error::Rules(WriteError::Changed) => "file-changed",
            Error::Rules(WriteError::Wrong(_)) => "rules-wrong",
            Error::Rules(WriteError::NoSuchVersion) => "no-such-version",
            Error::Rules(WriteError::NotInForce(_)) => "not-in-force",
            Error::Rules(WriteError::Io(_)) => "file-failed",
        }
    }

    /// The values in the text, by name.
    fn values(&self) -> Values<'_> {
        let of = |values: &[(&'static str, String)]| -> Values<'_> {
            values.iter().map(|(name, value)| ((*name).into(), value.clone().into())).collect()
        };
        match self {
            Error::TooLarge(most) => of(&[("most", most.to_string())]),
            Error::TooManyLogins(wait) => of(&[("seconds", wait.as_secs_ceil().to_string())]),
            Error::Ban(BanOrderError::Value { found, .. }) => of(&[("value", found.clone())]),
            Error::Ban(BanOrderError::TooLong { part, length, max }) => {
                of(&[("part", (*part).to_owned()), ("length", length.to_string()), ("most", max.to_string())])
            }
            Error::Ban(BanOrderError::Full) => of(&[("most", MAX_BANS.to_string())]),
            Error::Ban(BanOrderError::TooMuchText) => of(&[("most", MAX_BANS_BYTES.to_string())]),
            Error::Rules(WriteError::Wrong(report)) => of(&[("mistakes", report.errors().to_string())]),
            Error::Rules(WriteError::NotInForce(problem)) => of(&[("problem", problem.clone())]),
            Error::Rules(WriteError::Io(problem)) => of(&[("problem", problem.to_string())]),
            _ => Values::new(),
        }
    }

    /// A header that goes with the status.
    fn header(&self) -> Option<(header::HeaderName, Cow<'static, str>)> {
        match self {
            Error::TooManyLogins(wait) => Some((header::RETRY_AFTER, wait.as_secs_ceil().to_string().into())),
            Error::Unauthorized(_) | Error::WrongToken => Some((header::WWW_AUTHENTICATE, "Bearer".into())),
            Error::Method(allowed) => Some((header::ALLOW, (*allowed).into())),
            Error::Away(_) | Error::Overloaded | Error::TryTooLong => Some((header::RETRY_AFTER, "1".into())),
            // The connection closes: the rest of the body would be read as the next request.
            Error::TooLarge(_) | Error::BodyTimeout => Some((header::CONNECTION, "close".into())),
            _ => None,
        }
    }

    pub(crate) fn reply(&self) -> Reply {
        let (error, field) = (self.to_string().into(), self.field().map(Cow::from));
        let body = ErrorBody { error, field, code: self.code().into(), values: self.values() };
        let mut reply = reply::json(&body).with_status(self.status());
        if let Some((name, value)) = self.header() {
            reply.header(&name, &*value);
        }
        reply
    }
}

impl From<LimitError> for Error {
    fn from(error: LimitError) -> Error {
        Error::invalid("limit", error)
    }
}

impl From<BanError> for Error {
    fn from(error: BanError) -> Error {
        match error {
            BanError::Order(error) => error.into(),
            BanError::Away(away) => away.into(),
        }
    }
}
