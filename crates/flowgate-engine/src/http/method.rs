//! One spelling for a method: some sites take `post` for `POST`, so no spelling slips past a rule.

use std::borrow::Cow;

/// The field of a request's method.
pub(crate) const METHOD_FIELD: &str = "method";

/// The one spelling of a method: in upper case.
///
/// ```
/// use flowgate_engine::http::normalized_method;
///
/// assert_eq!(["GET", "get"].map(normalized_method), ["GET", "GET"]);
/// ```
pub fn normalized_method(method: &str) -> Cow<'_, str> {
    if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
        method.to_ascii_uppercase().into()
    } else {
        method.into()
    }
}
