//! Reload from outside: files change the ways people and tools change them, and the rules follow.
//!
//! Tests wait for a condition, with a deadline that only something stuck reaches; none sleeps for luck.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use flowgate_engine::Request;
use flowgate_engine::config::{Input, Options};
use flowgate_koala::{KoalaAsk, load_config};
use flowgate_server::{Author, Operation, Reload, ReloadStatus, Reloader, Service};
use flowgate_testkit::files;
use flowgate_testkit::wait::eventually;
use tempfile::TempDir;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A service whose configuration is `flowgate.toml` in a directory of its own.
struct Watched {
    directory: TempDir,
    service: Service,
    reloader: Reloader,
}

impl Watched {
    fn start(files: &[(&str, &str)]) -> Watched {
        Watched::start_with(files, POLL_INTERVAL, |_| {})
    }

    fn start_with(files: &[(&str, &str)], poll: Duration, prepare: impl FnOnce(&Path)) -> Watched {
        let directory = files::directory(files);
        prepare(directory.path());
        let file = directory.path().join("flowgate.toml");
        let loaded = load_config(Input::File(&file), [], Options::default()).unwrap();
        let service = Service::start(&loaded.config).unwrap();
        let again = Box::new(move || load_config(Input::File(&file), [], Options::default()));
        let reloader = Reload { service: service.clone(), loaded, load: again, certificates: None, poll };
        let reloader = reloader.start().unwrap();
        Watched { directory, service, reloader }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        files::replace(&self.path(name), text);
    }

    fn allows(&self, field: &str, value: &str) -> bool {
        self.service.decide(Operation::Peek, &Request::new().field(field, value)).now().unwrap().allowed()
    }

    /// The name of the first rule in force.
    fn rule(&self) -> String {
        self.service.rules().rules.first().map_or_else(String::new, |rule| rule.name().to_owned())
    }

    #[track_caller]
    fn wait(&self, what: &str, condition: impl Fn(&Watched) -> bool) {
        eventually(what, || condition(self));
    }

    #[track_caller]
    fn wait_for_rule(&self, name: &str) {
        self.wait(name, |watched| watched.rule() == name);
    }

    fn status(&self) -> ReloadStatus {
        self.reloader.status()
    }
}

fn rule(name: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\nby = [\"user\"]\nlimits = [\"5/60s\"]\n")
}

#[test]
fn a_file_edited_in_place_is_reloaded() {
    let watched = Watched::start(&[("flowgate.toml", &rule("a"))]);
    assert_eq!(watched.rule(), "a");
    fs::write(watched.path("flowgate.toml"), rule("b")).unwrap();
    watched.wait_for_rule("b");
    fs::write(watched.path("flowgate.toml"), rule("c")).unwrap();
    watched.wait_for_rule("c");
    watched.wait("counted", |watched| watched.status().succeeded >= 2);
    let ReloadStatus { failed, last_error, .. } = watched.status();
    assert_eq!((failed, last_error), (0, None));
}

#[test]
fn a_file_renamed_over_the_old_one_is_reloaded() {
    let watched = Watched::start(&[("flowgate.toml", &rule("a"))]);
    for name in ["b", "c", "d"] {
        watched.write("flowgate.toml", &rule(name));
        watched.wait_for_rule(name);
    }
}

#[test]
fn a_file_deleted_and_made_again_is_reloaded() {
    let watched = Watched::start(&[("flowgate.toml", &rule("a"))]);
    fs::remove_file(watched.path("flowgate.toml")).unwrap();
    watched.wait("a failure", |watched| watched.status().failed == 1);
    assert!(watched.status().last_error.unwrap().contains("there is no such file"));
    assert_eq!(watched.rule(), "a", "the old rules stay in force");
    watched.write("flowgate.toml", &rule("b"));
    watched.wait_for_rule("b");
    watched.wait("no error", |watched| watched.status().last_error.is_none());
}

/// As Kubernetes mounts a ConfigMap: `flowgate.toml -> ..data/flowgate.toml`, `..data -> ..1`; an update writes
/// another directory and renames a new link over `..data`.
#[cfg(unix)]
#[test]
fn a_link_that_leads_elsewhere() {
    use std::os::unix::fs::symlink;

    let files = [("..1/flowgate.toml", rule("a")), ("..2/flowgate.toml", rule("b")), ("..3/flowgate.toml", rule("c"))];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let watched = Watched::start_with(&files, POLL_INTERVAL, |directory| {
        symlink("..1", directory.join("..data")).unwrap();
        symlink("..data/flowgate.toml", directory.join("flowgate.toml")).unwrap();
    });
    for (target, name) in [("..2", "b"), ("..3", "c"), ("..1", "a")] {
        symlink(target, watched.path("..data_tmp")).unwrap();
        fs::rename(watched.path("..data_tmp"), watched.path("..data")).unwrap();
        watched.wait_for_rule(name);
    }
}

#[test]
fn a_broken_file_changes_nothing_and_a_mended_one_works() {
    let watched = Watched::start(&[("flowgate.toml", &rule("a"))]);
    watched.write("flowgate.toml", &rule("b").replace("5/60s", "5 per minute"));
    watched.wait("a failure", |watched| watched.status().failed == 1);
    let error = watched.status().last_error.unwrap();
    assert!(error.contains("flowgate.toml:4:") && error.contains("5 per minute"), "{error}");
    assert_eq!((watched.rule().as_str(), watched.status().succeeded), ("a", 0));
    watched.write("flowgate.toml", &rule("b"));
    watched.wait_for_rule("b");
    watched.wait("no error", |watched| watched.status().last_error.is_none());
    assert_eq!(watched.status().failed, 1, "one change, one attempt");
}

#[test]
fn a_mistake_in_a_new_include_is_mended_there() {
    let watched = Watched::start(&[("flowgate.toml", &rule("a"))]);
    watched.write("more.toml", "not toml at all");
    watched.write("flowgate.toml", "include = [\"more.toml\"]");
    watched.wait("a failure", |watched| watched.status().failed == 1);
    watched.write("more.toml", &rule("b"));
    watched.wait_for_rule("b");
}

#[test]
fn files_come_and_go_in_an_included_directory() {
    let watched =
        Watched::start(&[("flowgate.toml", "include = [\"rules.d/*.toml\"]"), ("rules.d/b.toml", &rule("b"))]);
    assert_eq!(watched.rule(), "b");
    watched.write("rules.d/a.toml", &rule("a"));
    watched.wait_for_rule("a");
    fs::remove_file(watched.path("rules.d/a.toml")).unwrap();
    watched.wait_for_rule("b");
    watched.write("rules.d/b.toml", &rule("c"));
    watched.wait_for_rule("c");
}

#[test]
fn a_list_file_and_the_values_of_a_list() {
    let main = "[lists]\nblocked = { file = \"blocked.txt\" }\n[[rule]]\nname = \"blocked\"\n\
                when = { ip = \"@blocked\" }\naction = \"deny\"\n";
    let watched = Watched::start(&[("flowgate.toml", main), ("blocked.txt", "10.0.0.0/8\n")]);
    assert!(!watched.allows("ip", "10.1.1.1") && watched.allows("ip", "11.1.1.1"));
    watched.write("blocked.txt", "11.0.0.0/8\n");
    watched.wait("another list", |watched| !watched.allows("ip", "11.1.1.1"));
    assert!(watched.allows("ip", "10.1.1.1"));
    watched.write("blocked.txt", "11.0.0.0/99\n");
    watched.wait("a failure", |watched| watched.status().failed == 1);
    assert!(watched.status().last_error.unwrap().contains("blocked.txt:1"));
    assert!(!watched.allows("ip", "11.1.1.1"), "the old list stays in force");
    watched.write("blocked.txt", "12.0.0.0/8\n");
    watched.wait("a mended list", |watched| !watched.allows("ip", "12.1.1.1") && watched.allows("ip", "11.1.1.1"));
}

#[test]
fn counters_survive_a_reload() {
    let watched = Watched::start(&[("flowgate.toml", &rule("a"))]);
    let request = Request::new().field("user", "42");
    let left = |watched: &Watched| watched.service.decide(Operation::Peek, &request).now().unwrap().remaining();
    let _ = watched.service.decide(Operation::Record, &request.clone().cost(3));
    assert_eq!(left(&watched), Some(2));
    watched.write("flowgate.toml", &rule("a").replace("5/60s", "10/60s"));
    watched.wait("a higher limit", |watched| left(watched) == Some(7));
    watched.write("flowgate.toml", &rule("a").replace("5/60s", "10/61s"));
    watched.wait("another period", |watched| left(watched) == Some(10));
}

#[test]
fn a_reload_on_request_does_not_wait_for_the_poll() {
    let hour = Duration::from_secs(3600);
    let watched = Watched::start_with(&[("flowgate.toml", &rule("a"))], hour, |_| {});
    watched.write("flowgate.toml", &rule("b"));
    watched.reloader.reload(Author::SIGHUP);
    watched.wait_for_rule("b");
    watched.write("flowgate.toml", "rule = 5");
    watched.reloader.reload(Author::SIGHUP);
    watched.wait("a failure", |watched| watched.status().failed == 1);
    watched.reloader.reload(Author::SIGHUP);
    watched.wait("another failure: somebody asked", |watched| watched.status().failed == 2);
    assert_eq!(watched.rule(), "b");
}

#[test]
fn requests_under_way_see_one_set_of_rules_or_the_other() {
    // Both sets deny everybody, by different rules: a request that fell between the two would pass.
    let deny = |name: &str| format!("[[rule]]\nname = \"{name}\"\naction = \"deny\"\ncode = 1\n");
    let watched = Watched::start(&[("flowgate.toml", &deny("a"))]);
    let done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    assert!(!watched.allows("user", "42"));
                }
            });
        }
        for name in ["b", "a", "b", "a"] {
            watched.write("flowgate.toml", &deny(name));
            watched.wait_for_rule(name);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_koala_rule_file_and_its_dicts_are_watched() {
    let rules =
        |dict: &str| format!("[dicts]\nvip : {dict}\n[rules]\nrule : [direct] [uid @ vip] [] [result=1; return=7]\n");
    let watched = Watched::start(&[
        ("flowgate.toml", "koala.rules = \"conf/koala.conf\""),
        ("conf/koala.conf", &rules("vip.dat")),
        ("conf/vip.dat", "1\n"),
    ]);
    let decides = |watched: &Watched, uid: &str| {
        let rules = watched.service.koala_rules().unwrap();
        let request = Request::new().field("uid", uid);
        watched
            .service
            .koala(&rules, KoalaAsk::Browse, &request, watched.service.read())
            .now()
            .unwrap()
            .decided()
            .is_some()
    };
    assert!(decides(&watched, "1") && !decides(&watched, "2"));
    watched.write("conf/vip.dat", "2\n");
    watched.wait("another dict", |watched| !decides(watched, "1") && decides(watched, "2"));
    watched.write("conf/koala.conf", &rules("vip.dat").replace("[uid @", "[uid !@"));
    watched.wait("another rule", |watched| decides(watched, "1") && !decides(watched, "2"));

    watched.write("conf/koala.conf", &rules("not-there.dat"));
    watched.wait("a broken file", |watched| watched.reloader.status().failed == 1);
    let error = watched.reloader.status().last_error.unwrap();
    assert!(error.contains("koala.conf:2:7") && error.contains("not-there.dat"), "{error}");
    assert!(decides(&watched, "1"), "the old rules stay in force");
    watched.write("conf/not-there.dat", "1\n");
    watched.wait("the dict that was missing", |watched| !watched_failed(watched) && decides(watched, "1"));

    watched.write("flowgate.toml", "");
    watched.wait("no Koala any more", |watched| watched.service.koala_rules().is_none());
}

fn watched_failed(watched: &Watched) -> bool {
    watched.reloader.status().last_error.is_some()
}
