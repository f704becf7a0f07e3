//! A denial in headers, for a gateway that chooses its status and does not pass its body on.
//!
//! nginx's `auth_request` knows 403 alone and drops the body. So `/gate/403` says in `X-Flowgate-Status` what `/gate`
//! would have answered, and in `X-Flowgate-Problem` the problem document, for the gateway to hand to its client.
//!
//! Bound      A document of at most [`MAX_DOCUMENT_BYTES`]: a gateway that cannot read the head of an answer takes
//!            Flowgate for away, and lets the request through. A longer document goes without the rule's message and
//!            the names of the rules.

use flowgate_api::Problem;
use hyper::header::HeaderName;

use crate::http::reply::Reply;

const STATUS: HeaderName = HeaderName::from_static("x-flowgate-status");
const PROBLEM: HeaderName = HeaderName::from_static("x-flowgate-problem");

/// The most bytes of a problem document. nginx reads heads of 4 KiB by default, and the other headers need a part of
/// it.
const MAX_DOCUMENT_BYTES: usize = 2048;

/// Adds what the client should get.
pub(super) fn describe(mut problem: Problem<'_>, reply: &mut Reply) {
    reply.header_number(&STATUS, problem.status.into());
    let mut document = ascii_json(&problem);
    if document.len() > MAX_DOCUMENT_BYTES {
        (problem.detail, problem.violated_policies) = (None, None);
        document = ascii_json(&problem);
    }
    reply.header(&PROBLEM, document);
}

/// JSON whose characters beyond printable ASCII are escaped.
fn ascii_json(problem: &Problem<'_>) -> String {
    // A document whose keys are texts can always be written.
    let json = serde_json::to_string(problem).unwrap_or_default();
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if matches!(character, ' '..='~') {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                text += &format!("\\u{unit:04x}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(detail: &str) -> String {
        let mut reply = crate::http::reply::empty(hyper::StatusCode::FORBIDDEN);
        describe(Problem { code: Some(7), ..Problem::forbidden(403, detail) }, &mut reply);
        let headers = reply.into_response().into_parts().0.headers;
        assert_eq!(headers[STATUS], "403");
        headers[PROBLEM].to_str().unwrap().to_owned()
    }

    #[test]
    fn every_message_is_printable_ascii_and_reads_the_same() {
        for detail in ["Go away.", "请稍后再试 🚦", "a \"quote\"\r\n\u{7f}\\", ""] {
            let document = described(detail);
            let read: Problem<'_> = serde_json::from_str(&document).unwrap();
            assert_eq!(read.detail.as_deref(), Some(detail), "{document}");
        }
    }

    #[test]
    fn a_long_message_is_left_out() {
        for (length, kept) in [(1900, true), (2048, false), (1_000_000, false)] {
            let document = described(&"x".repeat(length));
            let read: Problem<'_> = serde_json::from_str(&document).unwrap();
            assert_eq!((read.detail.is_some(), read.code), (kept, Some(7)), "{length} bytes");
            assert!(document.len() <= MAX_DOCUMENT_BYTES, "{}", document.len());
        }
        assert!(described(&"试".repeat(600)).len() < MAX_DOCUMENT_BYTES, "escaped, it is longer");
    }
}
