//! A configuration text to show and to take back: secrets are hidden on the way out and put back on the way in.
//!
//! Rule       What is hidden is what no report ever shows. Where the syntax is wrong, whole lines are hidden.
//! Rule       `***` stands for the secret that the old text has under the same key. Where that has none, it stays, and
//!            loading the text refuses it.
//! Rule       `# ***2` stands for the second comment that the old text hides.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use super::comments;
use super::render::HIDDEN;
use super::report::Report;
use super::secret;
use super::tree;

/// The text with `***` for each secret, and a numbered `***` for each comment that may hold one.
///
/// ```
/// use flowgate_engine::config::{hide_secrets, restore_secrets};
///
/// let text = "[auth]\napi_token = 's3cret' # for the shop\n";
/// assert_eq!(hide_secrets(text), "[auth]\napi_token = '***' # ***1\n");
/// assert_eq!(restore_secrets(&hide_secrets(text), text), text);
/// assert_eq!(restore_secrets("auth = { api_token = \"***\" }", text), "auth = { api_token = 's3cret' }");
/// ```
pub fn hide_secrets(text: &str) -> String {
    let mut report = Report::default();
    tree::read_file(&mut report, String::new(), Path::new(""), text);
    let secrets = sorted_secrets(&report);
    let comments = hidden_comments(text, &secrets);
    let (mut shown, mut from) = (String::with_capacity(text.len()), 0);
    for secret in secrets {
        // Of those that overlap, the first hides what they share.
        if secret.start >= from {
            shown.push_str(text.get(from..secret.start).unwrap_or_default());
            match comments.binary_search_by_key(&secret.start, |comment| comment.start) {
                Ok(index) => shown.push_str(&format!(" {HIDDEN}{}", index + 1)),
                Err(_) => shown.push_str(HIDDEN),
            }
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
    let old_places: HashMap<_, _> = secret::places(&old_tree).into_iter().collect();
    let mut hidden: Vec<(Range<usize>, &str)> = Vec::new();
    for (key, node) in secret::places(&tree) {
        let is_hidden = report.sources().written(node.at).trim_matches(['"', '\'']) == HIDDEN;
        if is_hidden && let Some(before) = old_places.get(&key) {
            hidden.push((node.at.start..node.at.end, old_report.sources().written(before.at)));
        }
    }
    let old_comments = hidden_comments(old, &sorted_secrets(&old_report));
    for comment in comments::find(new) {
        let number = new[comment.clone()].trim().strip_prefix(HIDDEN).and_then(|number| number.parse::<usize>().ok());
        let before = number.and_then(|number| old_comments.get(number.checked_sub(1)?));
        if let Some(before) = before {
            hidden.push((comment, &old[before.clone()]));
        }
    }
    hidden.sort_unstable_by_key(|(place, _)| place.start);
    let (mut restored, mut from) = (String::with_capacity(new.len()), 0);
    for (place, before) in hidden {
        restored.push_str(&new[from..place.start]);
        restored.push_str(before);
        from = place.end;
    }
    restored + &new[from..]
}

/// What is hidden in the text that was read, in order; of those that begin together the longest first.
fn sorted_secrets(report: &Report) -> Vec<Range<usize>> {
    let mut secrets = report.sources().first().map(|source| source.secrets().to_vec()).unwrap_or_default();
    secrets.sort_unstable_by_key(|secret| (secret.start, std::cmp::Reverse(secret.end)));
    secrets.dedup_by_key(|secret| secret.start);
    secrets
}

/// Those of them that are comments. Nothing else that is hidden stands right behind a `#`.
fn hidden_comments(text: &str, secrets: &[Range<usize>]) -> Vec<Range<usize>> {
    let is_comment = |secret: &&Range<usize>| text.get(..secret.start).is_some_and(|before| before.ends_with('#'));
    secrets.iter().filter(is_comment).cloned().collect()
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
    fn comments_show_no_secret_and_come_back() {
        let text = "# resp_password = \"old-s3cret\"\n[auth]\n#\nresp_password = \"s3same\" # was hunter2 \r\n\
                    # s3same is for the shop\n# for the shop\n[store]\n#redis://:word@host\n\
                    cluster = [\"redis://:gr33n@b\", # y before\n] # not gr33n\n[[rule]] # \"@vip\"\n";
        let shown = hide_secrets(text);
        let expected = "# ***1\n[auth]\n# ***2\nresp_password = \"***\" # ***3\r\n# ***4\n# for the shop\n[store]\n# ***5\n\
                        cluster = [\"***\", # ***6\n] # ***7\n[[rule]] # \"@vip\"\n";
        assert_eq!(shown, expected);
        assert_eq!(restore_secrets(&shown, text), text);
        // Lines may move and go: numbers say which comment is meant.
        let edited = "[auth] # ***3\n# ***4\n# ***8\n# ***0\n# ***1 and more\nresp_password = \"***\"\n";
        let expected = "[auth] # was hunter2 \n# s3same is for the shop\n# ***8\n# ***0\n# ***1 and more\n\
                        resp_password = \"s3same\"\n";
        assert_eq!(restore_secrets(edited, text), expected);
    }

    /// Lines of a configuration, right and wrong, some with a secret.
    const LINES: [&str; 16] = [
        "[auth]",
        "[store]",
        "[[rule]]",
        "resp_password = \"s3cret\"",
        "api_token = 's3cret' # was s3cret",
        "# the token is s3cret",
        "# no more than that",
        "admin_token = \"\"\"",
        "s3cret # s3cret\"\"\" # s3cret",
        "url = \"redis://:s3cret@h\"  #s3cret",
        "url = 'redis://h?password=s3cret'",
        "cluster = [ # s3cret is the password",
        "\"redis://u:s3cret@h\", # s3cret",
        "]",
        "name = \"# a\" # b",
        "",
    ];

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

        #[test]
        fn what_is_shown_comes_back_as_it_was(
            lines in proptest::collection::vec(proptest::sample::select(&LINES[..]), 0..12),
            end in proptest::sample::select(&["\n", "\r\n"][..]),
        ) {
            let text = lines.join(end);
            let mut report = Report::default();
            tree::read_file(&mut report, String::new(), Path::new(""), &text);
            let shown = hide_secrets(&text);
            if !report.has_errors() {
                proptest::prop_assert_eq!(restore_secrets(&shown, &text), text);
            }
        }
    }

    /// Texts of others are hidden and restored in time that grows as they do.
    #[test]
    fn many_secrets_and_comments_take_no_time() {
        let lines: String = (0..4_000).map(|number| format!("k{number} = \"a@b{number}\" # c\n")).collect();
        let text = format!("[auth]\n{lines}[server]\n{}", lines.replace(" = ", "_token = "));
        let shown = hide_secrets(&text);
        assert!(shown.contains("# ***8000") && !shown.contains("a@b"));
        assert!(restore_secrets(&shown, &text) == text);
    }

    #[test]
    fn parameters_of_an_address_are_hidden_and_come_back() {
        let text = "[store]\nurl = \"redis://host/0?password=s3cret\"\n[log]\nlevel = \"info\"\n";
        assert_eq!(hide_secrets(text), text.replace("redis://host/0?password=s3cret", "***"));
        assert_eq!(restore_secrets(&hide_secrets(text), text), text);
    }

    #[test]
    fn what_was_never_there_stays_hidden() {
        let new = "[auth]\napi_token = \"***\"\nadmin_token = \"other\"\n";
        assert_eq!(restore_secrets(new, "[auth]\nadmin_token = \"one\"\n"), new);
        assert_eq!(hide_secrets("rule = []\n"), "rule = []\n");
        assert_eq!(
            hide_secrets("[auth]\n# hunter2 until May\n\n# Rules\n[[rule]]\n"),
            "[auth]\n# ***1\n\n# Rules\n[[rule]]\n"
        );
    }

    #[test]
    fn broken_texts_show_no_secret() {
        let shown = hide_secrets("[auth\napi_token = \"s3cret\"\nadmin_token = adm1n\n");
        assert!(!shown.contains("s3cret") && !shown.contains("adm1n"), "{shown}");
        for broken in [
            "a = \"\"\"\n# the password is s3cret\n",
            "x = \"\n# api_token = s3cret # s3cret\n",
            "url = redis://h?password=s3cret\n",
            "x\nurl = \"redis://h/0?password=s3cret\"\n",
            "[auth\nresp_password = \"a\" # was s3cret\n",
        ] {
            let shown = hide_secrets(broken);
            assert!(!shown.contains("s3cret"), "{broken}: {shown}");
        }
    }
}
