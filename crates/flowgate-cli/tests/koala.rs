//! Koala from the command line: serving, importing and checking a rule file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/koala/sample.conf")
}

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    command.args(args).stdin(Stdio::null()).env("NO_COLOR", "1").output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A server that is killed when the test ends.
struct Serving {
    child: Child,
    http: String,
}

impl Serving {
    fn start(args: &[&str]) -> Serving {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
        command
            .args(["serve", "--http", "127.0.0.1:0", "--resp", "off"])
            .args(args)
            .env("FLOWGATE_AUTH__ADMIN_TOKEN", "adm1n");
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let http = lines.find_map(|line| Some(line.split_once("http://")?.1.to_owned()));
        // Somebody must go on reading, or the server would wait for it.
        std::thread::spawn(move || lines.count());
        Serving { child, http: http.expect("an address is announced") }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.http).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let token = "authorization: Bearer adm1n";
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{token}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn serves_a_rule_file_beside_a_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("flowgate.toml");
    fs::write(&config, "[[rule]]\nname = \"mine\"\nlimits = [\"5/60s\"]\n").unwrap();
    let sample = sample();
    let serving = Serving::start(&["--koala", sample.to_str().unwrap(), "--config", config.to_str().unwrap()]);
    assert!(serving.get("/rule/browse?uid=boss").contains(r#""Ret_type":1,"Ret_code":101,"#));
    assert_eq!(serving.get("/monitor/alive"), r#"{"errno": 0, "errmsg": "OK!"}"#);
    assert_eq!(serving.get("/admin/allrules"), fs::read_to_string(&sample).unwrap());
    assert_eq!(serving.get("/healthz"), "ok");
}

#[test]
fn imports_a_rule_file() {
    let directory = tempfile::tempdir().unwrap();
    let imported = run(&["import", "koala", sample().to_str().unwrap()]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    assert!(text(&imported.stderr).contains("warning: rule 301 answers a pass when it is exceeded"));
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
