//! Random rule files: the reader answers each one without a panic or a hang, and with a bounded number of findings.

use std::fs;
use std::sync::OnceLock;

use flowgate_engine::config::load;
use proptest::prelude::*;

use super::*;

/// Every file under `testdata/koala`, valid and invalid ones.
fn samples() -> &'static [String] {
    static SAMPLES: OnceLock<Vec<String>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/koala");
        let mut paths = vec![root.join("sample.conf")];
        for directory in ["errors", "warnings"] {
            paths.extend(fs::read_dir(root.join(directory)).unwrap().map(|entry| entry.unwrap().path()));
        }
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
        paths.sort();
        paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    })
}

/// Loads a text, and if it is valid, uses it in every way.
fn digest(text: &str) {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/koala/errors");
    match KoalaFile::load(Input::Text { name: "fuzz.conf", base: &base, text }, "UTC") {
        Ok(loaded) => {
            let toml = loaded.file.to_toml(Path::new("/nowhere"));
            let input = Input::Text { name: "fuzz.toml", base: Path::new(""), text: &toml };
            if let Err(report) = load(input, []) {
                panic!("{report}\nin\n{toml}");
            }
            let engine = engine();
            let rules = KoalaRules::new(loaded.file, engine.memory(), None).unwrap();
            for fields in ["act=ask qid=1 ip=10.0.0.1", "uid=7", "act=index_page ip=x"] {
                let answer = rules.decide(&engine, KoalaAsk::CompleteAndCount, &request(fields), time("0s"));
                answer.exceeded().for_each(|rule| _ = rules.result_of(rule).fields(rules.number(rule)).count());
            }
            assert!(loaded.warnings.to_string().len() < 200_000);
        }
        Err(report) => {
            assert!(report.has_errors());
            assert!(report.to_string().len() < 200_000);
            assert!(report.entries().count() <= 100);
        }
    }
}

#[derive(Clone, Debug)]
enum Edit {
    Delete(usize, usize),
    Insert(usize, String),
    Splice(usize, usize, usize, usize),
}

impl Edit {
    fn apply(&self, text: &mut String) {
        let boundary = |text: &str, at: usize| text.floor_char_boundary(at % (text.len() + 1));
        match self {
            Edit::Delete(at, length) => {
                let start = boundary(text, *at);
                let end = text.floor_char_boundary((start + length).min(text.len())).max(start);
                text.replace_range(start..end, "");
            }
            Edit::Insert(at, piece) => text.insert_str(boundary(text, *at), piece),
            Edit::Splice(at, sample, from, length) => {
                let donor = &samples()[sample % samples().len()];
                let start = boundary(donor, *from);
                let end = donor.floor_char_boundary((start + length).min(donor.len())).max(start);
                text.insert_str(boundary(text, *at), &donor[start..end]);
            }
        }
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    let pieces = proptest::sample::select(vec![
        "[",
        "]",
        "{~}",
        "{*}",
        "{",
        "}",
        "!",
        "=",
        "@",
        ">",
        "<",
        "-",
        "-IN-",
        "-NOTIN-",
        ",",
        ";",
        ":",
        "#",
        " ",
        "\t",
        "\r",
        "\n",
        "*",
        "+",
        "..",
        "/",
        "\"",
        "\\",
        "\\u",
        "0",
        "99999999999999999999",
        "-1",
        "10.0.0.1",
        "::1",
        "é",
        "评论",
        "\u{0}",
    ]);
    let piece = prop_oneof![pieces.prop_map(str::to_owned), "\\PC{0,6}"];
    prop_oneof![
        (any::<usize>(), 0..60usize).prop_map(|(at, length)| Edit::Delete(at, length)),
        (any::<usize>(), piece).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        (any::<usize>(), any::<usize>(), any::<usize>(), 0..120usize)
            .prop_map(|(at, s, f, l)| Edit::Splice(at, s, f, l)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_edited_file_is_read_or_reported(sample in any::<usize>(), edits in proptest::collection::vec(edit(), 0..8)) {
        let mut text = samples()[sample % samples().len()].clone();
        edits.iter().for_each(|edit| edit.apply(&mut text));
        digest(&text);
    }

    #[test]
    fn any_text_is_read_or_reported(text in "\\PC{0,200}") {
        digest(&text);
        digest(&format!("[rules]\nrule : {text}\n[result]\n2 : {text}"));
    }
}

#[test]
fn large_and_repetitive_files() {
    let rule =
        |number: usize| format!("rule : [count] [act=ask; qid=+] [time=60; count=5] [result=2; return={number}]\n");
    let many: String = (1..400).map(rule).collect();
    digest(&format!("[rules]\n{many}[result]\n2 : {{}}\n"));
    digest(&format!("[rules]\n{}", "rule : [count] [x]\n".repeat(20_000)));
    for piece in ["[", "-", "1-", "=", ";", ",", "\"", "{", "\\", "a@", "! ", "10.0.0.1-", "\n", "#"] {
        let long = piece.repeat(100_000);
        digest(&long);
        digest(&format!(
            "[rules]\nrule : [count] [k={long}] [time=60; count=5] [result=2; return=1]\n[result]\n2 : {{}}"
        ));
        digest(&format!("[result]\n2 : {{ \"a\":\"{long}\" }}"));
    }
    let numbered = |form: &str| (0..10_000).map(|number| form.replace('N', &number.to_string())).collect::<String>();
    digest(&format!("[rules]\nrule : [count] [{}] [time=60; count=5] [result=2; return=1]", numbered("fN=1;")));
    digest(&format!("[rules]\nrule : [count] [k!={}] [time=60; count=5] [result=1; return=1]", numbered("N,")));
    digest(&format!("[result]\n2 : {{ {} \"a\":1 }}", numbered("\"N\":1,")));
    digest(&format!("[dicts]\n{}", numbered("dN : wrong_entry.dat\n")));
}
