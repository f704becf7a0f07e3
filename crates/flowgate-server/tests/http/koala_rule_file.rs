//! `/v1/koala`: the rule file in force, and a check of the text of another.

use flowgate::Span;
use serde_json::json;

use super::koala::{RESULTS, get, serve};
use super::rules::AdminFile;
use super::*;

#[test]
fn the_rule_file_rule_by_rule() {
    let server = serve(
        "# every day\n\
         rule : [count] [ act=ask; qid=+ ] [time=86400; count=1] [result=2; return=20]\n\n\
         rule : [base] [act=ask; uid=+] [base=5; time=60; count=0] [result=3; return=10]\n\
         rule : [direct] [uid=13] [] [result=1; return=5]",
        "",
    );
    for _ in 0..3 {
        get(&server, "/rule/browse?act=ask&qid=1&_writeThrough=yes");
    }
    get(&server, "/rule/browse?uid=13");
    let told = server.get("/v1/koala").json();
    assert_eq!((&told["now"], &told["broken"]), (&server.get("/v1/policy").json()["now"], &Value::Null));
    assert_eq!(
        told["rules"],
        json!([
            {"number": 20, "line": 3, "method": "count", "conditions": "act=ask; qid=+", "time": 86400, "count": 1,
             "base": null, "result": "deny", "passed": 1, "refused": 2},
            {"number": 10, "line": 5, "method": "base", "conditions": "act=ask; uid=+", "time": 60, "count": 0,
             "base": 5, "result": "captcha", "passed": 0, "refused": 0},
            {"number": 5, "line": 6, "method": "direct", "conditions": "uid=13", "time": null, "count": null,
             "base": null, "result": "allow", "passed": 0, "refused": 1},
        ])
    );
    let toml = told["toml"].as_str().unwrap();
    assert!(toml.contains("name = \"koala-20\"\nwhen = { act = \"ask\""), "{toml}");
    server.clock.advance(Span::from_secs(86_400));
    let tomorrow = server.get("/v1/koala").json();
    assert_eq!((&tomorrow["rules"][0]["passed"], &tomorrow["rules"][0]["refused"]), (&json!(0), &json!(0)));
    assert_eq!(server.connect().call("POST", "/v1/koala", &[], "").status, 405);
    assert_eq!(server.get("/v1/koala/validate").status, 405);
}

#[test]
fn a_text_is_checked_in_place_of_the_rule_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("koala_rule.conf");
    let right = format!(
        "[dicts]\nstaff : staff.dat\n[rules]\nrule : [direct] [uid @ staff] [] [result=2; return=1]\n{RESULTS}"
    );
    std::fs::write(&path, &right).unwrap();
    std::fs::write(directory.path().join("staff.dat"), "7\n").unwrap();
    let secret = format!("{}\n", "s3cret".repeat(1000));
    std::fs::write(directory.path().join("secret.dat"), &secret).unwrap();
    let server = Running::start(&format!("koala.rules = {:?}", path.to_str().unwrap()));
    let check = |text: &str| server.post("/v1/koala/validate", &json!({ "text": text }).to_string()).json();
    assert_eq!(check(&right), json!({"valid": true, "rules": 1, "restart_needed": [], "findings": [], "report": ""}));
    let wrong = check(&right.replace("[direct]", "[dirct]"));
    assert_eq!((&wrong["valid"], &wrong["rules"]), (&json!(false), &Value::Null));
    let finding = &wrong["findings"][0];
    assert_eq!((&finding["severity"], &finding["line"], &finding["column"]), (&json!("error"), &json!(4), &json!(9)));
    assert!(wrong["report"].as_str().unwrap().contains("unknown method \"dirct\""), "{wrong}");
    let idle = check(&right.replace("[] [result", "[] [result=2; result"));
    assert_eq!((&idle["valid"], &idle["findings"][0]["severity"]), (&json!(true), &json!("warning")));
    let curious = check(&right.replace("staff.dat", "secret.dat"));
    assert_eq!(curious["valid"], false, "the entry is too long");
    assert!(!curious.to_string().contains("s3cret"), "{curious}");
    assert_eq!(server.get("/v1/koala").json()["rules"][0]["line"], 4, "nothing has changed");

    server.post("/v1/koala/validate", r#"{"text":7}"#).is_mistake(400, Some("text"));
    server.post("/v1/koala/validate", "{}").is_mistake(400, None);
    let form = server.connect().call("POST", "/v1/koala/validate", &[("content-type", "text/plain")], "{}");
    form.is_mistake(415, Some("content-type"));
}

#[test]
fn a_broken_rule_file_is_told_until_it_is_right() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("koala_rule.conf");
    let right = format!("[rules]\nrule : [direct] [uid=13] [] [result=2; return=1]\n{RESULTS}");
    std::fs::write(&path, &right).unwrap();
    let admin = AdminFile::start(&format!("koala.rules = {:?}", path.to_str().unwrap()));
    std::fs::write(&path, right.replace("uid=13", "")).unwrap();
    admin.reload();
    let told = admin.server.get("/v1/koala").json();
    assert!(told["broken"]["report"].as_str().unwrap().contains("a rule needs a condition"), "{told}");
    assert_eq!(told["rules"][0]["conditions"], "uid=13", "the rules in force are older");
    std::fs::write(&path, &right).unwrap();
    admin.reload();
    assert_eq!(admin.server.get("/v1/koala").json()["broken"], Value::Null);
}
