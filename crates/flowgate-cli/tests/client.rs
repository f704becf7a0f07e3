//! The commands that talk to a running server, against a running server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use flowgate_testkit::certificates::self_signed;
use flowgate_testkit::files;
use flowgate_testkit::server_process::{ServerProcess, serve_command};
use serde_json::Value;

const RULES: &str = r#"
    [[rule]]
    name = "blocked"
    when = { ip = "192.0.2.0/24" }
    action = "deny"
    message = "Go away."
    [[rule]]
    name = "reply"
    when = { act = "reply" }
    by = ["user"]
    limits = ["2/60s", "fixed 100/day tz=UTC"]
    action = "captcha"
    code = 201
    message = "You reply too fast."
    ban = { after = 2, within = "10m", for = ["1h"], forget = "24h" }
    [[rule]]
    name = "all"
    limits = ["1000/s"]
"#;

/// A server, and commands that ask it.
struct Serving(ServerProcess);

impl Serving {
    fn start(configuration: &str) -> Serving {
        Serving(ServerProcess::start(env!("CARGO_BIN_EXE_flowgate"), configuration))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
        command.args(args).env("FLOWGATE_SERVER", &self.0.url).stdin(Stdio::null());
        command.env("STATE_DIRECTORY", self.0.directory());
        command
    }

    /// Standard output and the exit code.
    #[track_caller]
    fn run(&self, args: &[&str]) -> (String, i32) {
        let Output { stdout, stderr, status } = self.command(args).output().unwrap();
        let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert_eq!(stderr, "", "{args:?}");
        (stdout, status.code().unwrap())
    }

    /// The message of a command that fails.
    #[track_caller]
    fn fail(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn a_request_is_taken_denied_explained_and_forgiven() {
    let serving = Serving::start(RULES);
    let (first, code) = serving.run(&["take", "act=reply", "user=42"]);
    assert!(first.starts_with("allowed  by reply, 1 of 2 left, 2 again in "), "{first}");
    assert_eq!(code, 0);
    let (peeked, code) = serving.run(&["peek", "act=reply", "user=42", "--cost", "2"]);
    assert!(peeked.starts_with("denied   by reply (captcha), 1 of 2 left, come back in "), "{peeked}");
    assert!(peeked.contains("\n         You reply too fast. (code 201)\n         exceeded sliding 2/60s of reply"));
    assert_eq!(code, 3, "denied");

    serving.run(&["take", "act=reply", "user=42"]);
    let (json, code) = serving.run(&["take", "--json", "act=reply", "user=42"]);
    let decision: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &decision["allowed"], &decision["rule"]), (3, &Value::Bool(false), &"reply".into()));

    let (explained, code) = serving.run(&["explain", "act=reply", "user=42", "ip=198.51.100.1"]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = explained.lines().collect();
    assert!(lines.contains(&"  1  blocked  no: ip is \"198.51.100.1\", must be 192.0.2.0/24"), "{explained}");
    assert!(lines.contains(&"  2  reply    matches"), "{explained}");
    let limit = lines.iter().find(|line| line.contains("! sliding 2/60s: 0 of 2 left, come back in "));
    assert!(limit.is_some(), "{explained}");
    assert!(lines.iter().any(|line| line.contains("  fixed 100/1d tz=UTC: 98 of 100 left")), "{explained}");

    let (reset, code) = serving.run(&["reset", "act=reply", "user=42"]);
    assert!(reset.starts_with("reset    allowed  by reply, 2 of 2 left"), "{reset}");
    assert_eq!(code, 0);
    assert_eq!(serving.run(&["take", "act=reply", "user=42"]).1, 0);
    let (blocked, code) = serving.run(&["take", "ip=192.0.2.7"]);
    assert_eq!((blocked.as_str(), code), ("denied   by blocked, no wait helps\n         Go away.\n", 3));
}

#[test]
fn a_key_with_a_limit_of_its_own() {
    let serving = Serving::start("");
    let take = |op| serving.run(&[op, "--key", "job:7", "--limit", "bucket 1/h"]).1;
    assert_eq!([take("take"), take("take"), take("reset"), take("peek")], [0, 3, 0, 0]);
    assert!(serving.fail(&["take", "--key", "job:7", "--limit", "1 per hour"]).contains("error: limit `1`: expected"));
}

#[test]
fn bans_come_and_go() {
    let serving = Serving::start(RULES);
    assert_eq!(serving.run(&["ban"]).0, "no bans are in force\n");
    let (banned, _) = serving.run(&["ban", "user=7", "--for", "1h", "--reason", "spam"]);
    assert!(banned.starts_with("banned   user=7  by hand for 1h, until 20"), "{banned}");
    let (_, id) = banned.split_once("Z  spam, as h-").unwrap();
    let id = format!("h-{}", id.trim_end());
    let (denied, code) = serving.run(&["take", "user=7"]);
    assert!(denied.starts_with("denied   come back in ") && denied.contains("\n         spam\n"), "{denied}");
    assert_eq!(code, 3);
    let (explained, _) = serving.run(&["explain", "user=7"]);
    let told = "\nA ban by hand comes before all rules: user=7  by hand, until 20";
    assert!(explained.contains(told), "{explained}");
    let (slip, _) = serving.run(&["ban", "usr=7", "--for", "1h"]);
    let warning = "\n         no rule uses the field \"usr\"; only requests that bring it are stopped\n";
    assert!(slip.ends_with(warning), "{slip}");
    serving.run(&["unban", "usr=7"]);
    // Two requests pass. Two denials start a ban by the rule.
    (0..4).for_each(|_| drop(serving.run(&["take", "act=reply", "user=8"])));
    let (explained, _) = serving.run(&["explain", "user=8"]);
    assert!(explained.contains("\nBanned by the rule reply, where it matches, until 20"), "{explained}");
    let (list, _) = serving.run(&["ban"]);
    assert!(list.contains("  user=7  by hand, until ") && list.contains("  spam\n"), "{list}");
    assert!(list.contains("  user=8  by rule reply, until "), "{list}");
    assert!(list.starts_with(&id) && list.contains("\nr-"), "{list}");
    assert_eq!(serving.run(&["unban", &id]).0, format!("lifted   the ban {id}\n"));
    assert!(serving.fail(&["unban", &id]).contains("no ban of that id"));
    serving.run(&["ban", "user=7", "--for", "1h"]);
    assert_eq!(serving.run(&["unban", "user=7"]).0, "lifted   the ban user=7\n");
    assert_eq!(serving.run(&["unban", "user=8"]).0, "lifted   the ban user=8\n");
    assert_eq!(serving.run(&["ban"]).0, "no bans are in force\n");
    assert_eq!(serving.fail(&["unban", "user=7"]), "error: user=7 is not banned\n");
    let (_, network) = serving
        .run(&["ban", "ip=10.1.0.0/16", "--for", "1h"])
        .0
        .split_once("as h-")
        .map(|(a, b)| (a.to_owned(), format!("h-{}", b.trim_end())))
        .unwrap();
    assert_eq!(
        serving.fail(&["unban", "ip=10.1.2.3"]),
        format!(
            "error: ip=10.1.2.3 is banned as a part of ip=10.1.0.0/16: `flowgate unban {network}` lifts that ban, for all of it\n"
        )
    );
    serving.run(&["unban", &network]);
    assert!(serving.fail(&["unban", "12345"]).contains("or expected the id of a ban, such as h-"));
    assert!(serving.fail(&["ban", "user=7", "--for", "soon"]).contains("for: expected a length"));
}

#[test]
fn a_ban_of_nearly_everybody_must_be_meant() {
    let serving = Serving::start(RULES);
    for (value, addresses) in [
        ("0.0.0.0/0", "every IPv4 address"),
        ("::/0", "every IPv6 address"),
        ("64.0.0.0/2", "1 of 4 of all IPv4 addresses"),
    ] {
        let who = format!("ip={value}");
        let refused = serving.fail(&["ban", &who, "--for", "1h"]);
        assert_eq!(refused, format!("error: {who} is {addresses}: to ban them all, add --wide\n"));
    }
    assert_eq!(serving.run(&["ban"]).0, "no bans are in force\n");
    assert_eq!(serving.run(&["take", "ip=198.51.100.1"]).1, 0);
    let (banned, _) = serving.run(&["ban", "ip=0.0.0.0/0", "--for", "1h", "--wide"]);
    let warning = "\n         the ban holds for every IPv4 address: lift it if that is not meant\n";
    assert!(banned.starts_with("banned   ip=0.0.0.0/0 ") && banned.ends_with(warning), "{banned}");
    assert_eq!(serving.run(&["take", "ip=198.51.100.1"]).1, 3);
    serving.run(&["unban", "ip=0.0.0.0/0"]);
    assert!(serving.run(&["ban", "ip=10.0.0.0/8", "--for", "1h"]).0.starts_with("banned   ip=10.0.0.0/8 "));
}

#[test]
fn a_request_that_no_rule_matches_is_told_what_rules_look_at() {
    let rules = r#"
        [[rule]]
        name = "login"
        when = { path = "/login", ip = "*" }
        by = ["ip"]
        limits = ["5/60s"]
    "#;
    let serving = Serving::start(rules);
    let typo = "allowed  no rule matches\n         rules look at ip, path; did you mean \"ip\" instead of \"Ip\"?\n";
    for command in ["take", "peek"] {
        assert_eq!(serving.run(&[command, "path=/login", "Ip=192.0.2.7"]), (typo.to_owned(), 0));
    }
    assert_eq!(serving.run(&["reset", "path=/login", "Ip=192.0.2.7"]).0, format!("reset    {typo}"));
    let other =
        "allowed  no rule matches\n         rules look at ip, path; `flowgate explain` tells why each does not match\n";
    assert_eq!(serving.run(&["take", "path=/other", "ip=192.0.2.7"]).0, other);
    assert!(serving.run(&["take", "path=/login", "ip=192.0.2.7"]).0.starts_with("allowed  by login, "));
    let json: Value = serde_json::from_str(&serving.run(&["take", "--json", "Ip=192.0.2.7"]).0).unwrap();
    assert_eq!(json["matched"], false, "an answer for programs is as the server gives it");
    let none = Serving::start("");
    assert_eq!(none.run(&["take", "user=1"]).0, "allowed  no rule matches\n         there are no rules\n");
}

/// The example of docs/rules.md: its rules, and both of its commands. The second is the one that `at` runs.
#[cfg(unix)]
#[test]
fn a_customer_has_more_until_its_line_is_deleted() {
    let guide = fs::read_to_string(files::repository("docs/rules.md")).unwrap();
    let (_, section) = guide.split_once("## More for one customer").unwrap();
    let block = |kind: &str| section.split_once(&format!("```{kind}\n")).unwrap().1.split_once("```").unwrap().0;
    let (begin, end) = block("sh").split_once('\n').unwrap();
    let (_, end) = end.split_once("<<< \"").unwrap();

    let directory = files::directory(&[("more.txt", ""), ("flowgate.toml", block("toml"))]);
    let mut command = serve_command(env!("CARGO_BIN_EXE_flowgate"));
    command.arg("--config").arg(directory.path().join("flowgate.toml")).env("STATE_DIRECTORY", directory.path());
    let server = ServerProcess::spawn(&mut command);
    let peek = |customer: &str| -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
        let output = command.args(["peek", customer, "--json", "--url", &server.url]).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["limit"].clone()
    };
    let run = |script: &str| {
        let script = script.replace("$PWD/", "");
        let mut command = Command::new("bash");
        assert!(command.args(["-c", &script]).current_dir(&directory).status().unwrap().success(), "{script}");
        server.line_with("new rules are in force");
    };
    assert_eq!((peek("customer=acme"), peek("customer=other")), (100.into(), 100.into()));
    run(begin);
    assert_eq!((peek("customer=acme"), peek("customer=other")), (500.into(), 100.into()));
    run(end.trim_end().trim_end_matches('"'));
    assert_eq!((peek("customer=acme"), peek("customer=other")), (100.into(), 100.into()));
}

#[test]
fn rules_are_paused_and_resumed() {
    let serving = Serving::start(RULES);
    let blocked = ["take", "ip=192.0.2.7"];
    assert_eq!(serving.run(&blocked).1, 3);
    assert_eq!(serving.run(&["pause"]).0, "running  the rules of this server are not paused\n");
    let (paused, code) = serving.run(&["pause", "--for", "10m"]);
    assert!(paused.starts_with("paused   no rule denies until 20") && code == 0, "{paused}");
    let (passed, code) = serving.run(&blocked);
    assert_eq!(code, 0);
    assert!(passed.contains("\n         would be denied by blocked (shadow)\n"), "{passed}");
    let (explained, _) = serving.run(&["explain", "ip=192.0.2.7"]);
    assert!(
        explained.starts_with("paused   until 20") && explained.contains(": no rule denies\nallowed  "),
        "{explained}"
    );
    let json: Value = serde_json::from_str(&serving.run(&["pause", "--json"]).0).unwrap();
    assert_eq!(json["paused"], true);
    assert_eq!(serving.run(&["resume"]).0, "running  the rules of this server are not paused\n");
    assert_eq!(serving.run(&blocked).1, 3);
    serving.run(&["resume"]);
    assert!(
        serving
            .fail(&["pause", "--for", "2d"])
            .contains("for: expected a length such as \"10m\" or \"1h\", at most 24h")
    );
}

#[cfg(unix)]
#[test]
fn a_unix_socket_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("unix:{}", directory.path().join("http.sock").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    command.args(["serve", "--http", &address, "--resp", "127.0.0.1:0"]);
    let serving = Serving(ServerProcess::start_with(&mut command, RULES));
    assert_eq!(serving.run(&["take", "act=reply", "user=42"]).1, 0);
    assert_eq!(serving.run(&["peek", "act=reply", "user=42", "--cost", "2"]).1, 3);
    assert!(serving.run(&["ban", "user=7", "--for", "1h"]).0.starts_with("banned   user=7"));
    assert!(serving.run(&["explain", "user=7"]).0.contains("A ban by hand"));
    let nowhere = format!("{address}.other");
    let error = serving.fail(&["take", "user=1", "--server", &nowhere]);
    let told = format!(
        "error: cannot ask {nowhere}: there is no such socket; `flowgate serve --http {nowhere}` makes it, --server names \
         another\n"
    );
    assert_eq!(error, told);
}

#[test]
fn requests_need_their_tokens() {
    let serving = Serving::start("[auth]\napi_token = \"s3cret-token\"\nadmin_token = \"adm1n-token\"");
    let error = serving.fail(&["take", "user=1"]);
    assert!(error.contains("status 401") && error.contains("FLOWGATE_TOKEN"), "{error}");
    let with = |token: &str, args: &[&str]| serving.command(args).env("FLOWGATE_TOKEN", token).status().unwrap().code();
    assert_eq!(with("s3cret-token", &["take", "user=1"]), Some(0));
    assert_eq!(with("wrong", &["take", "user=1"]), Some(1));
    assert_eq!(with("s3cret-token", &["ban"]), Some(1), "that is for administrators");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    fs::write(&file, "adm1n-token\n").unwrap();
    assert_eq!(serving.run(&["ban", "--token-file", file.to_str().unwrap()]).1, 0);
}

#[test]
fn mistakes_are_told_by_name() {
    let serving = Serving::start("");
    assert_eq!(serving.fail(&["take"]), "error: a request has fields: add some, such as user=42\n");
    assert_eq!(serving.fail(&["take", "a=1", "a=2"]), "error: the field a stands twice\n");
    let usage = serving.command(&["take", "user"]).output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
    assert!(String::from_utf8(usage.stderr).unwrap().contains("expected a field and its value, such as user=42"));

    // A port without a listener: it was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = serving.fail(&["take", "user=1", "--server", &format!("http://{free}")]);
    let told = format!(
        "error: cannot ask http://{free}: no server listens there; `flowgate serve` starts one, --server names another\n"
    );
    assert_eq!(error, told);
    assert!(serving.fail(&["take", "user=1", "--server", "localhost"]).contains("expected a URL"));
    for command in [&["take", "user=1"][..], &["explain", "user=1"], &["ban"], &["unban", "user=1"]] {
        let error = serving.fail(&[command, &["--url", "localhost"]].concat());
        assert!(error.contains("--server localhost: expected a URL"), "{command:?}: {error}");
    }
    assert!(serving.fail(&["take", "user=1", "--token-file", "/nowhere"]).contains("cannot read /nowhere"));
    assert!(serving.fail(&["take", "user=1", "--ca", "/dev/null"]).contains("no certificate in it"));
}

#[test]
fn a_port_of_another_protocol_is_told_by_name() {
    let serving = Serving::start("[listen]\ngrpc = \"127.0.0.1:0\"");
    let (resp, http) = (&serving.0.resp, &serving.0.http);
    let grpc = serving.0.first_line_with("  grpc    ").trim().trim_start_matches("grpc    http://").to_owned();
    let error = serving.fail(&["take", "user=1", "--server", &format!("http://{resp}")]);
    let told = format!(
        "error: cannot ask http://{resp}: it closed the connection without an answer; is that the port of the Redis \
         protocol (7071) or of gRPC? Commands ask over HTTP (7070), at the address that `flowgate serve` prints as http"
    );
    assert!(error.starts_with(&told), "{error}");
    // The server may end the connection before the client reads the answer.
    let error = serving.fail(&["take", "user=1", "--server", &format!("http://{grpc}")]);
    let is_told = ["or of gRPC? Commands ask over HTTP", "if it is the port of gRPC, ask that of HTTP"];
    assert!(is_told.iter().any(|told| error.contains(told)), "{error}");
    for address in [resp, http] {
        let error = serving.fail(&["take", "user=1", "--url", &format!("https://{address}")]);
        let told = format!(
            "error: cannot ask https://{address}: its answer is not TLS; ask http://, unless another port has TLS"
        );
        assert!(error.starts_with(&told), "{error}");
    }
    let error = serving.fail(&["take", "user=1", "--server", &format!("redis://{resp}")]);
    assert!(error.ends_with("or unix:PATH; commands ask over HTTP, not over the Redis protocol\n"), "{error}");
}

#[test]
fn shells_can_complete() {
    for (shell, expected) in [("bash", "_flowgate()"), ("zsh", "#compdef flowgate"), ("fish", "complete -c flowgate")] {
        let output = Command::new(env!("CARGO_BIN_EXE_flowgate")).args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && script.contains(expected) && script.contains("explain"), "{shell}");
    }
}

#[test]
fn a_server_that_wants_tls_is_known_by_its_alert() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let alert = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The request is read first. If the server closed a connection with unread bytes, TCP would reset it and the
        // alert could be lost.
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        stream.write_all(&[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x32]).unwrap();
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    let output = command.args(["ban", "--server", &url]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected =
        format!("error: cannot ask {url}: its answer is not HTTP; if it has TLS, ask https:// with --ca FILE; if ");
    assert!(stderr.starts_with(&expected), "{stderr}");
    alert.join().unwrap();
}

#[test]
fn a_certificate_that_is_not_trusted_comes_with_advice() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let start = |constraints: &str| {
        self_signed(directory.path(), "test", &["subjectAltName=IP:127.0.0.1", constraints]);
        Serving::start(&format!("[tls]\ncert = '{}'\nkey = '{}'\n", path("test.pem"), path("test.key")))
    };
    let serving = start("basicConstraints=critical,CA:FALSE");
    assert!(serving.fail(&["take", "user=1"]).contains("; give theirs by --ca FILE: "));
    assert_eq!(serving.run(&["take", "user=1", "--ca", &path("test.pem")]).1, 0);
    let serving = start("basicConstraints=critical,CA:TRUE");
    let error = serving.fail(&["take", "user=1", "--ca", &path("test.pem")]);
    assert!(error.contains("make one with basicConstraints=CA:FALSE: "), "{error}");
}
