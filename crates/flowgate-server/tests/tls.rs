//! TLS from outside: redis-cli and curl, with certificates that openssl makes. `scripts/test` installs them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use flowgate_engine::config::{Input, LoadedConfig, Options};
use flowgate_koala::load_config;
use flowgate_server::{Author, Config, Reload, ReloadStatus, Reloader, Server, Service};
use flowgate_testkit::certificates::Authority;
use flowgate_testkit::server::RunningServer;
use flowgate_testkit::wait::{eventually, eventually_some};

/// A configuration file beside the authority's certificates.
fn configure(authority: &Authority, client_ca: Option<&str>) -> PathBuf {
    let mut text = "listen = { http = '127.0.0.1:0', resp = '127.0.0.1:0' }\nserver = { threads = 1 }\n".to_owned();
    text += "[tls]\ncert = 'server.pem'\nkey = 'server.key'\n";
    if let Some(client_ca) = client_ca {
        text += &format!("client_ca = '{client_ca}'\n");
    }
    fs::write(authority.path("flowgate.toml"), text).unwrap();
    authority.path("flowgate.toml")
}

/// A server that renews its certificates.
struct Running {
    service: Service,
    resp: SocketAddr,
    http: SocketAddr,
    reloader: Reloader,
    _server: RunningServer,
}

impl Running {
    fn start(file: &Path) -> Running {
        Running::start_with(file, |loaded| loaded)
    }

    /// `edit` changes every configuration that is loaded again.
    fn start_with(file: &Path, edit: impl Fn(LoadedConfig) -> LoadedConfig + Send + 'static) -> Running {
        let file = file.to_owned();
        let loaded = load_config(Input::File(&file), [], Options::default()).unwrap();
        let config = loaded.config.clone();
        let bind = async move || Server::bind(&config).await.unwrap();
        let (server, (service, reloader)) = RunningServer::start_with(bind, |server| {
            let reload = Reload {
                service: server.service.clone(),
                loaded,
                load: Box::new(move || load_config(Input::File(&file), [], Options::default()).map(&edit)),
                certificates: server.certificates.clone(),
                poll: Duration::from_millis(10),
            };
            (server.service.clone(), reload.start().unwrap())
        });
        Running { service, resp: server.resp.unwrap(), http: server.http.unwrap(), reloader, _server: server }
    }

    /// The name in the certificate that clients see.
    fn certificate(&self) -> String {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &self.resp.to_string()]).stdin(std::process::Stdio::null());
        let shown = said(&run(&mut command));
        shown.lines().find_map(|line| line.strip_prefix("subject=")).unwrap_or(&shown).replace(' ', "")
    }

    /// The number of rules in force, and of Koala's.
    fn rules(&self) -> (usize, usize) {
        let koala = self.service.koala_rules().map_or(0, |koala| koala.rules.file.number_of_rules());
        (self.service.rules().rules.len(), koala)
    }

    /// Waits for the next failed attempt. Returns its error, and the file that the metrics name.
    fn failure(&self, failed: u64) -> (String, String) {
        let status = eventually_some("an attempt fails", || {
            Some(self.reloader.status()).filter(|status| status.failed == failed)
        });
        // The metrics follow the status within a moment.
        let metric = eventually_some("the metrics name a file", || {
            let metrics = self.service.prometheus();
            metrics.lines().find(|line| line.starts_with("flowgate_reload_wrong_file{")).map(str::to_owned)
        });
        (status.last_error.unwrap(), metric)
    }

    fn redis_cli(&self, args: &[&str]) -> Output {
        let port = self.resp.port().to_string();
        run(Command::new("redis-cli").args(["-h", "127.0.0.1", "-p", &port]).args(args))
    }

    fn curl(&self, args: &[&str]) -> Output {
        let url = format!("https://{}/healthz", self.http);
        run(Command::new("curl").args(["-sS", "-m", "30"]).args(args).arg(url))
    }
}

fn run(command: &mut Command) -> Output {
    let program = command.get_program().to_owned();
    command.output().unwrap_or_else(|error| panic!("{program:?}: {error} (scripts/test installs it)"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn both_protocols_are_encrypted() {
    let authority = Authority::new();
    authority.issue("server");
    let server = Running::start(&configure(&authority, None));
    let ca = authority.text("ca.pem");

    let tls = ["--tls", "--cacert", &ca];
    let throttled = server.redis_cli(&[&tls[..], &["CL.THROTTLE", "user:42", "15", "30", "60"]].concat());
    assert_eq!(said(&throttled), "0\n16\n15\n-1\n2\n");
    let long = "x".repeat(100_000);
    assert_eq!(said(&server.redis_cli(&[&tls[..], &["ECHO", &long]].concat())).trim_end(), long);
    assert_eq!(said(&server.curl(&["--cacert", &ca])), "ok");
    // The client refuses a certificate whose issuer it does not know.
    assert!(!server.curl(&[]).status.success());
}

#[test]
fn replies_that_are_read_late_arrive_in_full() {
    let authority = Authority::new();
    authority.issue("server");
    let server = Running::start(&configure(&authority, None));
    // Far more than the system and TLS hold on the way, so that the server has to wait for the client to read.
    let (ca, port, word) = (authority.text("ca.pem"), server.resp.port().to_string(), "x".repeat(100_000));
    // A tenth of a second, unless the server forgets about what is still to be sent.
    let mut command = Command::new("timeout");
    command.args([
        "15",
        "redis-benchmark",
        "--tls",
        "--cacert",
        &ca,
        "-p",
        &port,
        "-n",
        "200",
        "-c",
        "2",
        "-P",
        "100",
        "-q",
        "ECHO",
        &word,
    ]);
    let output = run(&mut command);
    assert!(output.status.success() && !said(&output).contains("rror"), "{}", said(&output));
}

#[test]
fn mutual_tls_asks_for_a_certificate() {
    let authority = Authority::new();
    authority.issue("server");
    authority.issue("client");
    let stranger = Authority::new();
    stranger.issue("client");
    let server = Running::start(&configure(&authority, Some("ca.pem")));
    let ca = authority.text("ca.pem");

    let show = |authority: &Authority| {
        ["--cert".to_owned(), authority.text("client.pem"), "--key".to_owned(), authority.text("client.key")]
    };
    let tls = |shown: &[String]| {
        let mut args = vec!["--tls".to_owned(), "--cacert".to_owned(), ca.clone()];
        args.extend_from_slice(shown);
        args.push("PING".to_owned());
        said(&server.redis_cli(&args.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    assert_eq!(tls(&show(&authority)), "PONG\n");
    assert!(!tls(&[]).contains("PONG"));
    assert!(!tls(&show(&stranger)).contains("PONG"));
    let [cert, pem, key, private] = show(&authority);
    assert_eq!(said(&server.curl(&["--cacert", &ca, &cert, &pem, &key, &private])), "ok");
    assert!(!server.curl(&["--cacert", &ca]).status.success());
}

#[test]
fn client_without_tls_is_closed_and_others_are_served() {
    let authority = Authority::new();
    authority.issue("server");
    let server = Running::start(&configure(&authority, None));
    let mut clear = TcpStream::connect(server.resp).unwrap();
    clear.write_all(b"PING\r\n").unwrap();
    let mut answer = Vec::new();
    // It hears an alert at the most.
    let _ = clear.read_to_end(&mut answer);
    assert!(!answer.windows(4).any(|window| window == b"PONG"), "{answer:?}");
    let info = said(&server.redis_cli(&["--tls", "--cacert", &authority.text("ca.pem"), "INFO"]));
    assert!(info.contains("tls_handshake_errors:1\r\n"), "{info}");
}

#[test]
fn renewed_certificates_are_shown_and_wrong_ones_are_not() {
    let authority = Authority::new();
    authority.issue("server");
    let server = Running::start(&configure(&authority, None));
    assert_eq!(server.certificate(), "CN=server");

    // The key of another certificate: what is in force stays.
    authority.issue("renewed");
    fs::copy(authority.path("renewed.key"), authority.path("server.key")).unwrap();
    let failed = eventually_some("the reload fails", || server.reloader.status().last_error);
    assert!(failed.contains("server.pem and ") && failed.contains("server.key cannot be used together"), "{failed}");
    assert_eq!(server.certificate(), "CN=server");

    fs::copy(authority.path("renewed.pem"), authority.path("server.pem")).unwrap();
    eventually("the reload succeeds", || server.reloader.status().last_error.is_none());
    assert_eq!(server.certificate(), "CN=renewed");
}

/// Rules, Koala's rules and certificates change together or not at all, whichever part is wrong.
#[test]
fn reload_with_one_wrong_part_changes_no_part() {
    let authority = Authority::new();
    authority.issue("server");
    authority.issue("renewed");
    let write = |name: &str, text: &str| fs::write(authority.path(name), text).unwrap();
    let configure = |tls: &str, rules: usize| {
        let mut text = "listen = { http = '127.0.0.1:0', resp = '127.0.0.1:0' }\nserver = { threads = 1 }\n".to_owned();
        text += &format!("koala.rules = 'koala.conf'\ntls = {{ cert = '{tls}.pem', key = '{tls}.key' }}\n");
        (0..rules).for_each(|number| text += &format!("[[rule]]\nname = 'r{number}'\nlimits = ['5/60s']\n"));
        write("new.toml", &text);
        fs::rename(authority.path("new.toml"), authority.path("flowgate.toml")).unwrap();
    };
    let koala = "[rules]\nrule : [direct] [uid=1] [] [result=1; return=7]\n";
    write("koala.conf", koala);
    configure("server", 1);
    // The loader refuses a file with two rules of one name. To make the compilation after it fail, this test doubles
    // the rules of a file that was loaded.
    let twice = authority.path("twice");
    let server = Running::start_with(&authority.path("flowgate.toml"), move |mut loaded| {
        if twice.exists() {
            let again = loaded.config.policy.rules.clone();
            loaded.config.policy.rules.extend(again);
        }
        loaded
    });
    let in_force = || (server.certificate(), server.rules());
    let before = ("CN=server".to_owned(), (1, 1));
    assert_eq!(in_force(), before);

    // A key that does not fit its certificate, found by the watcher.
    write("broken.pem", &fs::read_to_string(authority.path("renewed.pem")).unwrap());
    write("broken.key", &fs::read_to_string(authority.path("server.key")).unwrap());
    configure("broken", 2);
    let (error, metric) = server.failure(1);
    assert!(error.contains("broken.key cannot be used together") && metric.contains("/broken.key\"} 1"), "{error}");
    assert_eq!(in_force(), before);

    // Koala's rules are wrong, found by a caller that asks, as SIGHUP does.
    write("koala.conf", "[rules]\nrule : [nonsense]\n");
    configure("renewed", 2);
    server.reloader.reload(Author::SIGHUP);
    let failed = |status: &ReloadStatus| status.failed > 1;
    let status = eventually_some("an attempt fails", || Some(server.reloader.status()).filter(failed));
    let (error, metric) = server.failure(status.failed);
    assert!(error.contains("koala.conf:2") && metric.contains("koala.conf\"} 1"), "{error} {metric}");
    assert_eq!(in_force(), before);

    // The rules do not fit together.
    write("koala.conf", &koala.replace("uid=1", "uid=2"));
    write("twice", "");
    let status = server.reloader.reload_now(Author::PROGRAM, None);
    assert!(status.last_error.as_ref().is_some_and(|error| error.contains("r0")), "{status:?}");
    assert_eq!(in_force(), before);

    fs::remove_file(authority.path("twice")).unwrap();
    assert_eq!(server.reloader.reload_now(Author::PROGRAM, None).last_error, None);
    assert_eq!(in_force(), ("CN=renewed".to_owned(), (2, 1)));
    assert!(!server.service.prometheus().contains("flowgate_reload_wrong_file{"));
}

#[tokio::test]
async fn unusable_file_is_named() {
    let authority = Authority::new();
    authority.issue("server");
    authority.issue("other");
    fs::write(authority.path("broken.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n").unwrap();
    fs::write(authority.path("empty.pem"), "").unwrap();
    let in_directory = |text: &str| text.replace('@', &format!("{}/", authority.directory().display()));
    for (tls, expected) in [
        ("cert = '@empty.pem'\nkey = '@server.key'", "[tls] cert: @empty.pem holds no certificate in PEM"),
        ("cert = '@server.pem'\nkey = '@server.pem'", "[tls] key: @server.pem holds no private key in clear in PEM"),
        ("cert = '@server.pem'\nkey = '@other.key'", "[tls]: @server.pem and @other.key cannot be used together"),
        (
            "cert = '@server.pem'\nkey = '@server.key'\nclient_ca = '@empty.pem'",
            "[tls] client_ca: @empty.pem holds no certificate in PEM",
        ),
        ("cert = '@broken.pem'\nkey = '@server.key'", "[tls] cert: @broken.pem is not a PEM file: "),
    ] {
        let config = Config::from_toml(&format!("[tls]\n{}", in_directory(tls))).unwrap();
        let error = Server::bind(&config).await.unwrap_err().to_string();
        assert!(error.starts_with(&in_directory(expected)), "{error}");
    }
    // What goes away between the reading of the configuration and the start.
    let config = Config::from_toml(&in_directory("[tls]\ncert = '@server.pem'\nkey = '@server.key'")).unwrap();
    fs::remove_file(authority.path("server.key")).unwrap();
    let error = Server::bind(&config).await.unwrap_err().to_string();
    assert_eq!(error, in_directory("[tls] key: cannot read @server.key"));
}
