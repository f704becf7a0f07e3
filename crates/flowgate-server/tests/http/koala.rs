//! Koala's endpoints: the very bytes that its clients read.

use flowgate::Span;

use super::*;

pub(super) const RESULTS: &str = r#"
[result]
2 : { "Ret_type":2, "Ret_code" : 0, "Err_no":10, "Err_msg":"", "Str_reason":"Deny", "Need_vcode":0, "Vcode_len":0, "Vcode_type":0, "Other":"", "Version":0 }
3 : { "Ret_type":3, "Ret_code" : 0, "Err_no":20, "Err_msg":"", "Str_reason":"Vcode", "Need_vcode":1, "Vcode_len":4, "Vcode_type":0, "Other":"", "Version":0 }
"#;

const UNMATCHED: &str = r#"{"Ret_type":0,"Ret_code":0,"Err_no":0,"Err_msg":"","Str_reason":"Allow","Need_vcode":0,"Vcode_len":0,"Vcode_type":0,"Other":"","Version":0}"#;
const PASSED: &str = r#"{"Ret_type":1,"Ret_code":0,"Err_no":0,"Err_msg":"","Str_reason":"Allow","Need_vcode":0,"Vcode_len":0,"Vcode_type":0,"Other":"","Version":0}"#;

fn denied(rule: u32) -> String {
    format!(
        r#"{{"Ret_type":2,"Ret_code":{rule},"Err_no":10,"Err_msg":"","Str_reason":"Deny","Need_vcode":0,"Vcode_len":0,"Vcode_type":0,"Other":"","Version":0}}"#
    )
}

fn captcha(rule: u32) -> String {
    format!(
        r#"{{"Ret_type":3,"Ret_code":{rule},"Err_no":20,"Err_msg":"","Str_reason":"Vcode","Need_vcode":1,"Vcode_len":4,"Vcode_type":0,"Other":"","Version":0}}"#
    )
}

/// A server of these rules, with `toml` beside them.
pub(super) fn serve(rules: &str, toml: &str) -> Running {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("koala_rule.conf");
    std::fs::write(&path, format!("[rules]\n{rules}\n{RESULTS}")).unwrap();
    Running::start(&format!("koala.rules = {:?}\n{toml}", path.to_str().unwrap()))
}

/// What a path answers, with its status unless that is 200.
pub(super) fn get(server: &Running, path: &str) -> String {
    let reply = server.get(path);
    if reply.status == 200 { reply.body } else { format!("{} {}", reply.status, reply.body) }
}

#[track_caller]
fn check(server: &Running, rows: &[(&str, &str)]) {
    for (path, expected) in rows {
        assert_eq!(get(server, path), *expected, "{path}");
    }
}

const OK: &str = r#"{"err_no":0, "err_msg":"OK"}"#;

#[test]
fn browse_checks_and_update_counts() {
    let server = serve(
        "rule : [direct] [uid=13] [] [result=2; return=103]
         rule : [count] [act=ask; qid=+] [time=60; count=2] [result=2; return=111]
         rule : [count] [act=ask; qid=+] [time=60; count=1] [result=3; return=112]",
        "",
    );
    check(
        &server,
        &[
            ("/rule/browse", UNMATCHED),
            ("/rule/browse?act=tell&qid=1", UNMATCHED),
            ("/rule/browse?act=ask&qid=", UNMATCHED),
            ("/rule/browse?act=ask&qid=1", PASSED),
            ("/rule/browse?act=ask&qid=1&uid=13", &denied(103)),
            ("/rule/update?act=ask&qid=1", OK),
            ("/rule/browse?act=ask&qid=1", &captcha(112)),
            ("/rule/browse?qid=0&act=ask&qid=1", &captcha(112)),
            ("/rule/browse?act=%61sk&qid=%31", &captcha(112)),
            ("/rule/browse_complete?act=ask&qid=1", &format!("[{}]", captcha(112))),
            ("/rule/update?act=ask&qid=1", OK),
            ("/rule/browse?act=ask&qid=1", &denied(111)),
            ("/rule/browse_complete?act=ask&qid=1", &format!("[{},{}]", denied(111), captcha(112))),
            ("/rule/browse_complete?act=ask&qid=2", &format!("[{UNMATCHED}]")),
            ("/rule/browse_complete?act=tell", &format!("[{UNMATCHED}]")),
            ("/rule/value?rule_no=111&act=ask&qid=1", r#"{"err_no":0,"err_msg":"","cache_val":2}"#),
            ("/rule/value?rule_no=111&act=ask&qid=2", r#"{"err_no":0,"err_msg":"","cache_val":0}"#),
            ("/rule/value?rule_no=7", r#"400 {"err_no":-2, "err_msg":"unknown rule_no!"}"#),
            ("/rule/value", r#"400 {"err_no":-2, "err_msg":"unknown rule_no!"}"#),
        ],
    );
    server.clock.advance(Span::from_secs(60));
    check(&server, &[("/rule/browse?act=ask&qid=1", PASSED)]);
}

#[test]
fn a_form_is_as_good_as_a_query() {
    let server = serve("rule : [count] [act=ask; qid=+] [time=60; count=1] [result=2; return=111]", "");
    let post = |path: &str, content_type: &str, body: &str| {
        server.connect().call("POST", path, &[("content-type", content_type)], body)
    };
    let form = "application/x-www-form-urlencoded";
    assert_eq!(post("/rule/update", form, "act=ask&qid=%E4%B8%AD").body, OK);
    assert_eq!(post("/rule/browse?qid=9", form, "act=ask&qid=%E4%B8%AD").body, denied(111));
    assert_eq!(post("/rule/browse?act=ask", "application/x-www-form-urlencoded; charset=UTF-8", "qid=9").body, PASSED);
    assert_eq!(server.connect().call("POST", "/rule/browse?act=ask&qid=9", &[], "").body, PASSED);
    assert_eq!(post("/rule/update", "application/json", "{}").status, 415);
    assert_eq!(server.connect().call("PUT", "/rule/update", &[], "").status, 405);
    assert_eq!(get(&server, "/rule/browse?act=ask&qid=%E4%B8%AD"), denied(111));
}

#[test]
fn write_through_counts_in_the_same_step() {
    let server = serve("rule : [count] [qid=+] [time=60; count=1] [result=2; return=1]", "");
    check(
        &server,
        &[
            ("/rule/browse?qid=1&_writeThrough=yes", PASSED),
            ("/rule/browse?qid=1&_writeThrough=yes", &denied(1)),
            ("/rule/value?rule_no=1&qid=1", r#"{"err_no":0,"err_msg":"","cache_val":2}"#),
            ("/rule/browse?qid=1&_writeThrough=no", &denied(1)),
            ("/rule/browse_complete?qid=1&_writeThrough=yes", &format!("[{}]", denied(1))),
            ("/rule/value?rule_no=1&qid=1", r#"{"err_no":0,"err_msg":"","cache_val":3}"#),
        ],
    );
}

#[test]
fn feedback_gives_units_back() {
    let server = serve("rule : [leak] [ip=+] [time=60; count=3; erase1=1; erase2=2] [result=2; return=1]", "");
    for _ in 0..3 {
        check(&server, &[("/rule/update?ip=1.1.1.1", OK)]);
    }
    check(
        &server,
        &[
            ("/rule/browse?ip=1.1.1.1", &denied(1)),
            ("/rule/feedback?ip=1.1.1.1", OK),
            ("/rule/value?rule_no=1&ip=1.1.1.1", r#"{"err_no":0,"err_msg":"","cache_val":2}"#),
            ("/rule/feedback?ip=1.1.1.1&_feedbackType=erase2", OK),
            ("/rule/value?rule_no=1&ip=1.1.1.1", r#"{"err_no":0,"err_msg":"","cache_val":0}"#),
            (
                "/rule/feedback?ip=1.1.1.1&_feedbackType=erase3",
                r#"400 {"error":"expected erase1 or erase2","field":"_feedbackType","code":"invalid","values":{}}"#,
            ),
        ],
    );
}

/// As Koala's PHP client does it: each request urlencoded, the whole as JSON, that urlencoded.
fn multi(path: &str, jobs: &[(&str, &str)]) -> String {
    let encode = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let jobs: Vec<String> =
        jobs.iter().map(|(id, arg)| format!(r#"{{"Id":"{id}","Arg":"{}"}}"#, encode(arg))).collect();
    format!("{path}?argsJson={}", encode(&format!("[{}]", jobs.join(","))))
}

#[test]
fn a_batch_is_answered_in_order_by_every_method() {
    let server = serve(
        "rule : [direct] [uid=13] [] [result=2; return=1]
         rule : [count] [a=+] [time=60; count=1] [result=2; return=2]
         rule : [base]  [b=+] [base=1; time=60; count=1] [result=2; return=3]
         rule : [leak]  [c=+] [time=60; count=1] [result=3; return=4]",
        "",
    );
    let jobs = [("0", "uid=13"), ("1", "a=x"), ("7", "b=%E4%B8%AD&other=1"), ("x", "c=1"), ("", "d=1")];
    let answers = |results: [&str; 5]| {
        let pairs = jobs.iter().zip(results).map(|((id, _), result)| format!(r#"{{"Id":"{id}","Result":{result}}}"#));
        format!("[{}]", pairs.collect::<Vec<_>>().join(","))
    };
    let browse = multi("/multi/browse", &jobs);
    check(
        &server,
        &[
            (&browse, &answers([&denied(1), PASSED, PASSED, PASSED, UNMATCHED])),
            (&multi("/multi/update", &jobs), &answers([OK; 5])),
            (&browse, &answers([&denied(1), &denied(2), &denied(3), &captcha(4), UNMATCHED])),
            ("/rule/browse?b=%E4%B8%AD", &denied(3)),
            (&multi("/multi/browse", &[]), "[]"),
        ],
    );
    // Written by hand it need not be encoded twice.
    check(
        &server,
        &[(
            "/multi/browse?argsJson=[{%22Id%22:%220%22,%22Arg%22:%22a=x%22}]",
            &format!(r#"[{{"Id":"0","Result":{}}}]"#, denied(2)),
        )],
    );
}

#[test]
fn a_batch_that_cannot_be_read_is_refused() {
    let server = serve("rule : [count] [a=+] [time=60; count=1] [result=2; return=2]", "");
    for path in [
        "/multi/browse",
        "/multi/browse?argsJson=",
        "/multi/browse?argsJson=x",
        "/multi/browse?argsJson={}",
        "/multi/browse?argsJson=[{%22Id%22:0}]",
        "/multi/update?argsJson=[1]",
        "/multi/update?argsJson=[{}",
    ] {
        let reply = server.get(path);
        assert_eq!(reply.status, 400, "{path}");
        assert!(reply.body.contains(r#","field":"argsJson","code":"invalid""#), "{path}: {}", reply.body);
    }
    let expected =
        r#"{"error":"expected [{\"Id\":\"0\",\"Arg\":\"k%3Dv\"}, ..]: expected ident at line 1 column 3","field""#;
    let told = server.get("/multi/browse?argsJson=[nope]").body;
    assert!(told.starts_with(expected), "{told}");
    let many = format!("/multi/browse?argsJson=[{}]", vec!["%7B%7D"; 1001].join(","));
    assert!(server.get(&many).body.contains("more than 1000 requests"));
    let fields: Vec<String> = (0..300).map(|number| format!("f{number}=1")).collect();
    assert_eq!(server.get(&format!("/rule/browse?{}", fields.join("&"))).status, 400);
    let half_wrong = multi("/multi/update", &[("0", "a=x"), ("1", &fields.join("&"))]);
    assert_eq!(server.get(&half_wrong).status, 400);
    check(&server, &[("/rule/browse?a=x", PASSED)]); // the first was not counted
}

#[test]
fn what_an_operator_sees() {
    let server = serve(
        "rule : [count] [a=+] [time=60; count=1] [result=2; return=20] # the text\n\
         rule : [count] [a=+] [time=60; count=9] [result=2; return=10]",
        "",
    );
    assert!(get(&server, "/admin/allrules").contains("return=20] # the text\nrule : "));
    for _ in 0..3 {
        get(&server, "/rule/browse?a=1&_writeThrough=yes");
    }
    check(
        &server,
        &[
            ("/rule/update?a=1", OK),
            (
                "/admin/counters",
                r#"{"err_no":0,"err_msg":"","counters":[{"rule_no":10,"allow":1,"deny":0},{"rule_no":20,"allow":1,"deny":2}]}"#,
            ),
            (
                "/admin/counters?rule_no=20",
                r#"{"err_no":0,"err_msg":"","counters":[{"rule_no":20,"allow":1,"deny":2}]}"#,
            ),
            ("/admin/counters?rule_no=3", r#"400 {"err_no":-2, "err_msg":"unknown rule_no!"}"#),
            ("/monitor/alive", r#"{"errno": 0, "errmsg": "OK!"}"#),
            ("/rule/nothing", "404 not found"),
            ("/other", "404 not found"),
        ],
    );
}

#[test]
fn tokens_are_asked_for() {
    let server = serve(
        "rule : [count] [a=+] [time=60; count=1] [result=2; return=2]",
        "auth = { api_token = 'api', admin_token = 'admin', view_token = 'view' }",
    );
    let with = |path: &str, token: &str| {
        server.connect().call("GET", path, &[("authorization", &format!("Bearer {token}"))], "").status
    };
    assert_eq!((server.get("/rule/browse").status, with("/rule/browse", "api")), (401, 200));
    assert_eq!((with("/admin/allrules", "api"), with("/admin/allrules", "admin")), (401, 200));
    assert_eq!(server.get("/monitor/alive").status, 200);
    assert_eq!((with("/v1/koala", "api"), with("/v1/koala", "view"), with("/v1/koala", "admin")), (401, 200, 200));
    let validate = |token: &str| {
        let headers = [("authorization", token), ("content-type", "application/json")];
        server.connect().call("POST", "/v1/koala/validate", &headers, r#"{"text":""}"#).status
    };
    assert_eq!((validate("Bearer api"), validate("Bearer view"), validate("Bearer admin")), (401, 403, 200));
}

#[test]
fn koala_and_the_policy_live_side_by_side() {
    let server = serve(
        "rule : [count] [qid=+] [time=60; count=1] [result=2; return=1]",
        r#"rule = [{ name = "mine", by = ["qid"], limits = ["1/60s"] },
                   { name = "koala-1", when = { qid = "*" }, by = ["qid"], limits = ["fixed 1/60s"] }]"#,
    );
    check(&server, &[("/rule/update?qid=1", OK), ("/rule/browse?qid=1", &denied(1))]);
    let taken = server.post("/v1/peek", r#"{"fields":{"qid":"1"}}"#).body;
    assert!(taken.contains(r#""rule":"koala-1""#), "an imported rule shares the counter: {taken}");
    assert!(server.post("/v1/take", r#"{"fields":{"qid":"2"}}"#).body.contains(r#""allowed":true"#));
    check(&server, &[("/rule/browse?qid=2", &denied(1)), ("/rule/browse?qid=3", PASSED)]);
}

#[test]
fn without_a_rule_file_there_is_no_koala() {
    let server = Running::start("");
    for path in ["/rule/browse", "/monitor/alive", "/admin/allrules", "/nothing"] {
        assert_eq!(
            get(&server, path),
            r#"404 {"error":"no such path","field":null,"code":"no-such-path","values":{}}"#,
            "{path}"
        );
    }
    for reply in [server.get("/v1/koala"), server.post("/v1/koala/validate", r#"{"text":""}"#)] {
        reply.is_mistake(404, None);
        assert!(reply.body.contains("there are no Koala rules: name a rule file by koala.rules or --koala"));
    }
}

/// Values that a client sends are compared, counted and logged, never trusted.
#[test]
fn odd_values_do_no_harm() {
    let server = serve("rule : [count] [a=+] [time=60; count=1] [result=2; return=2]", "");
    for value in ["%00", "%ff%fe", "%", "%4", "%7C", "{~}", "%0d%0aX:1", "++", &"x".repeat(30_000)] {
        let path = format!("/rule/browse?a={value}&_writeThrough=yes");
        assert_eq!(get(&server, &path), PASSED, "{value:.20}");
        assert_eq!(get(&server, &path), denied(2), "{value:.20}");
    }
}

#[test]
fn a_ban_by_hand_comes_before_all_rules() {
    let server = serve(
        "rule : [direct] [uid=42] [] [result=1; return=101]
         rule : [count] [act=ask; uid=+] [time=60; count=1] [result=3; return=111]",
        "",
    );
    server.post("/v1/bans", r#"{"field":"uid","value":"42","for":"1h"}"#);
    server.post("/v1/bans", r#"{"field":"ip","value":"192.0.2.0/24","for":"1h"}"#);
    let banned = denied(0);
    check(
        &server,
        &[
            ("/rule/browse?uid=42", &banned),
            ("/rule/browse?act=ask&uid=7&ip=192.0.2.9&_writeThrough=yes", &banned),
            ("/rule/browse_complete?act=ask&uid=7&ip=192.0.2.9", &format!("[{banned}]")),
            ("/rule/value?rule_no=111&act=ask&uid=7", r#"{"err_no":0,"err_msg":"","cache_val":0}"#),
            ("/rule/update?act=ask&uid=7&ip=192.0.2.9", OK),
            ("/rule/value?rule_no=111&act=ask&uid=7", r#"{"err_no":0,"err_msg":"","cache_val":1}"#),
            ("/rule/browse?uid=43", UNMATCHED),
        ],
    );
    let only_captchas = serve("rule : [direct] [uid=1] [] [result=3; return=1]", "");
    only_captchas.post("/v1/bans", r#"{"field":"uid","value":"42","for":"1h"}"#);
    assert_eq!(get(&only_captchas, "/rule/browse?uid=42"), denied(0), "the file has a denial, though no rule uses it");
}

#[test]
fn feedback_waits_for_the_disk_where_every_answer_does() {
    let directory = tempfile::tempdir().unwrap();
    let (rules, state) = (directory.path().join("koala_rule.conf"), directory.path().join("state"));
    let leak = "rule : [leak] [act=ask] [time=60; count=9; erase1=1] [result=2; return=111]";
    std::fs::write(&rules, format!("[rules]\n{leak}\n{RESULTS}")).unwrap();
    let config = format!(
        "koala.rules = {:?}\nlisten = {{ http = '127.0.0.1:0', resp = 'off' }}\nstore = {{ durable = 'always', dir = {:?} }}",
        rules.to_str().unwrap(),
        state.to_str().unwrap()
    );
    let server = RunningServer::start(flowgate_koala::config_from_toml(&config).unwrap());
    let mut client = http::Client::connect(server.http.unwrap());
    let mut get = |path: &str| client.call("GET", path, &[], "").body;
    let syncs = |metrics: String| -> u64 {
        metrics.lines().find_map(|line| line.strip_prefix("flowgate_journal_syncs_total ")).unwrap().parse().unwrap()
    };
    let before = syncs(get("/metrics"));
    for _ in 0..20 {
        assert_eq!(get("/rule/feedback?act=ask"), OK);
    }
    let after = syncs(get("/metrics"));
    assert!(after >= before + 20, "20 answers waited for {} syncs", after - before);
}

#[test]
fn decisions_are_counted_by_rule() {
    let server = serve(
        "rule : [direct] [uid=1] [] [result=1; return=101]
         rule : [direct] [uid=2] [] [result=3; return=102]
         rule : [leak] [act=ask] [time=60; count=2; erase1=1] [result=2; return=111]",
        "",
    );
    server.post("/v1/bans", r#"{"field":"uid","value":"3","for":"1h"}"#);
    for query in ["uid=1", "uid=2", "uid=3", "act=see", "act=ask", "act=ask", "act=ask"] {
        get(&server, &format!("/rule/browse?{query}&_writeThrough=yes"));
    }
    for path in ["/rule/update?act=ask", "/rule/feedback?act=ask", "/rule/value?rule_no=111&act=ask"] {
        get(&server, path);
    }
    get(&server, &multi("/multi/browse", &[("0", "uid=1"), ("1", "act=see")]));
    let metrics = get(&server, "/metrics");
    for (labels, count) in [
        (r#"koala_decisions_total{rule="101",action="allow"}"#, 2),
        (r#"koala_decisions_total{rule="102",action="captcha"}"#, 1),
        (r#"koala_decisions_total{rule="111",action="deny"}"#, 1),
        (r#"koala_decisions_total{rule="(none)",action="allow"}"#, 4),
        (r#"koala_decisions_total{rule="(ban)",action="ban"}"#, 1),
        (r#"operations_total{operation="record"}"#, 1),
        (r#"operations_total{operation="refund"}"#, 1),
        (r#"operations_total{operation="peek"}"#, 1),
    ] {
        let line = format!("flowgate_{labels} {count}");
        assert!(metrics.lines().any(|found| found == line), "{line} in\n{metrics}");
    }
}

#[test]
fn denials_are_ranked_by_subject() {
    let server = serve(
        "rule : [direct] [uid=13] [] [result=2; return=103]
         rule : [count] [act=ask; qid=+] [time=60; count=1] [result=3; return=111]",
        "",
    );
    for _ in 0..400 {
        get(&server, "/rule/browse?act=ask&qid=7&_writeThrough=yes");
        get(&server, "/rule/browse?uid=13");
    }
    let stats: serde_json::Value = serde_json::from_str(&get(&server, "/v1/stats")).unwrap();
    for list in ["hottest", "most_denied"] {
        let subjects: Vec<(&str, &str)> = stats[list]["subjects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["rule"].as_str().unwrap(), row["subject"].as_str().unwrap()))
            .collect();
        assert!(subjects.contains(&("koala-111", "act=ask qid=7")), "{list}: {subjects:?}");
        assert!(subjects.contains(&("koala-103", "uid=13")), "{list}: {subjects:?}");
    }
}

#[test]
fn a_pause_holds_here_too() {
    let server = serve(
        "rule : [direct] [uid=13] [] [result=2; return=103]
         rule : [direct] [uid=13; vip=1] [] [result=1; return=104]
         rule : [count] [act=ask; qid=+] [time=60; count=1] [result=3; return=111]",
        "",
    );
    let (blocked, vip, ask) = ("/rule/browse?uid=13", "/rule/browse?uid=13&vip=1", "/rule/browse?act=ask&qid=1");
    check(&server, &[("/rule/update?act=ask&qid=1", OK), (ask, &captcha(111)), (blocked, &denied(103))]);
    server.post("/v1/pause", r#"{"for":"10m"}"#);
    let passes = |rule: u32| PASSED.replace(r#""Ret_code":0"#, &format!(r#""Ret_code":{rule}"#));
    check(
        &server,
        &[
            (ask, PASSED),
            (blocked, PASSED),
            (vip, &passes(104)),
            ("/rule/browse_complete?act=ask&qid=1", &format!("[{UNMATCHED}]")),
            ("/rule/update?act=ask&qid=1", OK),
            ("/rule/value?rule_no=111&act=ask&qid=1", r#"{"err_no":0,"err_msg":"","cache_val":2}"#),
        ],
    );
    let metrics = get(&server, "/metrics");
    let shadowed = r#"flowgate_koala_decisions_total{rule="111",action="shadow"} 2"#;
    assert!(metrics.lines().any(|line| line == shadowed), "{metrics}");
    let explained = server.post("/v1/explain", r#"{"fields":{"uid":"13"}}"#).body;
    assert!(explained.contains(r#""paused_until":"#), "{explained}");
    server.post("/v1/bans", r#"{"field":"uid","value":"7","for":"1h"}"#);
    check(&server, &[("/rule/browse?uid=7", &denied(0))]);
    server.connect().call("DELETE", "/v1/pause", &[], "");
    check(&server, &[(ask, &captcha(111)), (blocked, &denied(103)), (vip, &denied(103))]);
}

#[test]
fn explained_and_reset_with_the_rules_of_the_policy() {
    let server = serve(
        "rule : [direct] [uid=13] [] [result=2; return=103]
         rule : [count] [act=ask; qid=+] [time=60; count=1] [result=2; return=111]
         rule : [count] [act=ask; qid=+] [time=60; count=9] [result=2; return=112]",
        "",
    );
    check(&server, &[("/rule/update?act=ask&qid=1", OK), ("/rule/browse?act=ask&qid=1", &denied(111))]);
    let explain = |fields: &str| -> serde_json::Value {
        let reply = server.post("/v1/explain", &format!(r#"{{"fields":{fields}}}"#)).body;
        serde_json::from_str::<serde_json::Value>(&reply).unwrap()["fronts"][0].clone()
    };
    let asked = explain(r#"{"act":"ask","qid":"1"}"#);
    assert_eq!(
        (&asked["name"], &asked["allowed"], &asked["rule"]),
        (&"Koala".into(), &false.into(), &"koala-111".into())
    );
    assert_eq!(asked["rules"][0]["failed"]["field"], "uid");
    assert_eq!(asked["rules"][1]["limits"][0]["remaining"], 0);
    assert_eq!(asked["rules"][2]["limits"][0]["remaining"], 8);
    assert_eq!(explain(r#"{"uid":"13"}"#)["rule"], "koala-103");
    assert_eq!(explain(r#"{"uid":"14"}"#)["allowed"], true);
    server.post("/v1/reset", r#"{"fields":{"act":"ask","qid":"1"}}"#);
    check(&server, &[("/rule/browse?act=ask&qid=1", PASSED)]);
    assert_eq!(explain(r#"{"act":"ask","qid":"1"}"#)["rules"][2]["limits"][0]["remaining"], 9);
}
