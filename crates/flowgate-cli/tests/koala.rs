//! Koala from the command line: server, importing and checking a rule file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use flowgate_testkit::files;
use flowgate_testkit::http::Client;
use flowgate_testkit::server_process::{ServerProcess, serve_command};

fn sample() -> PathBuf {
    files::repository("testdata/koala/sample.conf")
}

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    command.args(args).stdin(Stdio::null()).env("NO_COLOR", "1").output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn start(args: &[&str]) -> ServerProcess {
    let mut command = serve_command(env!("CARGO_BIN_EXE_flowgate"));
    ServerProcess::spawn(command.args(args).env("FLOWGATE_AUTH__ADMIN_TOKEN", "adm1n"))
}

fn get(server: &ServerProcess, path: &str) -> String {
    Client::connect(&server.http).call("GET", path, &[("authorization", "Bearer adm1n")], "").body
}

#[test]
fn serves_a_rule_file_beside_a_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("flowgate.toml");
    fs::write(&config, "[[rule]]\nname = \"mine\"\nlimits = [\"5/60s\"]\n").unwrap();
    let sample = sample();
    let server = start(&["--koala", sample.to_str().unwrap(), "--config", config.to_str().unwrap()]);
    let try_it = format!("try: curl 'http://{}/rule/browse?act=ask&uid=42'", server.http);
    assert_eq!(server.first_line_with("try: "), try_it);
    assert!(get(&server, "/rule/browse?uid=boss").contains(r#""Ret_type":1,"Ret_code":101,"#));
    assert_eq!(get(&server, "/monitor/alive"), r#"{"errno": 0, "errmsg": "OK!"}"#);
    assert_eq!(get(&server, "/admin/allrules"), fs::read_to_string(&sample).unwrap());
    assert_eq!(get(&server, "/healthz"), "ok");
}

#[test]
fn imports_a_rule_file() {
    let directory = tempfile::tempdir().unwrap();
    let imported = run(&["import", "koala", sample().to_str().unwrap()]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    assert!(text(&imported.stderr).contains("warning: rule 301 answers a pass when it is exceeded"));
    assert!(text(&imported.stderr).contains("warning: rule 1201 has erase1=2 and erase2=4, which the TOML leaves out"));
    let toml = directory.path().join("imported.toml");
    fs::write(&toml, &imported.stdout).unwrap();
    let checked = run(&["validate", toml.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("is fine: 9 rules, 2 lists"), "{}", text(&checked.stdout));
    let elsewhere = run(&["import", "koala", sample().to_str().unwrap(), "--tz", "UTC"]);
    assert!(text(&elsewhere.stdout).contains("1000/1d tz=UTC"));
    let nowhere = run(&["import", "koala", "/nowhere"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert_eq!(text(&nowhere.stderr), "error: cannot read /nowhere: there is no such file\n");
}

#[test]
fn checks_a_rule_file() {
    let fine = run(&["validate", sample().to_str().unwrap()]);
    assert!(fine.status.success());
    assert!(
        text(&fine.stdout).ends_with("sample.conf is fine: 9 rules, 2 dicts, 1 warning\n"),
        "{}",
        text(&fine.stdout)
    );
    let directory = tempfile::tempdir().unwrap();
    let wrong = directory.path().join("rules");
    fs::write(&wrong, "rule : [cuont]\n").unwrap();
    let report = run(&["validate", "--koala", wrong.to_str().unwrap()]);
    assert_eq!(report.status.code(), Some(1));
    assert!(text(&report.stderr).contains("this line stands before any section"), "{}", text(&report.stderr));
    fs::write(&wrong, "# x\n[rules]\nrule : [cuont] [a=1] [] [result=1; return=1]\n").unwrap();
    let report = run(&["validate", wrong.to_str().unwrap()]);
    assert_eq!(report.status.code(), Some(1));
    let shown = text(&report.stderr);
    assert!(shown.contains("rules:3:9") && shown.contains("did you mean \"count\"?") && shown.ends_with("1 mistake\n"));
    let toml = directory.path().join("flowgate.toml");
    fs::write(&toml, format!("koala.rules = {:?}\n", wrong.to_str().unwrap())).unwrap();
    let report = run(&["validate", toml.to_str().unwrap()]);
    assert!(text(&report.stderr).contains("rules:3:9"), "the configuration includes it");
    fs::write(&wrong, "[rules]\nrule : [direct] [a=1] [] [result=1; return=1]\n").unwrap();
    let report = run(&["validate", toml.to_str().unwrap()]);
    assert!(text(&report.stdout).ends_with("is fine: 0 rules, 0 lists, 1 rule of Koala\n"));
}

#[test]
fn the_main_configuration_in_place_of_the_rule_file_is_recognised() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("koala.conf");
    fs::write(&file, "listen = :9981\nrule_file = conf/koala_rule.conf\nredis_auth = s3cret\n").unwrap();
    let file = file.to_str().unwrap();
    let commands = [
        &["serve", "--koala", file][..],
        &["validate", "--koala", file],
        &["validate", file],
        &["import", "koala", file],
    ];
    for args in commands {
        let refused = run(args);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        assert!(said.contains("this is Koala's main configuration, not its rule file"), "{args:?}: {said}");
        assert!(said.contains("give its rule file: \"conf/koala_rule.conf\"") && !said.contains("s3cret"), "{said}");
    }
}

/// One message tells that a file is of the other kind, and names the right option.
#[test]
fn a_rule_file_and_a_configuration_in_each_others_place_are_recognised() {
    let sample = sample();
    let sample = sample.to_str().unwrap();
    for args in [&["serve", "--config", sample][..], &["config", "--config", sample]] {
        let refused = run(args);
        let expected =
            format!("error: {sample} is a file of Koala: `flowgate serve --koala {sample}` serves its rules, ");
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        assert!(text(&refused.stderr).starts_with(&expected), "{}", text(&refused.stderr));
        assert_eq!(text(&refused.stderr).lines().count(), 1);
    }
    let configurations = [
        "# Rules.\n[[rule]]\nname = 'a'\nlimits = ['5/60s']\n",
        "[auth]\nadmin_token = 's3cret'\n",
        "auth.admin_token = 's3cret'\n",
        "rule = [{ name = 'a', limits = ['5/60s'] }]\n",
        "[lists]\nvip = { values = ['7'] }\n",
        "[tls]\ncert = 'a.pem'\n",
    ];
    for configuration in configurations {
        let directory = files::directory(&[("flowgate.toml", configuration)]);
        let file = directory.path().join("flowgate.toml");
        let file = file.to_str().unwrap();
        for args in [&["serve", "--koala", file][..], &["import", "koala", file], &["validate", "--koala", file]] {
            let refused = run(args);
            let said = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(1), "{args:?}");
            assert!(said.contains("is a configuration of Flowgate, not a Koala rule file"), "{args:?}: {said}");
            assert!(said.contains("serve it by --config") && !said.contains("s3cret"), "{args:?}: {said}");
            assert_eq!(said.matches("error: ").count(), 1, "{args:?}: {said}");
        }
    }
}

#[test]
fn an_operator_finds_the_denials_in_the_log_and_by_the_command_line() {
    let rule = "rule : [count] [act=ask; ip=+] [time=3600; count=2] [result=2; return=115]";
    let results = r#"2 : { "Ret_type":2, "Err_no":10, "Str_reason":"Deny" }"#;
    let directory = files::directory(&[("rules.conf", &format!("[rules]\n{rule}\n[result]\n{results}\n"))]);
    let mut command = serve_command(env!("CARGO_BIN_EXE_flowgate"));
    command
        .args(["--koala", directory.path().join("rules.conf").to_str().unwrap()])
        .env("FLOWGATE_AUTH__ADMIN_TOKEN", "adm1n");
    let server = ServerProcess::spawn(command.env("FLOWGATE_LOG__DENIALS", "all").env("FLOWGATE_LOG__FORMAT", "json"));
    let flowgate = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
        let (url, token) = (format!("http://{}", server.http), ("FLOWGATE_TOKEN", "adm1n"));
        let output = command.args(args).args(["--server", &url]).env("NO_COLOR", "1").env(token.0, token.1).output();
        let output = output.unwrap();
        format!("{}{}", text(&output.stdout), text(&output.stderr))
    };
    while !get(&server, "/rule/browse?act=ask&ip=10.0.0.7&_writeThrough=yes").contains(r#""Ret_type":2"#) {}
    let line = server.line_with("\"denied\"");
    for told in [r#""rule":"koala-115""#, r#""by":"limit""#, r#""action":"deny""#, "act=ask"] {
        assert!(line.contains(told), "{told} in {line}");
    }
    let (ask, denied) = (["act=ask", "ip=10.0.0.7"], "denied   over Koala's endpoints: by koala-115");
    let explained = flowgate(&["explain", ask[0], ask[1]]);
    assert!(explained.starts_with(denied) && explained.contains("! fixed "), "{explained}");
    let paused = flowgate(&["pause", "--for", "10m"]);
    assert!(paused.contains("no rule denies until") && paused.contains("; bans by hand still do"), "{paused}");
    assert!(get(&server, "/rule/browse?act=ask&ip=10.0.0.7").contains(r#""Ret_type":1"#));
    let explained = flowgate(&["explain", ask[0], ask[1]]);
    assert!(explained.starts_with("paused   until "), "{explained}");
    assert!(explained.contains("\nallowed  over Koala's endpoints: no limit is exceeded\n"), "{explained}");
    flowgate(&["resume"]);
    assert!(flowgate(&["explain", ask[0], ask[1]]).starts_with(denied));
    let reset = flowgate(&["reset", ask[0], ask[1]]);
    assert_eq!(reset, "reset    allowed  over Koala's endpoints: no limit is exceeded\n");
    assert!(get(&server, "/rule/browse?act=ask&ip=10.0.0.7").contains(r#""Ret_type":1"#));
    assert_eq!(flowgate(&["reset", "act=nothing"]), "reset    allowed  no rule matches\n");
}

#[test]
fn dicts_of_an_imported_file_are_relative_to_the_current_directory() {
    let directory = files::directory(&[
        ("staff.dat", "7\n"),
        ("rules.conf", "[dicts]\nstaff : staff.dat\n[rules]\nrule : [direct] [uid @ staff] [] [result=1; return=1]\n"),
    ]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    let imported = command.args(["import", "koala", "rules.conf"]).current_dir(&directory).output().unwrap();
    assert!(
        text(&imported.stdout).contains("staff = { file = \"staff.dat\", kind = \"mixed\" }"),
        "{}",
        text(&imported.stdout)
    );
    fs::write(directory.path().join("flowgate.toml"), &imported.stdout).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    assert!(command.args(["validate", "flowgate.toml"]).current_dir(&directory).output().unwrap().status.success());
}

/// The guides in both languages have the same snippets, apart from comments, and the snippets are valid.
#[test]
fn the_snippets_of_the_guide_are_configurations() {
    let snippets = |guide: &str| -> Vec<String> {
        let text = fs::read_to_string(files::repository(guide)).unwrap();
        let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0.to_owned());
        let bare = |block: String| {
            block.lines().map(|line| line.split('#').next().unwrap().trim()).collect::<Vec<_>>().join("\n")
        };
        blocks.map(bare).collect()
    };
    let english = snippets("docs/koala.md");
    assert_eq!(english.len(), 2);
    assert_eq!(english, snippets("docs/koala.zh-CN.md"));
    for snippet in english {
        let rules = ("koala_rule.conf", "[rules]\nrule : [direct] [a=1] [] [result=1; return=1]\n");
        let directory = files::directory(&[rules, ("flowgate.toml", &snippet)]);
        let checked = run(&["validate", directory.path().join("flowgate.toml").to_str().unwrap()]);
        assert!(text(&checked.stdout).contains("1 rule of Koala"), "{}", text(&checked.stderr));
    }
}
