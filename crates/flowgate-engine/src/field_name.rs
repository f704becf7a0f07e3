//! The names of fields: one vocabulary for gates, logs, middleware and calls of the API.
//!
//! ```text
//! ip  method  host  path  header.NAME  query.NAME     a request, behind a gateway and in a log
//! user  status                                        in addition, what a log knows
//! ```
//!
//! Rule       Some fields have a second name, such as `ua`. Requests, rules and bans are kept under the first name, so
//!            either name on one side meets either name on the other.

/// The field of the client's user agent; `ua` is another name of it.
pub const USER_AGENT: &str = "header.user-agent";
/// The field of the page that a request comes from.
pub const REFERER: &str = "header.referer";

/// The first name of a field: `header.user-agent` for `ua`. The two headers that logs have may be written in any case.
///
/// ```
/// use flowgate_engine::field_name::canonical;
///
/// assert_eq!(["ua", "header.User-Agent", "user"].map(canonical), ["header.user-agent", "header.user-agent", "user"]);
/// ```
#[inline]
pub fn canonical(name: &str) -> &str {
    match name.len() {
        2 if name == "ua" => USER_AGENT,
        // Nearly all callers write the first name, and equal texts are compared faster.
        14 if name == REFERER || name.eq_ignore_ascii_case(REFERER) => REFERER,
        17 if name == USER_AGENT || name.eq_ignore_ascii_case(USER_AGENT) => USER_AGENT,
        _ => name,
    }
}
