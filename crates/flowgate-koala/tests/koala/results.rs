//! The result objects that callers get.

use flowgate_koala::{KoalaResult, KoalaValue};

use super::*;

fn shown(result: &KoalaResult, rule: u32) -> String {
    let fields: Vec<String> = result
        .fields(rule)
        .map(|(name, value)| match value {
            KoalaValue::Number(number) => format!("{name}={number}"),
            KoalaValue::Text(text) => format!("{name}={text:?}"),
        })
        .collect();
    fields.join(" ")
}

#[track_caller]
fn rules(results: &str) -> KoalaRules {
    let text = format!("[rules]\nrule : [direct] [a=1] [] [result=2; return=7]\n[result]\n{results}");
    let loaded = KoalaFile::load(Input::Text { name: "x", base: Path::new(""), text: &text }, "UTC").unwrap();
    KoalaRules::new(loaded.file, engine().memory(), None).unwrap()
}

#[test]
fn a_result_is_answered_as_it_is_written() {
    let rules = rules(
        "2 : { \"Version\":1, \"Ret_type\":2, \"Ret_code\" : 99, \"Err_no\":-10, \"Err_msg\":\"\\u56de\\ud83d\\ude00 \\\"#\\\"\\n\", \
         \"Str_reason\":\"Deny\", \"Need_vcode\":0, \"Vcode_len\":0, \"Vcode_type\":0, \"Other\":\"\", \"Mine\":\"x\" } # a comment",
    );
    let expected = "Version=1 Ret_type=2 Ret_code=7 Err_no=-10 Err_msg=\"回😀 \\\"#\\\"\\n\" Str_reason=\"Deny\" Need_vcode=0 \
                    Vcode_len=0 Vcode_type=0 Other=\"\" Mine=\"x\"";
    assert_eq!(shown(rules.result_of(0), rules.number(0)), expected);
}

#[test]
fn older_files_write_names_in_lower_case() {
    let rules = rules("2 : { \"ret_type\":2, \"ret_code\":0, \"err_no\":10, \"str_reason\":\"Deny\" }");
    let expected = "Ret_type=2 Ret_code=7 Err_no=10 Str_reason=\"Deny\" Err_msg=\"\" Need_vcode=0 Vcode_len=0 Vcode_type=0 \
                    Other=\"\" Version=0";
    assert_eq!(shown(rules.result_of(0), 7), expected);
}

#[test]
fn results_0_and_1_have_defaults() {
    let defaults = rules("2 : {}");
    for (matched, number) in [(false, 0), (true, 1)] {
        let expected = format!(
            "Ret_type={number} Ret_code=0 Err_no=0 Err_msg=\"\" Str_reason=\"Allow\" Need_vcode=0 Vcode_len=0 Vcode_type=0 \
             Other=\"\" Version=0"
        );
        assert_eq!(shown(defaults.pass(matched), 0), expected);
    }
    let own = rules("2 : {}\n0 : { \"Str_reason\":\"Nobody\" }");
    assert!(shown(own.pass(false), 0).starts_with("Str_reason=\"Nobody\" Ret_type=0 "));
    assert_eq!(defaults.result_of(0).message(), None);
    assert!(defaults.result_of(0).passes() && !defaults.result_of(0).wants_captcha());
}
