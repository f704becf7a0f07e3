//! The binary from outside: its output, its answers and its exit codes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use flowgate_testkit::certificates::self_signed;
use flowgate_testkit::server_process::{ServerProcess, serve_command};
use flowgate_testkit::wait::{HANG_TIMEOUT, eventually};
use flowgate_testkit::{files, http, resp};

fn flowgate(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("STATE_DIRECTORY", env!("CARGO_TARGET_TMPDIR"));
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn start(more: &[&str]) -> ServerProcess {
    let mut command = serve_command(env!("CARGO_BIN_EXE_flowgate"));
    ServerProcess::spawn(command.args(more).env("STATE_DIRECTORY", env!("CARGO_TARGET_TMPDIR")))
}

#[cfg(unix)]
#[test]
fn serves_until_it_is_told_to_stop() {
    for signal in ["TERM", "INT"] {
        let mut server = start(&[]);
        assert_eq!(resp::Client::connect(&server.resp).call("PING"), "PONG");
        assert_eq!(http::Client::connect(&server.http).call("GET", "/healthz", &[], "").status, 200);

        server.signal(signal);
        let (status, rest) = server.wait();
        assert!(status.success(), "after SIG{signal}: {rest:?}");
        let port = server.resp.rsplit(':').next().unwrap();
        let try_it = format!("try: redis-cli -h 127.0.0.1 -p {port} FG.LIMIT user:42:reply 5/60s");
        assert_eq!(rest, [try_it.as_str(), "stopping"]);
    }
}

#[cfg(unix)]
#[test]
fn new_certificates_are_told_as_such_and_missing_ones_are_mistakes() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let issue = || self_signed(directory.path(), "server", &[]);
    fs::write(path("flowgate.toml"), "[tls]\ncert = 'server.pem'\nkey = 'server.key'\n").unwrap();
    let file = path("flowgate.toml").display().to_string();
    let invalid = flowgate(&["validate", &file]).output().unwrap();
    assert_eq!(invalid.status.code(), Some(1));
    assert!(text(&invalid.stderr).contains("/server.key: there is no such file"), "{}", text(&invalid.stderr));

    issue();
    let server = start(&["--config", &file]);
    let said =
        || server.line_with("in force").split_once("new ").map(|(_, rest)| rest.split(' ').next().unwrap().to_owned());
    issue();
    server.signal("HUP");
    assert_eq!(said().as_deref(), Some("certificates"), "and nothing of rules");
    server.signal("HUP");
    assert_eq!(said().as_deref(), Some("rules"), "nothing is new, but somebody has asked");
    fs::write(path("server.key"), "no key").unwrap();
    server.signal("HUP");
    assert!(server.line_with("the certificates cannot be used, and nothing has changed").contains("/server.key)"));
    fs::remove_file(path("server.key")).unwrap();
    server.signal("HUP");
    assert!(server.line_with("the configuration is wrong, and nothing has changed").contains("flowgate.toml)"));
    server.line_with("/server.key: there is no such file");
    issue();
    assert_eq!(said().as_deref(), Some("certificates"), "noticed without being asked");
}

#[cfg(unix)]
#[test]
fn readiness_tells_of_a_broken_file_on_disk() {
    let directory = files::directory(&[("flowgate.toml", "rule = [{ name = 'all', limits = ['5/60s'] }]\n")]);
    let file = directory.path().join("flowgate.toml");
    let server = start(&["--config", file.to_str().unwrap()]);
    let ready = || http::Client::connect(&server.http).call("GET", "/readyz", &[], "").body;
    assert_eq!(ready(), "ready");
    fs::write(&file, "rule = [{ name = 'all', limits = ['five'] }]\n").unwrap();
    server.signal("HUP");
    server.line_with("nothing has changed");
    let broken = "ready; the configuration on disk has mistakes, the one before it is in force";
    eventually("the mistake is told", || ready() == broken);
    fs::write(&file, "rule = [{ name = 'all', limits = ['6/60s'] }]\n").unwrap();
    server.signal("HUP");
    eventually("all is well", || ready() == "ready");
}

#[test]
fn a_mistake_in_an_option_is_called_by_its_name() {
    let output = flowgate(&["serve", "--http", "0.0.0.0:0", "--resp", "off"]).output().unwrap();
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("--> option --http\n"), "{said}");
    assert!(!said.contains("FLOWGATE_LISTEN"), "{said}");
}

#[cfg(unix)]
#[test]
fn other_rules_go_in_force_on_sighup_and_wrong_ones_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("flowgate.toml");
    let rules = |names: &[&str]| -> String {
        names.iter().map(|name| format!("[[rule]]\nname = \"{name}\"\nlimits = [\"5/60s\"]\n")).collect()
    };
    let write = |text: &str| files::replace(&file, text);
    write(&rules(&["a"]));
    let server = start(&["--config", file.to_str().unwrap()]);
    write(&rules(&["a", "b"]));
    server.signal("HUP");
    assert!(server.line_with("new rules are in force").contains("rules=2"));
    write(&rules(&["a", "a"]));
    server.signal("HUP");
    assert!(server.line_with("the configuration is wrong, and nothing has changed").contains("flowgate.toml)"));
    server.line_with("flowgate.toml:5:8");
    write(&format!("{}[server]\nthreads = 3\n", rules(&[])));
    server.signal("HUP");
    assert!(server.line_with("new rules are in force").contains("rules=0"));
    assert!(server.line_with("restart to change").contains("server.threads"));
    assert_eq!(resp::Client::connect(&server.resp).call("PING"), "PONG");
    // The server also notices the change by itself.
    write(&rules(&["a", "b", "c"]));
    assert!(server.line_with("new rules are in force").contains("rules=3"));
}

#[cfg(unix)]
#[test]
fn systemd_hears_how_it_is_doing() {
    use std::os::unix::net::UnixDatagram;

    let directory = tempfile::tempdir().unwrap();
    let (socket, file) = (directory.path().join("notify"), directory.path().join("flowgate.toml"));
    fs::write(&file, "").unwrap();
    let systemd = UnixDatagram::bind(&socket).unwrap();
    systemd.set_read_timeout(Some(HANG_TIMEOUT)).unwrap();
    let heard = || {
        let mut heard = [0; 200];
        let length = systemd.recv(&mut heard).unwrap();
        text(&heard[..length]).lines().next().unwrap().to_owned()
    };
    let mut command = serve_command(env!("CARGO_BIN_EXE_flowgate"));
    command.arg("--config").arg(&file).env("STATE_DIRECTORY", env!("CARGO_TARGET_TMPDIR"));
    let mut server = ServerProcess::spawn(command.env("NOTIFY_SOCKET", &socket));
    assert_eq!(heard(), "READY=1");
    server.signal("HUP");
    assert_eq!([heard(), heard()], ["RELOADING=1", "READY=1"]);
    server.signal("TERM");
    assert_eq!(heard(), "STOPPING=1");
    assert!(server.wait().0.success());
}

#[cfg(target_os = "linux")]
#[test]
fn the_limit_of_open_files_is_raised_as_far_as_it_goes() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("flowgate.toml");
    let serve = |max_connections: &str| {
        fs::write(&file, format!("[server]\nmax_connections = {max_connections}\n")).unwrap();
        let script = "ulimit -Sn 300; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_flowgate"), "serve", "--config"]).arg(&file);
        command.env("STATE_DIRECTORY", env!("CARGO_TARGET_TMPDIR"));
        ServerProcess::spawn(command.args(["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]))
    };
    let allowed = |server: &ServerProcess| -> u64 {
        let limits = fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
        let mut soft = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap().split_whitespace();
        soft.next().unwrap().parse().unwrap()
    };
    assert!(allowed(&serve("500")) >= 2 * 500);
    // Few systems allow a user this many descriptors.
    let server = serve("10_000_000");
    let said = server.announcement.iter().any(|line| line.contains("open files and the system allows"));
    assert_ne!(said, allowed(&server) > 10_000_000, "{:?}", server.announcement);
}

#[test]
fn what_is_in_force_is_said_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("flowgate.toml");
    let text = "[store]\nmax_memory = \"64MB\"\n[lists]\nvip = { values = [\"7\"] }\n\
                [[rule]]\nname = \"a\"\nwhen = { user = \"@vip\" }\naction = \"allow\"\n";
    fs::write(&file, text).unwrap();
    let mut command = serve_command(env!("CARGO_BIN_EXE_flowgate"));
    command.env("STATE_DIRECTORY", env!("CARGO_TARGET_TMPDIR")).env("FLOWGATE_CONFIG", &file);
    let lines = &ServerProcess::spawn(&mut command).announcement;
    assert_eq!(lines[1], format!("  config  {}", file.display()));
    assert_eq!(lines[2..4], ["  rules   1, lists 1", "  store   memory, at most 64MB"]);
}

#[test]
fn a_configuration_that_cannot_be_served_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("flowgate.toml");
    fs::write(&file, "[stor]\n").unwrap();
    let Output { status, stderr, .. } = flowgate(&["serve", "--config", file.to_str().unwrap()]).output().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(text(&stderr).contains("error: unknown key \"stor\""), "{}", text(&stderr));
    // Options are checked as the values of a file are.
    let Output { status, stderr, .. } = flowgate(&["serve", "--http", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(text(&stderr).contains("http asks for no secret"), "{}", text(&stderr));
}

#[test]
fn an_address_in_use_is_named_with_the_reason() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (args, protocol) in [
        (["serve", "--http", &address, "--resp", "127.0.0.1:0"], "http"),
        (["serve", "--http", "127.0.0.1:0", "--resp", &address], "resp"),
    ] {
        let Output { status, stdout, stderr } = flowgate(&args).output().unwrap();
        assert_eq!(status.code(), Some(1));
        assert_eq!(text(&stdout), "");
        let expected = format!("error: cannot listen on {address} for {protocol}: ");
        assert!(text(&stderr).starts_with(&expected), "{}", text(&stderr));
        assert!(text(&stderr).len() > expected.len() + 1, "no reason given");
    }
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    for args in [&["serve", "--http", "nowhere"][..], &["no-such-command"], &[]] {
        assert_eq!(flowgate(args).output().unwrap().status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn an_address_that_cannot_be_read_is_answered_with_what_to_write() {
    for (address, hint) in [
        (":9981", "for all addresses write \"0.0.0.0:9981\""),
        ("27809", "write \"127.0.0.1:27809\""),
        ("localhost:27809", "write \"127.0.0.1:27809\""),
        ("127.0.0.1", "add a port, such as \"127.0.0.1:7070\""),
    ] {
        for option in ["--http", "--resp"] {
            let Output { status, stderr, .. } = flowgate(&["serve", option, address]).output().unwrap();
            assert_eq!(status.code(), Some(2), "{address}");
            assert!(text(&stderr).contains(hint), "{address}: {}", text(&stderr));
        }
    }
}

#[test]
fn the_version_names_the_commit_of_a_checkout() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| text(&output.stdout).trim().to_owned())
    };
    let mut expected = concat!("flowgate ", env!("CARGO_PKG_VERSION")).to_owned();
    if git(&["rev-parse", "--show-prefix"]).as_deref() == Some("crates/flowgate-cli/")
        && let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"])
    {
        expected += &format!(" ({commit})");
    }
    let output = flowgate(&["--version"]).output().unwrap();
    assert_eq!(text(&output.stdout).trim(), expected);
}

#[test]
fn envoys_rules_are_imported_with_the_places_of_mistakes() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let users = "domain: edge\ndescriptors:\n- key: user\n  quota_mode: true\n  rate_limit: { unit: day, requests_per_unit: 5 }\n";
    let (users, routes) =
        (file("users.yaml", users), file("routes.yaml", "domain: edge\ndescriptors:\n- key: route\n"));
    let import = |args: &[&str]| {
        let Output { status, stdout, stderr } = flowgate(&[&["import", "envoy"], args].concat()).output().unwrap();
        (status.code(), text(&stdout).to_owned(), text(&stderr).to_owned())
    };
    let (status, toml, warnings) = import(&[&users]);
    assert_eq!(status, Some(0), "{warnings}");
    assert!(toml.contains("limits = [\"fixed 5/d tz=UTC\"]"), "{toml}");
    assert_eq!(warnings, format!("warning: {users}:4:3: quota_mode is left out: the rule denies by itself\n"));
    let (status, toml, mistake) = import(&[&users, &routes]);
    assert_eq!((status, toml.as_str()), (Some(1), ""));
    assert_eq!(mistake, format!("error: {routes}:1:9: the domain edge is in {users}, too: --merge joins them\n"));
    assert_eq!(import(&["--merge", &users, &routes]).0, Some(0));
    let again = file("again.yaml", "domain: edge\ndescriptors:\n- key: host\n- key: user\n");
    let (status, _, mistake) = import(&["--merge", &users, &again, &routes]);
    assert_eq!(status, Some(1));
    assert_eq!(mistake, format!("error: {again}:4:3: user stands twice in the files of the domain edge\n"));
}
