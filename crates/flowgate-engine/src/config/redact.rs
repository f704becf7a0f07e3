//! A configuration text to show and to take back: secrets are hidden on the way out and put back on the way in.
//!
//! Rule       What is hidden is what no report ever shows. Where the syntax is wrong, whole lines are hidden.
//! Rule       `***` stands for the secret that the old text has under the same key. Where that has none, it stays, and
//!            loading the text refuses it.

use std::path::Path;

use super::render::HIDDEN;
use super::report::Report;
use super::secret;
use super::tree::{self, Node};

/// The text with `***` for each secret.
///
/// ```
/// use flowgate_engine::config::{hide_secrets, restore_secrets};
///
/// let text = "[auth]\napi_token = 's3cret' # for the shop\n";
/// assert_eq!(hide_secrets(text), "[auth]\napi_token = '***' # for the shop\n");
/// assert_eq!(restore_secrets("auth = { api_token = \"***\" }", text), "auth = { api_token = 's3cret' }");
/// ```
pub fn hide_secrets(text: &str) -> String {
    let mut report = Report::default();
    tree::read_file(&mut report, String::new(), Path::new(""), text);
    let mut secrets = report.sources().first().map(|source| source.secrets().to_vec()).unwrap_or_default();
    secrets.sort_unstable_by_key(|secret| (secret.start, std::cmp::Reverse(secret.end)));
    let (mut shown, mut from) = (String::with_capacity(text.len()), 0);
    for secret in secrets {
        // Of those that overlap, the first hides what they share.
        if secret.start >= from {
            shown.push_str(text.get(from..secret.start).unwrap_or_default());
            shown.push_str(HIDDEN);
        }
        from = from.max(secret.end);
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    shown
}

/// The new text with the secrets of the old one where it says `***`.
pub fn restore_secrets(new: &str, old: &str) -> String {
    let (mut report, mut old_report) = (Report::default(), Report::default());
    let tree = tree::read_file(&mut report, String::new(), Path::new(""), new);
    let old_tree = tree::read_file(&mut old_report, String::new(), Path::new(""), old);
    let old_places = secret::places(&old_tree);
    let mut hidden: Vec<(&Node, &Node)> = Vec::new();
    for (key, node) in secret::places(&tree) {
        let is_hidden = report.sources().written(node.at).trim_matches(['"', '\'']) == HIDDEN;
        let before = old_places.iter().find(|(other, _)| *other == key).map(|(_, node)| *node);
        hidden.extend(before.filter(|_| is_hidden).map(|before| (node, before)));
    }
    hidden.sort_unstable_by_key(|(node, _)| node.at);
    let mut restored = new.to_owned();
    // From the end, so that places before it stay where they are.
    for (node, before) in hidden.into_iter().rev() {
        restored.replace_range(node.at.start..node.at.end, old_report.sources().written(before.at));
    }
    restored
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[auth]
resp_password = "pass\"word"
admin_token = """adm1n"""
insecure = false
[store]
type = "redis"
url = "redis://user:word@host/0"
cluster = ["redis://a", "redis://:x@b"]
[[rule]]
name = "token"
message = "password"
limits = ["5/60s"]
"#;

    #[test]
    fn what_was_hidden_comes_back() {
        let shown = hide_secrets(TEXT);
        for secret in ["word\"", "adm1n", ":word", ":x@"] {
            assert!(
                !shown.contains(secret) || secret == "word\"" && shown.contains("\"password\""),
                "{secret}: {shown}"
            );
        }
        assert!(
            shown.contains("resp_password = \"***\"") && shown.contains("cluster = [\"redis://a\", \"***\"]"),
            "{shown}"
        );
        assert_eq!(restore_secrets(&shown, TEXT), TEXT);
        let edited = shown.replace("5/60s", "6/60s").replace("insecure = false\n", "");
        assert_eq!(restore_secrets(&edited, TEXT), TEXT.replace("5/60s", "6/60s").replace("insecure = false\n", ""));
    }

    #[test]
    fn what_was_never_there_stays_hidden() {
        let new = "[auth]\napi_token = \"***\"\nadmin_token = \"other\"\n";
        assert_eq!(restore_secrets(new, "[auth]\nadmin_token = \"one\"\n"), new);
        assert_eq!(hide_secrets("rule = []\n"), "rule = []\n");
    }

    #[test]
    fn broken_texts_show_no_secret() {
        let shown = hide_secrets("[auth\napi_token = \"s3cret\"\nadmin_token = adm1n\n");
        assert!(!shown.contains("s3cret") && !shown.contains("adm1n"), "{shown}");
    }
}
