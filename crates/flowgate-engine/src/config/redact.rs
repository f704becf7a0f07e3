//! A configuration text for administrators: secrets are hidden when it is shown, and restored when it is written back.
//!
//! Rule       The hidden parts are those that reports hide, too. Where the syntax is wrong, whole lines are hidden.
//! Rule       `***` stands for the secret of the old text under the same key. Without such a secret `***` stays, and
//!            loading the text is an error.
//! Rule       `***2` stands for the second element of the list that the old text has under the same key, and `# ***2`
//!            for the second comment that the old text hides. A comment is restored only to a place where it would be
//!            hidden again.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use super::comments;
use super::render::HIDDEN;
use super::report::Report;
use super::secret;
use super::tree;

/// The text with `***` for each secret, numbered in a list, and a numbered `***` for each comment that may hold one.
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
    let tree = tree::read_file(&mut report, String::new(), Path::new(""), text);
    let secrets = sorted_secrets(&report);
    let comments = hidden_comments(text, &secrets);
    let places = secret::places(&tree);
    // The places of elements, by their ends.
    let elements: BTreeMap<usize, (usize, usize)> =
        places.iter().filter_map(|(key, node)| Some((node.at.end, (node.at.start, number(key)?)))).collect();
    let (mut shown, mut from) = (String::with_capacity(text.len()), 0);
    for secret in secrets {
        // If two places overlap, the first one hides the part that they share.
        if secret.start >= from {
            shown.push_str(text.get(from..secret.start).unwrap_or_default());
            let element = elements.range(secret.end..).next().filter(|(_, (start, _))| *start <= secret.start);
            match (comments.binary_search_by_key(&secret.start, |comment| comment.start), element) {
                (Ok(index), _) => shown.push_str(&format!(" {HIDDEN}{}", index + 1)),
                (Err(_), Some((_, (_, number)))) => shown.push_str(&format!("{HIDDEN}{number}")),
                (Err(_), None) => shown.push_str(HIDDEN),
            }
        }
        from = from.max(secret.end);
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    shown
}

/// The new text, with the secrets of the old text in place of `***`.
pub fn restore_secrets(new: &str, old: &str) -> String {
    let (mut report, mut old_report) = (Report::default(), Report::default());
    let tree = tree::read_file(&mut report, String::new(), Path::new(""), new);
    let old_tree = tree::read_file(&mut old_report, String::new(), Path::new(""), old);
    let old_places: HashMap<_, _> = secret::places(&old_tree).into_iter().collect();
    let mut hidden: Vec<HiddenPlace<'_>> = Vec::new();
    for (mut key, node) in secret::places(&tree) {
        let written = report.sources.written(node.at).trim_matches(['"', '\'']);
        let Some(said) = written.strip_prefix(HIDDEN) else { continue };
        match (key.as_mut_slice(), said.parse::<usize>()) {
            ([_, _, index], Ok(number)) if number > 0 => *index = (number - 1).to_string(),
            (key, _) if said.is_empty() && number(key).is_none() => {}
            _ => continue,
        }
        if let Some(before) = old_places.get(&key) {
            let before = old_report.sources.written(before.at);
            hidden.push(HiddenPlace { place: node.at.start..node.at.end, before, is_comment: false });
        }
    }
    let old_comments = hidden_comments(old, &sorted_secrets(&old_report));
    for place in comments::find(new) {
        let number = new[place.clone()].trim().strip_prefix(HIDDEN).and_then(|number| number.parse::<usize>().ok());
        let before = number.and_then(|number| old_comments.get(number.checked_sub(1)?));
        if let Some(before) = before {
            hidden.push(HiddenPlace { place, before: &old[before.clone()], is_comment: true });
        }
    }
    hidden.sort_unstable_by_key(|hidden| hidden.place.start);
    let (restored, starts) = replaced(new, &hidden);
    let mut report = Report::default();
    tree::read_file(&mut report, String::new(), Path::new(""), &restored);
    let hidden_again = hidden_comments(&restored, &sorted_secrets(&report));
    let is_hidden_again = |start| hidden_again.binary_search_by_key(start, |comment| comment.start).is_ok();
    let mut starts = starts.iter();
    hidden.retain(|hidden| starts.next().is_some_and(is_hidden_again) || !hidden.is_comment);
    replaced(new, &hidden).0
}

/// A hidden part of a new text, and its meaning.
struct HiddenPlace<'a> {
    place: Range<usize>,
    before: &'a str,
    is_comment: bool,
}

/// The restored text, and the beginning of each restored part.
fn replaced(text: &str, hidden: &[HiddenPlace<'_>]) -> (String, Vec<usize>) {
    let (mut replaced, mut starts, mut from) = (String::with_capacity(text.len()), Vec::new(), 0);
    for HiddenPlace { place, before, .. } in hidden {
        replaced.push_str(&text[from..place.start]);
        starts.push(replaced.len());
        replaced.push_str(before);
        from = place.end;
    }
    (replaced + &text[from..], starts)
}

/// The number of an element in its list, from 1; `None` for the key of anything else.
fn number(key: &[String]) -> Option<usize> {
    let [_, _, index] = key else { return None };
    index.parse().ok().map(|index: usize| index + 1)
}

/// The hidden parts of the text, in order; of parts with the same beginning, the longest first.
fn sorted_secrets(report: &Report) -> Vec<Range<usize>> {
    let mut secrets = report.sources.first().map(|source| source.secrets.to_vec()).unwrap_or_default();
    secrets.sort_unstable_by_key(|secret| (secret.start, std::cmp::Reverse(secret.end)));
    secrets.dedup_by_key(|secret| secret.start);
    secrets
}

/// The comments among them: no other hidden part follows a `#` directly.
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
            shown.contains("resp_password = \"***\"") && shown.contains("cluster = [\"redis://a\", \"***2\"]"),
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
                        cluster = [\"***1\", # ***6\n] # ***7\n[[rule]] # \"@vip\"\n";
        assert_eq!(shown, expected);
        assert_eq!(restore_secrets(&shown, text), text);
        // Lines may move and go: numbers say which comment is meant.
        let edited = "[auth] # ***3\n# ***4\n# ***8\n# ***0\n# ***1 and more\nresp_password = \"***\"\n";
        let expected = "[auth] # was hunter2 \n# s3same is for the shop\n# ***8\n# ***0\n# ***1 and more\n\
                        resp_password = \"s3same\"\n";
        assert_eq!(restore_secrets(edited, text), expected);
    }

    /// Elements come and go: numbers say which one is meant.
    #[test]
    fn an_element_of_a_list_comes_back_wherever_it_stands() {
        let old = "store.cluster = [\"redis://a\", \"redis://:x@b\", 'redis://:y@c']\n";
        assert_eq!(hide_secrets(old), "store.cluster = [\"redis://a\", \"***2\", '***3']\n");
        for (new, expected) in [
            ("[\"***2\", \"***3\"]", "[\"redis://:x@b\", 'redis://:y@c']"),
            ("['***3']", "['redis://:y@c']"),
            ("[\"redis://d\", \"***3\", \"***2\"]", "[\"redis://d\", 'redis://:y@c', \"redis://:x@b\"]"),
            // Which one is not said.
            ("[\"***\", \"***4\"]", "[\"***\", \"***4\"]"),
        ] {
            let restored = restore_secrets(&format!("store.cluster = {new}\n"), old);
            assert_eq!(restored, format!("store.cluster = {expected}\n"));
        }
    }

    #[test]
    fn a_comment_comes_back_only_where_it_is_hidden_again() {
        let old = "[auth] # one\n# two\nresp_password = \"s3same\"\n[log]\n# not s3same\n";
        let moved = "[auth]\n# ***2\nresp_password = \"***\"\n[log] # ***1\n# ***3\n";
        let expected = "[auth]\n# two\nresp_password = \"s3same\"\n[log] # ***1\n# not s3same\n";
        assert_eq!(restore_secrets(moved, old), expected);
        let changed = "[auth] # ***1\nresp_password = \"other\"\n[log]\n# ***3\n";
        assert_eq!(restore_secrets(changed, old), changed.replacen("***1", "one", 1));
    }

    #[test]
    fn the_name_of_a_section_may_stand_in_quotes() {
        for header in ["[\"auth\"]", "[ 'auth' ]", "[auth . x]", "['auth'.x]"] {
            let shown = hide_secrets(&format!("{header} # hunter2\n# hunter2\n"));
            assert!(!shown.contains("hunter2"), "{shown}");
        }
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

    /// The pieces from which the test builds a text to restore.
    const PIECES: [&str; 26] = [
        "[auth]",
        "[store]",
        "[[rule]]",
        "\n",
        "\n",
        "\n",
        "# ***1",
        "#***2",
        " # ***3\n",
        "url = ",
        "cluster = [",
        "]",
        ",",
        "\"***\"",
        "'***1'",
        "\"***2",
        "\"\"\"",
        "resp_password = \"***\"",
        "\u{fc}",
        "\u{fc}\n",
        "api_token = \"\u{fc}",
        "'''",
        "\\",
        "#",
        " = ",
        "token\u{fc}: ",
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

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

        /// A new text may be anything.
        #[test]
        fn any_text_can_be_restored_and_shows_no_more(
            new in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..24),
            lines in proptest::collection::vec(proptest::sample::select(&LINES[..]), 0..12),
        ) {
            let (new, old) = (new.concat(), lines.join("\n"));
            hide_secrets(&new);
            let restored = restore_secrets(&new, &old);
            restore_secrets(&old, &new);
            let mut report = Report::default();
            tree::read_file(&mut report, String::new(), Path::new(""), &old);
            if !report.has_errors() {
                proptest::prop_assert!(!hide_secrets(&restored).contains("s3cret"), "{}\n{}", restored, old);
            }
        }
    }

    /// A client may send any text. The time to hide and restore its secrets grows only in proportion to its length.
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
    fn a_secret_in_the_wrong_place_is_hidden() {
        for text in [
            "api_token = \"s3cret\"\n",
            "[[auth]]\napi_token = \"s3cret\"\n",
            "[Auth]\nx = \"s3cret\"\n",
            "[auth.x.y]\nz = \"s3cret\"\n",
            "[store.redis]\npassword = \"s3cret\"\n",
            "store.login.password.of = [\"s3cret\"]\n",
            "[store]\ncluster = [[\"redis://:s3cret@h\"]]\n",
            "[store]\nurl = \"redis://:s3cret\\u0040h\"\n",
            "[tls]\npassphrase = \"s3cret\"\n",
        ] {
            let shown = hide_secrets(text);
            assert!(!shown.contains("s3cret"), "{text}: {shown}");
        }
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
            "[auth\nx = \"s3cret\"\n",
            "[auth]\napi_token \"s3cret\"\n",
            "[auth]\napi_token: s3cret\n",
            "[auth]\napi_token = \"s3cret\u{fc}\n# c\n",
            "[auth]\napi_token = \n\"s3cret\"\n",
            "[auth]\napi_token =\n\n[s3cret]\n",
        ] {
            let shown = hide_secrets(broken);
            assert!(!shown.contains("s3cret"), "{broken}: {shown}");
        }
    }
}
