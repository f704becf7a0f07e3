//! The binary from outside: what it prints, what it answers, how it ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

fn flowgate(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("STATE_DIRECTORY", env!("CARGO_TARGET_TMPDIR"));
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A server on free ports, killed if a test fails before it has ended.
struct Serving {
    child: Child,
    stderr: BufReader<ChildStderr>,
    http: String,
    resp: String,
    /// What it said before it announced where it is.
    before: Vec<String>,
}

impl Serving {
    fn start(more: &[&str]) -> Self {
        Self::start_with(more, |command| command)
    }

    fn start_with(more: &[&str], prepare: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let mut command = flowgate(&["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
        Self::of(prepare(command.args(more)))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut serving = Self { child, stderr, http: String::new(), resp: String::new(), before: Vec::new() };
        serving.http = serving.announced(["http://", "https://"]);
        serving.resp = serving.announced(["redis://", "rediss://"]);
        serving
    }

    /// Reads standard error up to the line that announces an address of this kind.
    fn announced(&mut self, schemes: [&str; 2]) -> String {
        for line in self.stderr.by_ref().lines().map(Result::unwrap) {
            if let Some((_, address)) = schemes.iter().find_map(|scheme| line.split_once(scheme)) {
                return address.to_owned();
            }
            self.before.push(line);
        }
        panic!("the server ended without announcing {schemes:?}");
    }

    /// Reads standard error up to the line that has a text in it.
    #[cfg(unix)]
    fn said(&mut self, text: &str) -> String {
        let found = self.stderr.by_ref().lines().map(Result::unwrap).find(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("the server ended without saying {text:?}"))
    }

    /// Sends `request` and expects the answer to begin with `reply`.
    fn exchange(address: &str, request: &str, reply: &str) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut said = vec![0; reply.len()];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(text(&said), reply, "in answer to {request:?}");
    }

    #[cfg(unix)]
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Fails when it has ended by itself, which is what tests want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[test]
fn serves_until_it_is_told_to_stop() {
    for signal in ["TERM", "INT"] {
        let mut serving = Serving::start(&[]);
        Serving::exchange(&serving.resp, "PING\r\n", "+PONG\r\n");
        Serving::exchange(&serving.http, "GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n", "HTTP/1.1 200 OK\r\n");

        serving.signal(signal);
        let mut rest = String::new();
        serving.stderr.read_to_string(&mut rest).unwrap();
        assert!(serving.child.wait().unwrap().success(), "after SIG{signal}: {rest}");
        let port = serving.resp.rsplit(':').next().unwrap();
        let try_it = format!("try: redis-cli -h 127.0.0.1 -p {port} FG.LIMIT user:42:reply 5/60s\n");
        assert_eq!(rest, try_it + "stopping\n");
    }
}

#[cfg(unix)]
#[test]
fn new_certificates_are_told_as_such_and_missing_ones_are_mistakes() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let issue = || {
        let args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key -out cert -days 2";
        let mut openssl = Command::new("openssl");
        let made = openssl.args(args.split(' ')).args(["-subj", "/CN=x"]).current_dir(directory.path());
        assert!(made.stderr(Stdio::null()).status().unwrap().success());
    };
    fs::write(path("flowgate.toml"), "[tls]\ncert = 'cert'\nkey = 'key'\n").unwrap();
    let file = path("flowgate.toml").display().to_string();
    let invalid = flowgate(&["validate", &file]).output().unwrap();
    assert_eq!(invalid.status.code(), Some(1));
    assert!(text(&invalid.stderr).contains("/key: there is no such file"), "{}", text(&invalid.stderr));

    issue();
    let mut serving = Serving::start(&["--config", &file]);
    let said = |serving: &mut Serving| {
        serving.said("in force").split_once("new ").map(|(_, rest)| rest.split(' ').next().unwrap().to_owned())
    };
    issue();
    serving.signal("HUP");
    assert_eq!(said(&mut serving).as_deref(), Some("certificates"), "and nothing of rules");
    serving.signal("HUP");
    assert_eq!(said(&mut serving).as_deref(), Some("rules"), "nothing is new, but somebody has asked");
    fs::write(path("key"), "no key").unwrap();
    serving.signal("HUP");
    serving.said("the certificates cannot be used, and all stays as it is");
    fs::remove_file(path("key")).unwrap();
    serving.signal("HUP");
    serving.said("the configuration is wrong, and all stays as it is");
    serving.said("/key: there is no such file");
    issue();
    assert_eq!(said(&mut serving).as_deref(), Some("certificates"), "noticed without being asked");
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
    let write = |text: &str| {
        fs::write(file.with_extension("new"), text).unwrap();
        fs::rename(file.with_extension("new"), &file).unwrap();
    };
    write(&rules(&["a"]));
    let mut serving = Serving::start(&["--config", file.to_str().unwrap()]);
    write(&rules(&["a", "b"]));
    serving.signal("HUP");
    assert!(serving.said("new rules are in force").contains("rules=2"));
    write(&rules(&["a", "a"]));
    serving.signal("HUP");
    serving.said("the configuration is wrong, and all stays as it is");
    serving.said("flowgate.toml:5:8");
    write(&format!("{}[server]\nthreads = 3\n", rules(&[])));
    serving.signal("HUP");
    assert!(serving.said("new rules are in force").contains("rules=0"));
    assert!(serving.said("restart to change").contains("server.threads"));
    Serving::exchange(&serving.resp, "PING\r\n", "+PONG\r\n");
    // And without being asked.
    write(&rules(&["a", "b", "c"]));
    assert!(serving.said("new rules are in force").contains("rules=3"));
}

#[cfg(unix)]
#[test]
fn systemd_hears_how_it_is_doing() {
    use std::os::unix::net::UnixDatagram;

    let directory = tempfile::tempdir().unwrap();
    let (socket, file) = (directory.path().join("notify"), directory.path().join("flowgate.toml"));
    fs::write(&file, "").unwrap();
    let systemd = UnixDatagram::bind(&socket).unwrap();
    systemd.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let heard = || {
        let mut heard = [0; 200];
        let length = systemd.recv(&mut heard).unwrap();
        text(&heard[..length]).lines().next().unwrap().to_owned()
    };
    let mut serving =
        Serving::start_with(&["--config", file.to_str().unwrap()], |command| command.env("NOTIFY_SOCKET", &socket));
    assert_eq!(heard(), "READY=1");
    serving.signal("HUP");
    assert_eq!([heard(), heard()], ["RELOADING=1", "READY=1"]);
    serving.signal("TERM");
    assert_eq!(heard(), "STOPPING=1");
    assert!(serving.child.wait().unwrap().success());
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
        Serving::of(command.args(["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]))
    };
    let allowed = |serving: &Serving| -> u64 {
        let limits = fs::read_to_string(format!("/proc/{}/limits", serving.child.id())).unwrap();
        let mut soft = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap().split_whitespace();
        soft.next().unwrap().parse().unwrap()
    };
    assert!(allowed(&serve("500")) >= 2 * 500);
    // Few systems allow so many, whoever asks.
    let serving = serve("10_000_000");
    let said = serving.before.iter().any(|line| line.contains("open files and the system allows"));
    assert_ne!(said, allowed(&serving) > 10_000_000, "{:?}", serving.before);
}

#[test]
fn what_is_in_force_is_said_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("flowgate.toml");
    let text = "[store]\nmax_memory = \"64MB\"\n[lists]\nvip = { values = [\"7\"] }\n\
                [[rule]]\nname = \"a\"\nwhen = { user = \"@vip\" }\naction = \"allow\"\n";
    fs::write(&file, text).unwrap();
    let mut child = flowgate(&["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"])
        .env("FLOWGATE_CONFIG", &file)
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let lines: Vec<_> = stderr.lines().map(Result::unwrap).take(5).collect();
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(lines[1], format!("  config  {}", file.display()));
    assert_eq!(lines[2..4], ["  rules   1, lists 1", "  store   memory, at most 64MB"]);
}

#[test]
fn a_configuration_that_cannot_be_served_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("flowgate.toml");
    for (text, expected) in [
        ("[listen]\ngrpc = \"127.0.0.1:0\"\n", "error: listen.grpc is not there yet"),
        ("[stor]\n", "error: unknown key \"stor\""),
    ] {
        fs::write(&file, text).unwrap();
        let Output { status, stderr, .. } = flowgate(&["serve", "--config", file.to_str().unwrap()]).output().unwrap();
        assert_eq!(status.code(), Some(1));
        assert!(self::text(&stderr).contains(expected), "{}", self::text(&stderr));
    }
    // The checks of a file hold for flags, too.
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
