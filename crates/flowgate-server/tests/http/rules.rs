//! The configuration file over HTTP: reading, checking, changing it, and changing it back.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flowgate_engine::config::{Input, Options};
use flowgate_koala::load_config;
use flowgate_server::{Author, MAX_VERSIONS, Reload, Reloader, RulesFile};
use serde_json::json;
use tempfile::TempDir;

use super::*;

pub(super) const FIRST: &str = "[auth]\nresp_password = \"sesame\"\n\n[[rule]]\nname = \"all\"\nlimits = [\"5/60s\"]\n";

/// A server whose configuration is a file.
pub(super) struct AdminFile {
    pub(super) server: Running,
    pub(super) path: PathBuf,
    reloader: Arc<Reloader>,
    _directory: TempDir,
}

impl AdminFile {
    pub(super) fn start(text: &str) -> AdminFile {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("flowgate.toml");
        fs::write(&path, text).unwrap();
        let file = path.clone();
        let read = move || load_config(Input::File(&file), [], Options::default());
        let loaded = read().unwrap();
        let (config, file) = (loaded.config.clone(), path.clone());
        let (sender, reloaders) = std::sync::mpsc::channel();
        let server = Running::start_with(config, move |server| {
            // Changes are put in force by who makes them, not found in passing.
            let poll = Duration::from_secs(3600);
            let service = server.service.clone();
            let reload = Reload { service, loaded, load: Box::new(read), certificates: None, poll };
            let reloader = Arc::new(reload.start().unwrap());
            sender.send(Arc::clone(&reloader)).unwrap();
            let load = Box::new(|input: Input<'_>| load_config(input, [], Options::default()));
            server.administer(RulesFile { path: file, load, reloader });
        });
        AdminFile { server, path, reloader: reloaders.recv().unwrap(), _directory: directory }
    }

    /// Loads the file again, as its watcher does.
    pub(super) fn reload(&self) {
        self.reloader.reload_now(Author::FILE, None);
    }

    pub(super) fn read(&self) -> (String, String) {
        let reply = self.server.get("/v1/rules");
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/toml")));
        (reply.header("etag").unwrap().to_owned(), reply.body)
    }

    pub(super) fn put(&self, etag: &str, text: &str) -> Reply {
        let headers = [("content-type", "application/toml"), ("if-match", etag)];
        self.server.connect().call("PUT", "/v1/rules", &headers, text)
    }

    pub(super) fn limit(&self) -> Value {
        self.server.post("/v1/peek", r#"{"fields":{}}"#).json()["limit"].clone()
    }

    fn versions(&self) -> Vec<u64> {
        let history = self.server.get("/v1/rules/history").json();
        history["versions"].as_array().unwrap().iter().map(|version| version["version"].as_u64().unwrap()).collect()
    }
}

#[test]
fn mistakes_have_codes_and_values() {
    let admin = AdminFile::start(FIRST);
    let mistake = |reply: Reply| (reply.json()["code"].clone(), reply.json()["values"].clone());
    assert_eq!(mistake(admin.put("\"old\"", FIRST)), (json!("file-changed"), json!({})));
    let (etag, text) = admin.read();
    let wrong = text.replace("limits", "limts");
    assert_eq!(mistake(admin.put(&etag, &wrong)), (json!("rules-wrong"), json!({"mistakes": "1"})));
    let order = r#"{"field":"ip","value":"1.2.3.0/33","for":"1h"}"#;
    assert_eq!(mistake(admin.server.post("/v1/bans", order)), (json!("ban-value"), json!({"value": "1.2.3.0/33"})));

    let headers = [("content-type", "application/toml")];
    let checked = admin.server.connect().call("POST", "/v1/rules/validate", &headers, &wrong).json();
    let finding = &checked["findings"][0];
    assert_eq!(finding["message"], "unknown key \"limts\" in this rule");
    assert_eq!((&finding["code"], &finding["values"]["key"]), (&json!("unknown-key"), &json!("\"limts\"")));
    let hint = json!({"text": "did you mean \"limits\"?", "code": "meant", "values": {"word": "limits"}});
    assert_eq!((&finding["hint"], &finding["hints"]), (&hint["text"], &json!([hint])));
}

#[test]
fn a_file_that_the_server_has_not_read_yet_has_a_sign() {
    let admin = AdminFile::start(FIRST);
    let state = || admin.server.get("/v1/rules").header("x-flowgate-file").unwrap().to_owned();
    assert_eq!(state(), "in-force");
    let half = &FIRST[..FIRST.len() / 2];
    fs::write(&admin.path, half).unwrap();
    assert_eq!(state(), "changing");
    assert!(!admin.read().1.contains("sesame"), "secrets are hidden in half a file, too");
    admin.reload();
    assert_eq!(state(), "wrong", "half of the file is not TOML, and it stays half");
    fs::write(&admin.path, FIRST.replace("5/60s", "7/60s")).unwrap();
    assert_eq!(state(), "changing");
    admin.reload();
    assert_eq!((state().as_str(), admin.limit()), ("in-force", json!(7)));
    let (etag, text) = admin.read();
    assert_eq!(admin.put(&etag, &text.replace("7/60s", "8/60s")).status, 200);
    assert_eq!(state(), "in-force", "a published text is in force when it is answered");
}

#[test]
fn a_change_is_in_force_when_it_is_answered() {
    let admin = AdminFile::start(FIRST);
    let (etag, text) = admin.read();
    assert_eq!(text, FIRST.replace("sesame", "***"), "secrets are hidden");
    assert_eq!((admin.limit(), admin.versions()), (json!(5), vec![]));

    let written = admin.put(&etag, &text.replace("5/60s", "6/60s"));
    assert_eq!((written.status, &written.json()["version"], &written.json()["rules"]), (200, &json!(2), &json!(1)));
    assert_eq!(admin.limit(), 6);
    assert_eq!(fs::read_to_string(&admin.path).unwrap(), FIRST.replace("5/60s", "6/60s"), "the secret is still there");
    assert_eq!(written.header("etag"), Some(admin.read().0.as_str()));
    assert_eq!(admin.versions(), [2, 1]);

    let rolled_back = admin.server.post("/v1/rules/rollback", r#"{"version":1}"#);
    assert_eq!((rolled_back.status, &rolled_back.json()["version"]), (200, &json!(3)));
    assert_eq!((admin.limit(), admin.read().0), (json!(5), etag));
    assert_eq!(admin.versions(), [3, 2, 1]);
    let history = admin.server.get("/v1/rules/history").json();
    let restored: Vec<_> = history["versions"].as_array().unwrap().iter().map(|version| &version["restores"]).collect();
    assert_eq!(restored, [&json!(1), &Value::Null, &Value::Null]);
    assert_eq!(history["versions"][0]["author"]["by"], "admin token");
    admin.server.post("/v1/rules/rollback", r#"{"version":9}"#).is_mistake(404, Some("version"));
    admin.server.post("/v1/rules/rollback", r#"{"version":-1}"#).is_mistake(400, Some("version"));
}

#[test]
fn secrets_in_comments_are_hidden_and_kept() {
    let text = format!("# api_token = \"old-s3cret\"\n{FIRST}")
        .replace("\"sesame\"", "\"sesame\" # was hunter2-s3cret")
        .replace("[[rule]]", "# for everybody\n[[rule]]");
    let admin = AdminFile::start(&text);
    let (etag, shown) = admin.read();
    assert!(!shown.contains("s3cret") && !shown.contains("sesame"), "{shown}");
    assert!(shown.contains("# for everybody\n"), "{shown}");
    let changed = shown.replace("5/60s", "6/60s");
    assert_eq!(admin.put(&etag, &changed).status, 200);
    assert_eq!(fs::read_to_string(&admin.path).unwrap(), text.replace("5/60s", "6/60s"));
    // Nor are they in what is said about mistakes beside them.
    let wrong = admin.put("*", &shown.replace("[auth]", "[auth]\nresp_pasword = 1 # api_token = \"other-s3cret\""));
    wrong.is_mistake(400, None);
    assert!(!wrong.body.contains("s3cret") && !wrong.body.contains("sesame"), "{wrong:?}");
}

#[test]
fn text_with_unusable_certificates_is_not_written() {
    let admin = AdminFile::start(FIRST);
    let (etag, text) = admin.read();
    fs::write(admin.path.with_file_name("cert.pem"), "-----BEGIN s3cret\n").unwrap();
    let changed = text.replace("5/60s", "6/60s") + "\n[tls]\ncert = 'cert.pem'\nkey = 'cert.pem'\n";
    let refused = admin.put(&etag, &changed);
    refused.is_mistake(400, None);
    assert!(refused.body.contains("cert.pem cannot be used") && !refused.body.contains("s3cret"), "{refused:?}");
    assert_eq!((fs::read_to_string(&admin.path).unwrap().as_str(), admin.limit()), (FIRST, json!(5)));
    assert_eq!(admin.versions(), [0; 0]);
    let headers = [("content-type", "application/toml")];
    let checked = admin.server.connect().call("POST", "/v1/rules/validate", &headers, &changed).json();
    assert_eq!((&checked["valid"], &checked["findings"][0]["severity"]), (&json!(false), &json!("error")));
}

#[test]
fn settings_that_only_a_restart_changes_are_named() {
    let admin = AdminFile::start(FIRST);
    let (etag, text) = admin.read();
    let changed = text.replace("5/60s", "6/60s") + "\n[server]\nthreads = 3\n[log]\nlevel = 'debug'\n";
    // A check names them before they are written, and /v1/stats for as long as they wait.
    let headers = [("content-type", "application/toml")];
    let check = |text: &str| {
        let checked = admin.server.connect().call("POST", "/v1/rules/validate", &headers, text).json();
        checked["restart_needed"].clone()
    };
    let waiting = || admin.server.get("/v1/stats").json()["restart_needed"].clone();
    assert_eq!((check(&text), check(&changed)), (json!([]), json!(["server.threads", "log.level"])));
    assert_eq!((check("nonsense"), waiting()), (json!([]), json!([])));
    let written = admin.put(&etag, &changed).json();
    assert_eq!(written["restart_needed"], json!(["server.threads", "log.level"]));
    assert_eq!(waiting(), json!(["server.threads", "log.level"]));
    assert_eq!(admin.limit(), 6, "the rules are in force all the same");
    assert_eq!(admin.put("*", &text).json()["restart_needed"], json!([]));
    assert_eq!(waiting(), json!([]));
    let rolled_back = admin.server.post("/v1/rules/rollback", r#"{"version":2}"#).json();
    assert_eq!(rolled_back["restart_needed"], json!(["server.threads", "log.level"]));
}

#[test]
fn what_cannot_be_written_changes_nothing() {
    let admin = AdminFile::start(FIRST);
    let (etag, text) = admin.read();
    // Something in the way of the new file, as a full disk is.
    let in_the_way = admin.path.with_file_name(".flowgate.toml.new");
    fs::create_dir(&in_the_way).unwrap();
    let refused = admin.put(&etag, &text.replace("5/60s", "6/60s"));
    assert_eq!(refused.status, 500, "{refused:?}");
    assert_eq!(fs::read_to_string(&admin.path).unwrap(), FIRST);
    assert_eq!((admin.limit(), admin.read().0, admin.versions()), (json!(5), etag.clone(), vec![1]));
    fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(admin.put(&etag, &text.replace("5/60s", "6/60s")).status, 200);
    assert_eq!((admin.limit(), admin.versions()), (json!(6), vec![2, 1]));
}

#[test]
fn a_change_of_an_older_version_is_refused() {
    let admin = AdminFile::start(FIRST);
    let (etag, text) = admin.read();
    let by_hand = FIRST.replace("5/60s", "7/60s");
    fs::write(&admin.path, &by_hand).unwrap();
    admin.put(&etag, &text).is_mistake(412, Some("if-match"));
    admin.put("\"made up\"", &text).is_mistake(412, Some("if-match"));
    let headers = [("content-type", "application/toml")];
    admin.server.connect().call("PUT", "/v1/rules", &headers, &text).is_mistake(428, Some("if-match"));
    assert_eq!(fs::read_to_string(&admin.path).unwrap(), by_hand);

    let etags = format!("\"other\", {}", admin.read().0);
    assert_eq!(admin.put(&etags, &text.replace("5/60s", "8/60s")).status, 200);
    assert_eq!(admin.put("*", &text.replace("5/60s", "9/60s")).status, 200);
    assert_eq!((admin.limit(), admin.versions()), (json!(9), vec![3, 2, 1]), "what was edited by hand is kept, too");
}

#[test]
fn what_is_wrong_is_not_written() {
    let admin = AdminFile::start(FIRST);
    let (etag, text) = admin.read();
    let wrong = admin.put(&etag, &text.replace("5/60s", "5/parsec"));
    wrong.is_mistake(400, None);
    assert!(wrong.json()["error"].as_str().unwrap().contains("flowgate.toml:6:"), "{wrong:?}");
    admin.put(&etag, "[auth]\napi_token = \"***\"").is_mistake(400, None);
    let headers = [("content-type", "application/json"), ("if-match", "*")];
    admin.server.connect().call("PUT", "/v1/rules", &headers, "{}").is_mistake(415, Some("content-type"));
    // What a web page can send unasked.
    let headers = [("content-type", "text/plain"), ("if-match", "*")];
    for (method, path) in [("PUT", "/v1/rules"), ("POST", "/v1/rules/validate")] {
        admin.server.connect().call(method, path, &headers, &text).is_mistake(415, Some("content-type"));
    }
    assert_eq!((admin.read().0, admin.limit(), admin.versions()), (etag, json!(5), vec![]));

    let validate = |text: &str| {
        let headers = [("content-type", "application/toml; charset=utf-8")];
        admin.server.connect().call("POST", "/v1/rules/validate", &headers, text).json()
    };
    assert_eq!(validate(&text), json!({"valid": true, "rules": 1, "restart_needed": [], "findings": [], "report": ""}));
    let invalid = validate("[server]\nidle_timout = \"5m\"\n");
    let hint = json!({"text": "did you mean \"idle_timeout\"?", "code": "meant", "values": {"word": "idle_timeout"}});
    let finding = json!({"severity": "error", "message": "unknown key \"idle_timout\" in [server]", "source": "flowgate.toml",
        "line": 2, "column": 1, "hint": "did you mean \"idle_timeout\"?", "code": "unknown-key",
        "values": {"key": "\"idle_timout\"", "place": "[server]"}, "hints": [hint]});
    assert_eq!(
        (&invalid["valid"], &invalid["rules"], &invalid["findings"][0]),
        (&json!(false), &json!(null), &finding)
    );
}

#[test]
fn files_are_not_read_by_naming_them() {
    let admin = AdminFile::start(FIRST);
    let beside = |name: &str, text: &str| fs::write(admin.path.with_file_name(name), text).unwrap();
    beside("syntax", "root:x:0:0:s3cret:/root\nuser s3cret\n");
    beside("keys", "s3cret = 1\n[server]\ns3cret = 's3cret'\nthreads = 's3cret'\nmax_connections = 's3cret'\n");
    beside("twice", "[auth]\nresp_password = 's3cret'\n");
    beside("rules", "rule = [{ name = 's3cret \"x\"', limits = ['s3cret'], when = { a = 's3cret/5' } }]\n");
    beside("warned", "lists = { s3cret = { values = ['s3cret'] } }\n");
    beside("list", &format!("10.0.0.1\n{}\n", "s3cret".repeat(1000)));
    let include = |name: &str| format!("include = ['{name}']\n{FIRST}");
    for (text, place) in [
        (include("syntax"), "syntax:1:"),
        (include("keys"), "keys:1:1"),
        (include("twice"), "twice:1:"),
        (include("rules"), "rules:1:"),
        (include("warned"), "warned:1:"),
        (format!("koala = {{ rules = 'syntax' }}\n{FIRST}"), "syntax:1:"),
        (format!("lists = {{ l = {{ file = 'list' }} }}\n{FIRST}"), "list:2:1"),
        (format!("lists = {{ l = {{ file = 'syntax', kind = 'addresses' }} }}\n{FIRST}"), "syntax:1:1"),
    ] {
        let text = &text;
        let headers = [("content-type", "application/toml")];
        let checked = admin.server.connect().call("POST", "/v1/rules/validate", &headers, text);
        let put = admin.put("*", text);
        assert_eq!(put.status == 200, checked.json()["valid"] == true);
        assert!(checked.json()["report"].as_str().unwrap().contains(place), "{checked:?}");
        assert!(!checked.body.contains("s3cret") && !put.body.contains("s3cret"), "{checked:?} {put:?}");
    }
    // The text itself is shown.
    let wrong = admin.put("*", &FIRST.replace("5/60s", "5/parsec"));
    assert!(wrong.body.contains("parsec"), "{wrong:?}");
}

#[test]
fn the_last_versions_are_kept_and_no_more() {
    let admin = AdminFile::start(FIRST);
    for count in 1..=MAX_VERSIONS + 5 {
        assert_eq!(admin.put("*", &FIRST.replace("5/60s", &format!("{}/60s", 100 + count))).status, 200);
    }
    let last = MAX_VERSIONS as u64 + 6;
    let expected: Vec<u64> = (last + 1 - MAX_VERSIONS as u64..=last).rev().collect();
    assert_eq!(admin.versions(), expected);
    assert_eq!(admin.limit(), 100 + MAX_VERSIONS as u64 + 5);
}

#[cfg(unix)]
#[test]
fn permissions_and_links_stay() {
    use std::os::unix::fs::PermissionsExt;
    let admin = AdminFile::start(FIRST);
    let real = admin.path.with_file_name("real.toml");
    fs::rename(&admin.path, &real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &admin.path).unwrap();
    assert_eq!(admin.put("*", &FIRST.replace("5/60s", "6/60s")).status, 200);
    assert!(fs::symlink_metadata(&admin.path).unwrap().is_symlink());
    let kept = admin.path.with_file_name(".flowgate.toml.history").join("1.toml");
    for file in [&real, &kept] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o640, "{}", file.display());
    }
    // Whatever the mode of the file is one day, its older versions are not for others.
    assert_eq!(fs::metadata(kept.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn without_a_file_there_is_nothing_to_administer() {
    let server = Running::start("");
    for path in ["/v1/rules", "/v1/rules/history"] {
        server.get(path).is_mistake(409, None);
    }
    server.post("/v1/rules/rollback", r#"{"version":1}"#).is_mistake(409, None);
}

#[test]
fn reloading_a_hundred_times_under_load_loses_nothing() {
    let admin = AdminFile::start(FIRST);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (mut client, mut answered) = (admin.server.connect(), 0);
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        let headers = [("content-type", "application/json")];
                        let taken = client.call("POST", "/v1/take", &headers, r#"{"fields":{}}"#);
                        assert_eq!((taken.status, &taken.json()["rule"]), (200, &json!("all")));
                        let gate = client.call("GET", "/gate", &[], "");
                        assert!([200, 429].contains(&gate.status) && gate.header("x-flowgate-rule") == Some("all"));
                        answered += 2;
                    }
                    answered
                })
            })
            .collect();
        for count in 1..=100 {
            assert_eq!(admin.put("*", &FIRST.replace("5/60s", &format!("{count}/60s"))).status, 200);
            assert_eq!(admin.limit(), count);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        for load in load {
            assert!(load.join().unwrap() > 100);
        }
    });
}

#[test]
fn a_version_has_a_text_and_a_note() {
    let admin = AdminFile::start(FIRST);
    let (etag, text) = admin.read();
    let second = text.replace("5/60s", "7/60s");
    let put = |etag: &str, note: &str, text: &str| {
        let headers = [("content-type", "application/toml"), ("if-match", etag), ("x-flowgate-note", note)];
        admin.server.connect().call("PUT", "/v1/rules", &headers, text)
    };
    put(&etag, &"x".repeat(1_025), &second).is_mistake(400, Some("x-flowgate-note"));
    put(&etag, "%ff", &second).is_mistake(400, Some("x-flowgate-note"));
    let published = put(&etag, "f%C3%BCr die Nacht", &second);
    assert_eq!(published.status, 200, "{published:?}");
    let versions = admin.server.get("/v1/rules/history").json()["versions"].clone();
    assert_eq!((&versions[0]["note"], &versions[1]["note"]), (&json!("f\u{fc}r die Nacht"), &Value::Null));
    let author = json!({"by": "admin token", "from": "127.0.0.1", "through": null, "agent": null});
    assert_eq!(versions[0]["author"], author);
    assert_eq!(versions[1]["author"]["by"], "file", "the text that was there before");
    let read = |version: u64| admin.server.get(&format!("/v1/rules/history/{version}"));
    assert!(read(1).body.contains("5/60s") && read(2).body.contains("7/60s"));
    assert!(!read(1).body.contains("sesame"), "secrets are hidden");
    assert_eq!(read(2).header("etag"), published.header("etag"));
    for wrong in ["9", "x", "-1", "0"] {
        admin.server.get(&format!("/v1/rules/history/{wrong}")).is_mistake(404, Some("version"));
    }
    let marks = admin.server.get("/v1/stats/history").json()["marks"].clone();
    assert!(marks.as_array().unwrap().iter().any(|mark| mark["kind"] == "rules" && mark["version"] == 2), "{marks}");
    let stats = admin.server.get("/v1/stats").json();
    assert_eq!(stats["file_etag"].as_str(), published.header("etag"));
    assert!(
        stats["file"].as_str().is_some_and(|name| name.ends_with(".toml") && !name.contains('/')),
        "{}",
        stats["file"]
    );
    assert_eq!(stats["reloads"], json!({"succeeded": 1, "failed": 0}));
}

#[test]
fn a_rollback_honours_if_match() {
    let admin = AdminFile::start(FIRST);
    let (first, text) = admin.read();
    let second = admin.put(&first, &text.replace("5/60s", "7/60s")).header("etag").unwrap().to_owned();
    let roll_back = |etag: &str| {
        let headers = [("content-type", "application/json"), ("if-match", etag), ("x-flowgate-note", "back")];
        admin.server.connect().call("POST", "/v1/rules/rollback", &headers, r#"{"version":1}"#)
    };
    roll_back(&first).is_mistake(412, Some("if-match"));
    assert_eq!(admin.limit(), 7, "nothing has changed");
    assert_eq!(roll_back(&second).json()["version"], 3);
    assert_eq!(admin.limit(), 5);
    let newest = admin.server.get("/v1/rules/history").json()["versions"][0].clone();
    assert_eq!((&newest["note"], &newest["author"]["by"]), (&json!("back"), &json!("admin token")));
}

#[test]
fn a_broken_file_is_told_until_it_is_right() {
    let admin = AdminFile::start(FIRST);
    let etag = admin.server.get("/v1/stats").json()["file_etag"].clone();
    fs::write(&admin.path, "rule = 7").unwrap();
    let stats = admin.server.get("/v1/stats").json();
    assert_ne!(stats["file_etag"], etag, "the file on disk is another");
    assert_eq!(stats["broken"], Value::Null, "nobody has tried to load it yet");
    admin.reload();
    let broken = admin.server.get("/v1/policy").json()["broken"].clone();
    assert!(broken["report"].as_str().unwrap().contains("flowgate.toml:1"), "{broken}");
    assert_eq!(admin.server.get("/v1/stats").json()["broken"], broken);
    fs::write(&admin.path, FIRST).unwrap();
    admin.reload();
    let stats = admin.server.get("/v1/stats").json();
    assert_eq!((&stats["broken"], &stats["file_etag"]), (&Value::Null, &etag));
    assert_eq!(stats["reloads"], json!({"succeeded": 1, "failed": 1}));
}
