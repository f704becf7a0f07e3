//! A wall clock that was put back between two runs.

use std::process::Command;

use flowgate_testkit::server_process::serve_command;

use crate::{BINARY, Serving, State};

/// The library that gives a process a wall clock of its own. The dynamic loader replaces `$LIB`.
const FAKETIME: &str = "/usr/$LIB/faketime/libfaketimeMT.so.1";

/// A server whose wall clock is off by `offset`, such as `-30m`.
fn serve_at(state: &State, offset: &str) -> Serving {
    let mut command: Command = serve_command(BINARY);
    command.env("LD_PRELOAD", FAKETIME).env("FAKETIME", offset).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let server = state.serve_by(&mut command);
    let is_missing = server.0.announcement.iter().any(|line| line.contains("cannot be preloaded"));
    assert!(!is_missing, "libfaketime is missing (on Debian: the package faketime)");
    server
}

const LIMITS: [&str; 3] = ["2/1h", "bucket 2/1h", "approx 2/1h"];

fn take(server: &Serving, limit: &str) -> bool {
    let reply = server.resp().call_words(&[b"FG.LIMIT", limit.replace(' ', "").as_bytes(), limit.as_bytes()]);
    assert!(reply.starts_with("[0 ") || reply.starts_with("[1 "), "{limit}: {reply}");
    reply.starts_with("[1 ")
}

fn counters_are_kept_although_the_clock_goes_back_by(offset: &str, said: &str) {
    let state = State::new("everysec", "", "");
    let server = state.serve();
    for limit in LIMITS {
        assert!(take(&server, limit) && take(&server, limit) && !take(&server, limit), "{limit}");
    }
    assert_eq!(server.resp().call("FG.BAN user 7 3600"), "OK");
    server.stop();
    for _ in 0..2 {
        let server = serve_at(&state, offset);
        for limit in LIMITS {
            assert!(!take(&server, limit), "{offset}: {limit}");
        }
        assert!(!server.take(&["user=7"]), "{offset}");
        let (bans, _) = server.run(&["ban"]);
        assert!(bans.contains("user=7") && !bans.contains("(in 1d"), "{offset}: {bans}");
        server.stop();
    }
    let server = serve_at(&State::new("everysec", "", ""), offset);
    assert!(!server.0.announcement.iter().any(|line| line.contains("the clock was put back")));
    let server = state.serve();
    server.stop();
    let server = serve_at(&state, offset);
    let line = server.0.first_line_with("the clock was put back since the counters were written");
    assert!(line.contains(said), "{offset}: {line}");
}

#[test]
fn a_clock_that_is_half_an_hour_behind_catches_up() {
    counters_are_kept_although_the_clock_goes_back_by("-30m", "half speed");
}

#[test]
fn counters_and_bans_move_back_with_a_clock_that_is_three_days_behind() {
    counters_are_kept_although_the_clock_goes_back_by("-3d", "all counters move back with it");
}
