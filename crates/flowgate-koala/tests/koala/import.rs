//! The imported TOML decides as the original does.

use flowgate::Op;
use flowgate_engine::config::{Config, load};
use flowgate_engine::{DecidedBy, Decision};
use proptest::prelude::*;

use super::*;

fn import(file: &KoalaFile) -> Config {
    let toml = file.to_toml(Path::new("/nowhere"));
    let input = Input::Text { name: "imported.toml", base: Path::new(""), text: &toml };
    match load(input, []) {
        Ok(loaded) => loaded.config,
        Err(report) => panic!("{report}\nin\n{toml}"),
    }
}

#[test]
fn an_imported_file_reads_well() {
    let text = std::fs::read_to_string(testdata().join("sample.conf")).unwrap();
    let loaded = KoalaFile::load(Input::Text { name: "sample.conf", base: &testdata(), text: &text }, "Asia/Shanghai");
    let file = loaded.unwrap().file;
    let toml = file.to_toml(&testdata());
    let recorded = testdata().join("sample.toml");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&recorded, &toml).unwrap();
    }
    assert_eq!(toml, std::fs::read_to_string(&recorded).unwrap(), "UPDATE_SNAPSHOTS=1 records it anew");
    assert_eq!(import(&file).policy.rules.len(), file.number_of_rules());
    let losses = [
        "rule 1201 has erase1=2 and erase2=4, which the TOML leaves out; a caller gives units back by a refund of that \
         cost, which holds for every limit of the request",
        "rule 301 answers a pass when it is exceeded; the TOML has it as a shadow",
    ];
    assert_eq!(file.inexpressible(), losses);
    let elsewhere = file.to_toml(Path::new("/etc/flowgate"));
    assert!(
        elsewhere.contains(&format!("vip = {{ file = \"{}/dicts/vip.dat\", kind = \"mixed\" }}", testdata().display())),
        "{elsewhere}"
    );
}

fn testdata() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/koala").canonicalize().unwrap()
}

/// A random condition on one of three fields.
fn condition() -> impl Strategy<Value = String> {
    let texts =
        ["=ask", "=ask,answer", "=ask,answer{~}", "!=ask", "!=ask,answer", "=+", "=+{~}", " @ staff", "!@staff"];
    let numbers = ["=1-5", "!=1-5", ">3", "<3", "!>3", "=1,7", "=2-3,7", "!=2-3,7", " @ vip", " !@ vip", "=1-9{~}"];
    let addresses =
        ["=10.0.0.*", "!=10.0.0.*", "=10.0.0.1-10.0.0.3", "=10.0.0.1/31,11.0.0.1", "!=10.0.0.1/31", "=10.0.0.1"];
    let pick = |forms: &'static [&'static str], field: &'static str| {
        proptest::sample::select(forms).prop_map(move |form| format!("{field}{form}"))
    };
    // Each case leaks one text, and a test runs few cases.
    let leak = |forms: &[&'static str]| -> &'static [&'static str] { Vec::leak(forms.to_vec()) };
    prop_oneof![pick(leak(&texts), "act"), pick(leak(&numbers), "qid"), pick(leak(&addresses), "ip")]
}

fn rule_text() -> impl Strategy<Value = String> {
    let numbers = prop_oneof![
        3 => ((1..4u32), proptest::sample::select(vec![60, 3600, 86400])).prop_map(|(count, time)| {
            ("count", format!("time={time}; count={count}"))
        }),
        2 => (1..4u32, 1..3u32).prop_map(|(base, count)| ("base", format!("base={base}; time=60; count={count}"))),
        2 => (1..4u32).prop_map(|count| ("leak", format!("time=60; count={count}"))),
        1 => Just(("count", "time=60; count=0".to_owned())),
        1 => Just(("direct", String::new())),
    ];
    let conditions = proptest::collection::vec(condition(), 1..4);
    (numbers, conditions, 1..4u32).prop_map(|((method, numbers), conditions, result)| {
        // Only a direct rule may answer a pass: TOML cannot express a counting rule that does.
        let result = if method == "direct" { result } else { result.max(2) };
        format!("rule : [{method}] [{}] [{numbers}] [result={result}; return=NUMBER]", conditions.join("; "))
    })
}

#[derive(Clone, Debug)]
struct Step {
    seconds: u64,
    fields: Vec<(&'static str, &'static str)>,
    count: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let field = |name: &'static str, values: &'static [&'static str]| {
        prop_oneof![
            1 => Just(None),
            1 => Just(Some((name, ""))),
            8 => proptest::sample::select(values).prop_map(move |value| Some((name, value))),
        ]
    };
    let fields = (
        field("act", &["ask", "answer", "boss", "x"]),
        field("qid", &["1", "2", "3", "7", "x"]),
        field("ip", &["10.0.0.1", "10.0.0.2", "10.0.1.1", "11.0.0.1", "x"]),
    );
    let seconds = prop_oneof![5 => 0..20u64, 2 => 20..90u64, 1 => 3000..40_000u64];
    (seconds, fields, any::<bool>()).prop_map(|(seconds, (act, qid, ip), count)| Step {
        seconds,
        fields: [act, qid, ip].into_iter().flatten().collect(),
        count,
    })
}

/// The decision in the words of [`shown`].
fn said(decision: &Decision) -> String {
    match (decision.rule(), &decision.decided_by) {
        (Some(rule), DecidedBy::Rule(_)) => rule.code.unwrap().to_string(),
        (Some(rule), _) if !decision.allowed() => rule.code.unwrap().to_string(),
        _ if decision.matched() => "pass".to_owned(),
        _ => "none".to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// After the same counted history a peek by the TOML answers as a browse of the original. Counted requests match no
    /// direct rule, because Koala would count the rules below it, too.
    #[test]
    fn an_imported_file_decides_as_the_original(
        rules in proptest::collection::vec(rule_text(), 1..8),
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let numbered = |(index, rule): (usize, &String)| rule.replace("NUMBER", &(index + 1).to_string());
        let text: Vec<String> = rules.iter().enumerate().map(numbered).collect();
        let original = file(&text.join("\n"));
        let imported = Engine::new(&import(&original).policy, MemoryStore::default()).unwrap();
        let engine = engine();
        let koala = KoalaRules::new(original, engine.memory(), None).unwrap();
        let mut now = time("0s");
        for step in steps {
            now = now + Span::from_secs(step.seconds);
            let request: Request<'_> = step.fields.iter().copied().collect();
            let browsed = koala.decide(&engine, KoalaAsk::Browse, &request, now);
            let peeked = imported.decide(Op::Peek, &request, now);
            prop_assert_eq!(super::shown(&koala, &browsed), said(&peeked), "{:?} by\n{}", step, koala.file.to_toml(Path::new("/nowhere")));
            let direct = !koala.plan(KoalaAsk::Browse, &request).direct.is_empty();
            if step.count && !direct {
                koala.decide(&engine, KoalaAsk::Update, &request, now);
                imported.decide(Op::Record, &request, now);
            }
        }
    }
}
