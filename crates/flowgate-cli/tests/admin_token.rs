//! The admin token that a server makes for itself: which commands find it, and which do not.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};

use flowgate_testkit::server_process::ServerProcess;

const BAN: [&str; 6] = ["ban", "ip=192.0.2.0/24", "--for", "1h", "--reason", "scraping"];

/// A user's home, and commands with no other environment.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn token_file(&self) -> PathBuf {
        self.0.path().join(".local/state/flowgate/admin-token")
    }

    fn token(&self) -> String {
        fs::read_to_string(self.token_file()).unwrap().trim_end().to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = flowgate(Path::new(env!("CARGO_BIN_EXE_flowgate")), args);
        command.env("HOME", self.0.path());
        command
    }

    fn serve(&self, more: &[&str]) -> ServerProcess {
        let mut command = self.command(&["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
        command.args(more);
        ServerProcess::spawn(&mut command)
    }

    /// The output of a command that asks a server.
    #[track_caller]
    fn ask(&self, server: &ServerProcess, args: &[&str]) -> String {
        done(self.command(args).env("FLOWGATE_SERVER", &server.url)).unwrap()
    }
}

/// The binary, with an empty environment.
fn flowgate(binary: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(args).env_clear().current_dir("/").stdin(Stdio::null());
    command
}

/// The output of a command; if it fails, its message.
#[track_caller]
fn done(command: &mut Command) -> Result<String, String> {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    if status.success() { Ok(stdout) } else { Err(stderr) }
}

/// Kills a server and returns everything that it wrote.
fn all_lines(server: &mut ServerProcess) -> Vec<String> {
    let rest = server.kill();
    [std::mem::take(&mut server.announcement), rest].concat()
}

/// A copy of the binary that every user may start.
fn public_binary(directory: &Path) -> PathBuf {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    let binary = directory.join("flowgate");
    // Another process makes the copy. If this process made it, a child that another thread starts meanwhile would hold
    // the copy open for writing, and such a file cannot be executed.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_flowgate")).arg(&binary).status().unwrap();
    assert!(copied.success(), "cp: {copied}");
    binary
}

/// Lets a command run as a user without rights; only root can do that.
fn without_rights(command: &mut Command, user: u32) -> &mut Command {
    if rustix::process::geteuid().is_root() {
        command.uid(user).gid(user);
    } else {
        eprintln!("NOT AS ANOTHER USER: only root can start a command as one; the rest of the test runs as this user");
    }
    command
}

#[test]
fn a_newcomer_bans_without_any_setting() {
    let home = Home::new();
    let forum = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/forum.toml");
    let server = home.serve(&["--config", forum]);
    assert!(home.ask(&server, &["take", "act=reply", "user=43"]).starts_with("allowed  by reply"));
    assert!(home.ask(&server, &BAN).starts_with("banned   ip=192.0.2.0/24"));
    let (token, mode) = (home.token(), fs::metadata(home.token_file()).unwrap().permissions().mode());
    assert_eq!((token.len(), mode & 0o777), (64, 0o600), "256 bits, and only for this user");
    assert_eq!(done(&mut home.command(&["token"])).unwrap(), format!("{token}\n"));
    drop(server);

    let again = home.serve(&[]);
    assert_eq!(home.token(), token, "it is kept");
    assert!(home.ask(&again, &BAN).starts_with("banned"));
}

#[test]
fn the_token_is_never_told() {
    let home = Home::new();
    let file = home.0.path().join("flowgate.toml");
    fs::write(&file, "[log]\nlevel = \"trace\"\nformat = \"json\"\ndenials = \"all\"\n").unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let mut server = home.serve(&config);
    let token = home.token();
    home.ask(&server, &BAN);
    home.ask(&server, &["ban"]);
    let shown = done(home.command(&["config"]).args(config)).unwrap();
    assert!(shown.contains("admin_token = \"\"") && !shown.contains(&token), "{shown}");
    let log = all_lines(&mut server).join("\n");
    assert!(!log.contains(&token), "{log}");
}

#[test]
fn servers_of_one_user_share_a_token() {
    let home = Home::new();
    let servers: Vec<ServerProcess> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..2).map(|_| scope.spawn(|| home.serve(&[]))).collect();
        starting.into_iter().map(|server| server.join().unwrap()).collect()
    });
    for server in &servers {
        assert!(home.ask(server, &BAN).starts_with("banned"));
    }
}

#[test]
fn another_user_is_told_the_file_and_sudo() {
    let (owner, other) = (Home::new(), tempfile::tempdir().unwrap());
    let server = owner.serve(&[]);
    let (token, file) = (owner.token(), owner.token_file());
    if !rustix::process::geteuid().is_root() {
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let binary = public_binary(other.path());
    let ask = |args: &[&str]| {
        let mut command = flowgate(&binary, args);
        command.env("FLOWGATE_SERVER", &server.url).env("STATE_DIRECTORY", file.parent().unwrap());
        without_rights(&mut command, 65534);
        command
    };
    let named = format!("cannot read {}: Permission denied (os error 13) (use sudo)", file.display());
    for args in [&BAN[..], &["token"], &["ban", "--token-file", file.to_str().unwrap()]] {
        let error = done(&mut ask(args)).unwrap_err();
        assert!(error.contains(&named) && !error.contains(&token), "{args:?}: {error}");
    }
    let error = done(&mut ask(&["token"])).unwrap_err();
    assert_eq!(error, format!("error: {named}\n"), "the file is there: nothing else is the reason");
    assert!(done(ask(&BAN).env("FLOWGATE_TOKEN", &token)).unwrap().starts_with("banned"));
    assert_eq!(done(&mut ask(&["take", "--key", "k", "--limit", "5/60s"])).map(drop), Ok(()), "which needs no token");
}

#[test]
fn a_user_without_a_server_is_told_where_the_token_would_be() {
    let home = Home::new();
    let error = done(&mut home.command(&["token"])).unwrap_err();
    let looked = format!("error: there is no admin token in {} or ", home.token_file().display());
    assert!(error.starts_with(&looked) && error.ends_with("sudo -u USER flowgate token\n"), "{error}");
}

/// A server in a container with a read-only root: it can write nothing, and may have no home.
#[test]
fn a_server_without_a_place_for_its_token_serves_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let binary = public_binary(directory.path());
    for home in [None, Some("/"), Some("/proc")] {
        let mut command = flowgate(&binary, &["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
        if let Some(home) = home {
            command.env("HOME", home);
        }
        let mut server = ServerProcess::spawn(without_rights(&mut command, 65532));
        let ask = |args: &[&str]| done(flowgate(&binary, args).env("FLOWGATE_SERVER", &server.url));
        assert!(ask(&["take", "--key", "k", "--limit", "5/60s"]).is_ok());
        for token in ["", "guess"] {
            let refused =
                done(flowgate(&binary, &BAN).env("FLOWGATE_SERVER", &server.url).env("FLOWGATE_TOKEN", token));
            let error = refused.unwrap_err();
            assert!(error.contains("status 403") && error.contains("auth.admin_token_file"), "{error}");
        }
        let warnings: Vec<_> =
            all_lines(&mut server).into_iter().filter(|line| line.contains("auth.admin_token_file")).collect();
        assert!(matches!(&warnings[..], [line] if line.contains("WARN")), "{home:?}: {warnings:?}");
    }
}

/// A server that notes the token of each request, and answers that there are no bans.
fn listener() -> (u16, Receiver<Option<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, shown) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let lines: Vec<String> =
                reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let token = lines.iter().find_map(|line| line.strip_prefix("authorization: Bearer ").map(str::to_owned));
            let body = r#"{"bans":[],"rule_bans":[]}"#;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = reader.get_mut().write_all(format!("{head}{body}").as_bytes());
            if told.send(token).is_err() {
                return;
            }
        }
    });
    (port, shown)
}

#[test]
fn the_token_of_this_machine_is_shown_to_this_machine_alone() {
    let home = Home::new();
    let state = home.token_file();
    fs::create_dir_all(state.parent().unwrap()).unwrap();
    fs::write(&state, "made-here\n").unwrap();
    let given = home.0.path().join("given");
    fs::write(&given, "from-a-file\n").unwrap();
    let (port, shown) = listener();
    let (proxy, to_proxy) = listener();
    let ask = |host: &str, more: &[&str], token: Option<&str>| {
        let mut command = home.command(&["ban", "--server", &format!("http://{host}:{port}")]);
        command.args(more).env("NO_PROXY", "0.0.0.0");
        command
            .env("http_proxy", format!("http://127.0.0.1:{proxy}"))
            .env("ALL_PROXY", format!("http://127.0.0.1:{proxy}"));
        if let Some(token) = token {
            command.env("FLOWGATE_TOKEN", token);
        }
        assert_eq!(done(&mut command).unwrap(), "no bans are in force\n");
        shown.try_recv().unwrap()
    };
    for host in ["127.0.0.1", "localhost"] {
        assert_eq!(ask(host, &[], None).as_deref(), Some("made-here"), "{host}");
    }
    // The unspecified address also leads to this machine, but is not a loopback address.
    assert_eq!(ask("0.0.0.0", &[], None), None);
    let file = ["--token-file", given.to_str().unwrap()];
    assert_eq!(ask("127.0.0.1", &[], Some("from-environment")).as_deref(), Some("from-environment"));
    assert_eq!(ask("127.0.0.1", &file, Some("from-environment")).as_deref(), Some("from-a-file"));
    assert_eq!(ask("0.0.0.0", &file, None).as_deref(), Some("from-a-file"));
    assert!(to_proxy.try_recv().is_err(), "a proxy is another host");

    // A decision needs no token, so a program that listens in the server's place learns none.
    let url = format!("http://127.0.0.1:{port}");
    for command in [&["take", "user=1"][..], &["peek", "user=1"], &["reset", "user=1"], &["explain", "user=1"]] {
        assert!(done(home.command(command).args(["--server", &url])).is_err(), "this is not a decision");
        assert_eq!(shown.try_recv().unwrap(), None, "{command:?}");
    }
    let mut given = home.command(&["take", "user=1", "--server", &url]);
    assert!(done(given.env("FLOWGATE_TOKEN", "for-decisions")).is_err());
    assert_eq!(shown.try_recv().unwrap().as_deref(), Some("for-decisions"));
}
