//! The messages of a server at its start about the directory of its counters.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use flowgate_testkit::files;
use flowgate_testkit::server_process::{ServerProcess, serve_command};

use crate::{BINARY, Serving, State, throttle};

/// The journal in use: the one file of a generation.
fn journal(state: &State) -> PathBuf {
    let files = fs::read_dir(state.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut journals: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().contains(".fgj")).collect();
    journals.sort();
    journals.pop().unwrap()
}

fn uses_up(server: &Serving, keys: u32) {
    let mut client = server.resp();
    for key in 0..keys {
        assert!(throttle(&mut client, &format!("k{key}"), 1).unwrap());
    }
}

/// The number of keys that have not been used.
fn fresh(server: &Serving, keys: u32) -> usize {
    let mut client = server.resp();
    (0..keys).filter(|key| throttle(&mut client, &format!("k{key}"), 1).unwrap()).count()
}

#[test]
fn a_second_server_on_the_same_directory_says_who_holds_it() {
    let state = State::new("everysec", "", "[server]\ndrain = \"0s\"\n");
    let first = state.serve();
    let said = state.refusal();
    let holder = format!("is in use by process {}: two servers cannot share a journal", first.0.id());
    assert!(said.contains(&holder) && said.contains(state.path().to_str().unwrap()), "{said}");
    // The first server goes on, and its journal is whole.
    uses_up(&first, 1);
    first.stop();
    assert_eq!(fresh(&state.serve(), 1), 0);
}

#[test]
fn a_server_that_waits_for_another_says_so_at_once_and_can_be_stopped() {
    // The second server would wait for the drain and five seconds more.
    let state = State::new("everysec", "", "[server]\ndrain = \"60s\"\n");
    let first = state.serve();
    let directory = files::directory(&[("flowgate.toml", &state.configuration)]);
    let mut command = serve_command(BINARY);
    command.arg("--config").arg(directory.path().join("flowgate.toml")).env("STATE_DIRECTORY", directory.path());
    let mut second = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(second.stderr.take().unwrap()).lines().map(Result::unwrap);
    let said = lines.next().unwrap();
    let expected =
        format!("waiting up to 65s for process {}, which holds {}", first.0.id(), state.path().to_str().unwrap());
    assert!(said.contains(&expected), "{said}");
    let stop = Command::new("kill").arg(second.id().to_string()).status().unwrap();
    assert!(stop.success() && second.wait().unwrap().success());
    assert_eq!(lines.collect::<Vec<_>>(), ["stopping"], "it has not waited to the end");
}

#[test]
fn the_mode_and_the_directory_are_said_at_the_start() {
    for mode in ["everysec", "always"] {
        let state = State::new(mode, "max_memory = \"16MiB\"", "");
        let expected = format!("  store   memory, at most 16MiB, durable ({mode}) in {}", state.path().display());
        assert_eq!(state.serve().0.first_line_with("  store "), expected);
    }
    // Without `store.dir`, the journal is in the state directory.
    let server = ServerProcess::start(BINARY, "[store]\ndurable = \"everysec\"\n");
    let expected = format!(", durable (everysec) in {}", server.directory().display());
    assert!(server.first_line_with("  store ").ends_with(&expected));
}

#[test]
fn a_journal_of_another_seed_is_refused() {
    let state = State::new("everysec", "", "");
    let server = state.serve();
    uses_up(&server, 1);
    server.stop();
    let other = State::new("everysec", "", "");
    other.serve().stop();
    let seed = fs::read(state.path().join("seed")).unwrap();
    let check_inspection = |problem: &str| {
        let (is_clean, text) = state.inspect();
        assert!(!is_clean && text.contains(problem) && text.contains("a server refuses this directory"), "{text}");
        assert!(text.contains("damaged parts          0"), "the content is shown all the same: {text}");
    };

    fs::copy(other.path().join("seed"), state.path().join("seed")).unwrap();
    let said = state.refusal();
    assert!(said.contains("seed") && said.contains(state.path().to_str().unwrap()), "{said}");
    check_inspection("was written with another seed");
    fs::write(state.path().join("seed"), b"short").unwrap();
    let said = state.refusal();
    assert!(said.contains("seed is damaged"), "{said}");
    check_inspection("seed is damaged");
    fs::remove_file(state.path().join("seed")).unwrap();
    let said = state.refusal();
    assert!(said.contains("seed is missing"), "{said}");
    check_inspection("seed is missing");

    fs::write(state.path().join("seed"), seed).unwrap();
    assert_eq!(fresh(&state.serve(), 1), 0);
}

#[test]
fn a_directory_without_a_journal_is_no_success() {
    let state = State::new("everysec", "", "");
    fs::create_dir(state.path()).unwrap();
    let (succeeds, said) = state.inspect();
    assert!(!succeeds && said.contains("files                  none"), "{said}");
    state.serve().stop();
    assert!(state.inspect().0);
}

#[test]
fn a_flipped_bit_is_refused_or_costs_some_counters_and_is_told() {
    const KEYS: u32 = 20_000;
    let state = State::new("everysec", "on_damage = \"refuse\"", "");
    let server = state.serve();
    uses_up(&server, KEYS);
    server.stop();
    let path = journal(&state);
    let (length, mut byte) = (fs::metadata(&path).unwrap().len(), [0]);
    let file = File::options().read(true).write(true).open(&path).unwrap();
    file.read_exact_at(&mut byte, length / 2 + 100).unwrap();
    file.write_all_at(&[byte[0] ^ 4], length / 2 + 100).unwrap();

    let said = state.refusal();
    assert!(said.contains("is damaged (parts: 1)") && said.contains("store.on_damage is \"refuse\""), "{said}");
    let salvage = State { configuration: state.configuration.replace("refuse", "salvage"), ..state };
    let server = salvage.serve();
    assert_eq!(server.get("/readyz").trim(), "degraded: counters damaged");
    let metrics = server.get("/metrics");
    assert!(metrics.contains("\nflowgate_journal_damaged 1\n"), "{metrics}");
    let lost = fresh(&server, KEYS);
    assert!(lost > 0 && lost <= 64 * 1024 / 25, "{lost} lost of one block");
    server.stop();
    // The journal that the server writes anew is whole.
    let server = salvage.serve();
    assert_eq!((server.get("/readyz").trim(), fresh(&server, KEYS)), ("ready", 0));
}

#[test]
fn a_table_of_another_size_has_all_counters() {
    const KEYS: u32 = 5_000;
    let state = State::new("everysec", "max_memory = \"16MiB\"", "");
    let server = state.serve();
    uses_up(&server, KEYS);
    server.stop();
    for size in ["1GiB", "2MiB", "64MiB"] {
        let configuration = state.configuration.replace("16MiB", size);
        let server = State { configuration, directory: tempfile::tempdir().unwrap() }.serve();
        assert_eq!(fresh(&server, KEYS), 0, "{size}");
        server.stop();
    }
}

#[test]
fn counters_in_redis_are_not_kept_here() {
    let state = State::new("everysec", "type = \"redis\"\nurl = \"redis://127.0.0.1:1\"", "");
    let said = state.refusal();
    assert!(said.contains("\"durable\" is for counters in memory: with type = \"redis\""), "{said}");
}

#[test]
fn a_directory_that_cannot_be_used_is_named_with_the_reason() {
    let files = files::directory(&[("file", "")]);
    let below_a_file = files.path().join("file/state");
    let said = State::at(&below_a_file, "everysec", "", "").refusal();
    assert!(said.contains(below_a_file.to_str().unwrap()) && said.contains("Not a directory"), "{said}");

    // Root may write to every directory except in a read-only file system.
    let said = State::at("/proc/flowgate".as_ref(), "everysec", "", "").refusal();
    assert!(said.contains("/proc/flowgate") && said.contains("No such file or directory"), "{said}");
    let state = State::new("everysec", "", "");
    state.serve().stop();
    fs::remove_file(state.path().join("lock")).unwrap();
    fs::create_dir(state.path().join("lock")).unwrap();
    let said = state.refusal();
    assert!(said.contains("lock") && said.contains("Is a directory"), "{said}");
}
