//! A disk that is full, gone, failing or slow while the server runs.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flowgate_testkit::http;
use flowgate_testkit::server_process::serve_command;
use flowgate_testkit::wait::eventually;
use tempfile::TempDir;

use crate::{BINARY, Serving, State, throttle};

/// Waits until `/readyz` gives this answer.
#[track_caller]
fn await_readiness(server: &Serving, expected: &str) {
    eventually(expected, || server.get("/readyz").trim() == expected);
}

/// Takes one of the ten units of a key.
fn take(server: &Serving, key: &str) -> bool {
    throttle(&mut server.resp(), key, 10).unwrap()
}

fn metric(server: &Serving, name: &str) -> f64 {
    let metrics = server.get("/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
    line.parse().unwrap()
}

fn promtool_takes(metrics: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = promtool.spawn().expect("promtool (see scripts/test)");
    process.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// A library for `LD_PRELOAD`: while the file `$DISK/full` exists writes of journals find no room, while `$DISK/fail` exists syncs
/// fail, and while `$DISK/slow` exists they do not return. `$DISK/cached` and `$DISK/cached-writes` are of a file system that refuses to
/// open or to write a file without its cache; `$DISK/refused` tells that it did.
const DISK: &str = r#"
    #define _GNU_SOURCE
    #include <errno.h>
    #include <fcntl.h>
    #include <stdarg.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    static int has(const char *name) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", getenv("DISK"), name);
        return access(path, F_OK) == 0;
    }
    static int is_journal(int fd) {
        char link[64], path[4096] = {0};
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        return readlink(link, path, sizeof path - 1) > 0 && strstr(path, ".fgj");
    }
    ssize_t write(int fd, const void *bytes, size_t length) {
        if (is_journal(fd) && has("full")) { errno = ENOSPC; return -1; }
        return syscall(SYS_write, fd, bytes, length);
    }
    static int refuse(void) {
        char path[4096];
        snprintf(path, sizeof path, "%s/refused", getenv("DISK"));
        syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY, 0600));
        errno = EINVAL;
        return -1;
    }
    int open64(const char *path, int flags, ...) {
        va_list rest;
        va_start(rest, flags);
        int mode = va_arg(rest, int);
        va_end(rest);
        if ((flags & O_DIRECT) && has("cached")) return refuse();
        return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    }
    ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
        if ((fcntl(fd, F_GETFL) & O_DIRECT) && has("cached-writes")) return refuse();
        if (is_journal(fd) && has("full")) { errno = ENOSPC; return -1; }
        return syscall(SYS_pwrite64, fd, bytes, length, offset);
    }
    int fdatasync(int fd) {
        while (has("slow")) usleep(1000);
        if (has("fail")) { errno = EIO; return -1; }
        return syscall(SYS_fdatasync, fd);
    }
"#;

/// A disk with the faults that a test asks for.
struct Disk {
    directory: TempDir,
    library: PathBuf,
}

impl Disk {
    fn new() -> Disk {
        let directory = tempfile::tempdir().unwrap();
        let (source, library) = (directory.path().join("disk.c"), directory.path().join("disk.so"));
        fs::write(&source, DISK).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]);
        assert!(compiler.status().unwrap().success());
        Disk { directory, library }
    }

    fn serve(&self, state: &State) -> Serving {
        let mut command = serve_command(BINARY);
        command.env("LD_PRELOAD", &self.library).env("DISK", self.directory.path());
        state.serve_by(&mut command)
    }

    fn begin(&self, trouble: &str) {
        fs::write(self.directory.path().join(trouble), "").unwrap();
    }

    fn end(&self, trouble: &str) {
        fs::remove_file(self.directory.path().join(trouble)).unwrap();
    }
}

#[test]
fn a_disk_that_is_full_or_fails_to_sync_degrades_the_server_until_it_is_well() {
    let disk = Disk::new();
    for mode in ["everysec", "always"] {
        for trouble in ["full", "fail"] {
            let state = State::new(mode, "flush = \"50ms\"", "");
            let server = disk.serve(&state);
            assert_eq!(server.get("/readyz").trim(), "ready");
            assert!(take(&server, "before"));
            disk.begin(trouble);
            assert!(take(&server, "begins"), "{mode}, {trouble}");
            await_readiness(&server, "degraded: journal behind");
            // Decisions and bans go on in memory.
            assert!((0..10).all(|_| take(&server, "during")) && !take(&server, "during"), "{mode}, {trouble}");
            assert_eq!(server.resp().call("FG.BAN user 7 3600"), "OK");
            let metrics = server.get("/metrics");
            assert!(metrics.contains("\nflowgate_journal_failing 1\n"), "{metrics}");
            assert!(metric(&server, "flowgate_journal_failures_total") >= 1.0);
            promtool_takes(&metrics);
            disk.end(trouble);
            await_readiness(&server, "ready");
            assert!(server.get("/metrics").contains("\nflowgate_journal_failing 0\n"));
            // Before the first new change, the server has written all counters anew, with the changes of the meantime.
            server.kill();
            let server = disk.serve(&state);
            assert!(!take(&server, "during") && !server.take(&["user=7"]), "{mode}, {trouble}");
            assert!((0..9).all(|_| take(&server, "before")) && !take(&server, "before"), "{mode}, {trouble}");
            server.stop();
        }
    }
}

#[test]
fn with_always_answers_wait_for_a_slow_disk_no_longer_than_the_request_timeout() {
    let disk = Disk::new();
    let state = State::new("always", "", "[server]\nrequest_timeout = \"2s\"\n");
    let server = disk.serve(&state);
    assert!(take(&server, "k"));
    disk.begin("slow");
    let began = Instant::now();
    assert!(take(&server, "k"));
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(1_750) && waited < Duration::from_secs(20), "{waited:?}");
    await_readiness(&server, "degraded: journal behind");
    // An answer that did not wait for the disk is marked as degraded.
    let degraded = metric(&server, "flowgate_degraded_decisions_total");
    let asked = [r#"{"fields":{"user":"7"}}"#, r#"{"key":"j","limit":"3/1h"}"#];
    for (path, body) in ["/v1/take", "/v1/limit"].into_iter().zip(asked) {
        let headers = [("content-type", "application/json")];
        let reply = http::Client::connect(&*server.0.http).call("POST", path, &headers, body);
        assert!(reply.body.contains("\"degraded\":true"), "{path}: {reply:?}");
    }
    assert_eq!(metric(&server, "flowgate_degraded_decisions_total"), degraded + 2.0);
    // A denial does not wait for the disk.
    let began = Instant::now();
    assert!(!throttle(&mut server.resp(), "k", 1).unwrap());
    assert!(began.elapsed() < Duration::from_millis(1_750));
    eventually("the lag grows", || metric(&server, "flowgate_journal_lag_seconds") > 0.5);
    disk.end("slow");
    await_readiness(&server, "ready");
    server.kill();
    let server = disk.serve(&state);
    assert!((0..8).all(|_| take(&server, "k")) && !take(&server, "k"));
}

#[test]
fn with_always_a_file_system_that_needs_its_cache_keeps_what_was_answered() {
    for trouble in ["cached", "cached-writes"] {
        let disk = Disk::new();
        disk.begin(trouble);
        let state = State::new("always", "", "");
        let server = disk.serve(&state);
        assert!(disk.directory.path().join("refused").exists(), "{trouble}");
        assert!((0..10).all(|_| take(&server, "k")));
        assert_eq!(server.get("/readyz").trim(), "ready");
        assert_eq!(metric(&server, "flowgate_journal_failures_total"), 0.0);
        server.kill();
        assert!(state.inspect().0, "{trouble}: {}", state.inspect().1);
        assert!(!take(&disk.serve(&state), "k"), "{trouble}");
    }
}

/// A file system in memory, which is unmounted at the end.
struct Tmpfs(TempDir);

impl Tmpfs {
    /// Mounts the file system; `None` if this user may not mount.
    fn mount(options: &str) -> Option<Tmpfs> {
        let tmpfs = Tmpfs(tempfile::tempdir().unwrap());
        tmpfs.mounted(options).then_some(tmpfs)
    }

    fn mounted(&self, options: &str) -> bool {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "flowgate-test"]).arg(self.0.path());
        command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // This fails if the mount failed.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).stderr(Stdio::null()).status();
    }
}

/// The kernel itself reports that the disk is full, if this user may mount a file system.
#[test]
fn a_small_file_system_that_is_full_is_used_again_once_there_is_room() {
    for mode in ["everysec", "always"] {
        // The file system is smaller than the 16 MiB that the journal allocates ahead.
        let Some(tmpfs) = Tmpfs::mount("size=8m") else { return };
        let state = State::at(&tmpfs.0.path().join("state"), mode, "flush = \"50ms\"", "");
        let server = state.serve();
        assert!((0..9).all(|_| take(&server, "k")));
        await_readiness(&server, "degraded: journal behind");
        assert!(take(&server, "k") && !take(&server, "k"));
        assert!(tmpfs.mounted("remount,size=64m"));
        await_readiness(&server, "ready");
        server.kill();
        let server = state.serve();
        assert!(!take(&server, "k"));
        server.stop();
    }
}

/// If the directory is moved, the server goes on writing there. The next server reads the directory under its old name.
#[test]
fn a_directory_that_is_moved_away_and_back_has_all_counters() {
    let state = State::new("everysec", "flush = \"50ms\"", "");
    let server = state.serve();
    assert!(take(&server, "k"));
    let elsewhere = state.directory.path().join("elsewhere");
    fs::rename(state.path(), &elsewhere).unwrap();
    assert!(take(&server, "k"));
    assert_eq!(server.get("/healthz").trim(), "ok");
    fs::rename(&elsewhere, state.path()).unwrap();
    server.stop();
    let server = state.serve();
    assert!((0..8).all(|_| take(&server, "k")) && !take(&server, "k"));
}

#[test]
fn a_journal_that_was_removed_is_written_anew() {
    let state = State::new("everysec", "flush = \"50ms\"", "");
    let server = state.serve();
    assert!((0..10).all(|_| take(&server, "k")));
    let seed = fs::read(state.path().join("seed")).unwrap();
    // The directory is renamed first: the server makes a new journal as soon as it misses the old one, and would fill
    // the directory again.
    let removed = state.path().with_extension("removed");
    fs::rename(state.path(), &removed).unwrap();
    fs::remove_dir_all(removed).unwrap();
    await_readiness(&server, "degraded: journal behind");
    assert!(take(&server, "other") && !take(&server, "k"));
    fs::create_dir(state.path()).unwrap();
    fs::write(state.path().join("seed"), seed).unwrap();
    await_readiness(&server, "ready");
    server.kill();
    let server = state.serve();
    assert!(!take(&server, "k") && (0..9).all(|_| take(&server, "other")) && !take(&server, "other"));
}
