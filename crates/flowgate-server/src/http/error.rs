//! Errors to clients: the one table from an error to a status and a text.
//!
//! Rule       4xx is the caller's mistake and says what to change and where; 503 asks to retry. 500 is a fault that
//!            only the operator can mend, and no input causes it.

use std::borrow::Cow;

use flowgate::{LimitError, OtherAlgorithm, Span};
use flowgate_api::ErrorBody;
use flowgate_engine::bans::BanOrderError;
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
            Error::Invalid { .. } | Error::Body(_) | Error::BodyBroken | Error::Rules(WriteError::Wrong(_)) => {
                StatusCode::BAD_REQUEST
            }
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
            // A disk that is full, a file that may not be written.
            Error::Rules(WriteError::Io(_)) => StatusCode::INTERNAL_SERVER_ERROR,
            Error::Away(_) | Error::Overloaded | Error::TryTooLong => StatusCode::SERVICE_UNAVAILABLE,
            Error::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }

    /// The part of the request that is wrong, if it is one part.
    fn field(&self) -> Option<&str> {
        match self {
            Error::Invalid { field, .. } => Some(field),
            Error::ContentType(_) => Some("content-type"),
            Error::Unauthorized(_) => Some("authorization"),
            Error::WrongToken => Some("token"),
            Error::OtherAlgorithm(_) => Some("limit"),
            Error::NoIfMatch | Error::Rules(WriteError::Changed) => Some("if-match"),
            Error::Rules(WriteError::NoSuchVersion) => Some("version"),
            _ => None,
        }
    }

    /// A header that goes with the status.
    fn header(&self) -> Option<(header::HeaderName, Cow<'static, str>)> {
        match self {
            Error::TooManyLogins(wait) => Some((header::RETRY_AFTER, wait.as_secs_ceil().to_string().into())),
            Error::Unauthorized(_) | Error::WrongToken => Some((header::WWW_AUTHENTICATE, "Bearer".into())),
            Error::Method(allowed) => Some((header::ALLOW, (*allowed).into())),
            Error::Away(_) | Error::Overloaded | Error::TryTooLong => Some((header::RETRY_AFTER, "1".into())),
            // The rest of the body would be read as the next request.
            Error::TooLarge(_) | Error::BodyTimeout => Some((header::CONNECTION, "close".into())),
            _ => None,
        }
    }

    pub(crate) fn reply(&self) -> Reply {
        let body = ErrorBody { error: self.to_string().into(), field: self.field().map(Cow::from) };
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
            BanError::Order(BanOrderError::Field) => Error::invalid("field", error),
            BanError::Order(BanOrderError::TooLong { part, .. }) => Error::invalid(part, error),
            BanError::Order(BanOrderError::Value { .. } | BanOrderError::Full | BanOrderError::TooMuchText) => {
                Error::invalid("value", error)
            }
            BanError::Away(away) => away.into(),
        }
    }
}
