//! The sources of traces, and mistakes that concern a trace as a whole.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use flowgate::Time;
use flowgate_replay::timestamp;
use serde_json::Value;

use crate::{Bench, testdata, trace};

const PER_USER: &str = "rule = [{ name = 'per-user', by = ['user'], limits = ['2/60s'] }]";
const PER_IP: &str = "rule = [{ name = 'per-ip', by = ['ip'], limits = ['60/min'] }]";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn counts(summary: &Value) -> [u64; 3] {
    ["requests", "passed", "denied"].map(|key| summary[key].as_u64().unwrap())
}

#[test]
fn plain_or_gzip_files_or_standard_input_one_or_several() {
    let bench = Bench::new(PER_USER);
    let (first, second) = (trace(&[(1, "a"), (2, "a"), (3, "a")]), trace(&[(4, "a"), (4, "b"), (61, "a")]));
    bench.file("first.jsonl", &first);
    bench.file("second.jsonl", gzip(&second));
    let both = [&first[..], &second].concat();
    bench.file("members.gz", [gzip(&first), gzip(&second)].concat());
    for (args, stdin) in [
        (&["--input", "first.jsonl", "--input", "second.jsonl"][..], &b""[..]),
        (&["--input", "first.jsonl", "second.jsonl"], b""),
        (&["first.jsonl", "second.jsonl", "--config", "flowgate.toml"], b""),
        (&["--input", "first.jsonl", "--input", "-"], &gzip(&second)),
        (&["--input", "-"], &both),
        (&["--input", "-", "--format", "jsonl"], &gzip(&both)),
        (&["--input", "members.gz"], b""),
        (&["--config", "flowgate.toml", "--input", "members.gz"], b""),
    ] {
        assert_eq!(counts(&bench.summary(args, stdin)), [6, 4, 2], "{args:?}");
    }
}

/// Rotated logs with the newest first, as `ls -t` lists them: all lines of the older log would be decided at one
/// instant.
#[test]
fn traces_in_the_wrong_order_are_warned_of() {
    let bench = Bench::new(PER_USER);
    bench.file("older.jsonl", trace(&[(1000, "a"), (5000, "a"), (10_000, "a")]));
    bench.file("newer.jsonl", trace(&[(10_060, "a"), (20_000, "a")]));
    bench.file("overlapping.jsonl", trace(&[(16_401, "a"), (30_000, "a")]));
    let inputs = |names: &[&'static str]| names.iter().flat_map(|name| ["--input", name]).collect::<Vec<_>>();
    for right in [&["older.jsonl", "newer.jsonl", "overlapping.jsonl"][..], &["newer.jsonl"]] {
        let args = [&inputs(right)[..], &["--reorder", "1h"]].concat();
        assert_eq!(bench.summary(&args, b"")["out_of_order"], Value::Array(vec![]), "{right:?}");
    }
    let wrong = inputs(&["newer.jsonl", "older.jsonl", "overlapping.jsonl"]);
    let ran = bench.replay(&[&wrong[..], &["--report", "report.html"]].concat(), b"");
    let warning =
        "warning: older.jsonl begins at 1970-01-01 00:16:40, 5 h 16 min before the latest time in front of it";
    for (place, text) in [("stderr", &ran.stderr), ("stdout", &ran.stdout)] {
        assert_eq!(text.matches("warning: ").count(), 1, "{place}: {text}");
        assert!(text.contains(warning), "{place}: {text}");
    }
    assert!(bench.read("report.html").contains("older.jsonl begins at 1970-01-01 00:16:40"));
    let ran = bench.replay(&[&wrong[..], &["--json"]].concat(), b"");
    let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
    let expected = serde_json::json!([{
        "trace": "older.jsonl",
        "begins": "1970-01-01T00:16:40Z",
        "latest": "1970-01-01T05:33:20Z",
        "back_seconds": 19_000,
    }]);
    assert_eq!(summary["out_of_order"], expected);
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
}

/// Rotated logs joined by `cat`: the reader cannot see where a file begins.
#[test]
fn a_stream_that_runs_back_is_warned_of_once() {
    let bench = Bench::new(PER_USER);
    let summary = bench.summary(
        &["--input", "-", "--reorder", "1h"],
        br#"{"ts":7200,"fields":{"user":"a"}}
{"ts":3600.5,"fields":{"user":"a"}}"#,
    );
    assert_eq!((&summary["reordered"], &summary["reordered_by_seconds"]), (&Value::from(1), &Value::from(3600)));
    assert_eq!(summary["late"], 0);
    assert_eq!(summary["out_of_order"], Value::Array(vec![]));
    let ran =
        bench.replay(&["--input", "-", "--json"], &trace(&[(1, "a"), (9000, "a"), (5400, "a"), (0, "a"), (1, "a")]));
    let warning =
        "warning: standard input:3 runs back to 1970-01-01 01:30:00, 1 h before the latest time in front of it";
    assert!(ran.stderr.starts_with(warning) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&summary["late"], &summary["late_by_seconds"]), (&Value::from(3), &Value::from(9000)));
    assert_eq!(summary["out_of_order"][0]["line"], 3);
}

#[test]
fn a_real_log_with_times_that_run_back() {
    let bench = Bench::new(PER_IP);
    let log = testdata("logs/site.log.gz");
    let summary = bench.summary(&["--input", log.to_str().unwrap()], b"");
    assert_eq!(summary["lines"], 10_000);
    assert_eq!(summary["skipped"], 1, "its last quote is missing");
    assert_eq!(summary["unreadable"][0]["line"], 8899);
    assert_eq!((&summary["reordered"], &summary["late"]), (&Value::from(late(&log)), &Value::from(0)));
    assert_eq!(summary["reordered_by_seconds"], 59);
    let hasty = bench.replay(&["--input", log.to_str().unwrap(), "--reorder", "0s"], b"");
    let warning = "warning: 9,447 of 9,999 lines came more than 0 s late, by up to 59 s; try --reorder 1m.";
    assert!(hasty.stderr.starts_with(warning), "{}", hasty.stderr);
    for wrong in ["1", "-1s", "x", "367d"] {
        let ran = bench.replay(&["--input", "-", &format!("--reorder={wrong}")], b"");
        assert!(ran.code == 2 && ran.stderr.contains("expected a time such as 60s, 5m or 1h"), "{}", ran.stderr);
    }
    assert_eq!(summary["first"], "2015-05-17T10:05:00Z");
    assert_eq!(summary["last"], "2015-05-20T21:05:59Z");
    assert_eq!(counts(&summary)[0], 9_999);
}

/// The number of lines that are older than a line before them.
fn late(log: &Path) -> u64 {
    let (mut latest, mut late) = (Time::EPOCH, 0);
    for (number, line) in (1..).zip(unzipped(log).lines()) {
        let time = time(line);
        late += u64::from(number != 8899 && time < latest);
        latest = latest.max(time);
    }
    late
}

fn unzipped(log: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(File::open(log).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// The time of a line of a log.
fn time(line: &str) -> Time {
    timestamp::from_log(line.split(['[', ']']).nth(1).unwrap().as_bytes()).unwrap()
}

/// Nearly all lines of the log are late. The advice equals that for the sorted lines.
#[test]
fn a_real_log_gives_the_advice_of_its_sorted_lines() {
    let bench =
        Bench::new("rule = [{ name = 'per-ip', by = ['ip'], limits = ['20/10s', '60/10s', '20/s', '20/min'] }]");
    let log = testdata("logs/site.log.gz");
    let text = unzipped(&log);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| time(line));
    let sorted = bench.file("sorted.log", lines.join("\n"));
    let advice = |log: &Path, reorder: &str| -> Vec<String> {
        let ran = bench.replay(&["--input", log.to_str().unwrap(), "--advice", "--json", "--reorder", reorder], b"");
        let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
        let curves = summary["what_if"]["curves"].as_array().unwrap().iter();
        curves.map(|curve| curve["advice"].as_str().unwrap().to_owned()).collect()
    };
    let expected = [
        "20 in 10 s leaves 99.9 % of addresses alone, as configured.",
        "To leave 99.9 % of addresses alone: 27 in 10 s (now 60).",
        "To leave 99.9 % of addresses alone: 6 a second (now 20).",
        "To leave 99.9 % of addresses alone: 101 a minute (now 20).",
    ];
    for (log, reorder) in [(&log, "60s"), (&sorted, "60s"), (&sorted, "0s")] {
        assert_eq!(advice(log, reorder), expected, "{} with {reorder}", log.display());
    }
    assert_ne!(advice(&log, "0s"), expected, "without a window the advice would mislead");
}

/// On a terminal a person sees both outputs, also if the summary goes to standard error because of the decisions.
#[test]
fn a_warning_is_shown_once() {
    let bench = Bench::new("rule = [{ name = 'a', when = { act = 'x' }, limits = ['2/60s'] }]");
    let file = bench.file("trace.jsonl", trace(&[(1, "42")]));
    let input = file.to_str().unwrap();
    let count = |text: &str| text.matches("warning: no line has the field \"act\"").count();
    let piped = bench.replay(&["--input", input], b"");
    assert_eq!((count(&piped.stdout), count(&piped.stderr)), (1, 1), "each output stands alone");
    let decisions = bench.replay(&["--input", input, "--decisions", "-"], b"");
    assert_eq!((count(&decisions.stdout), count(&decisions.stderr)), (0, 1), "{}", decisions.stderr);
    let json = bench.replay(&["--input", input, "--json"], b"");
    assert_eq!((count(&json.stdout), count(&json.stderr)), (0, 1), "{}", json.stderr);
    // `script` runs a command on a terminal of its own, and copies that terminal's content.
    let command = format!("'{}' replay --input '{input}'", env!("CARGO_BIN_EXE_flowgate"));
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(bench.path("")).env("HOME", bench.path(""));
    let seen = script.env_remove("FLOWGATE_CONFIG").stdin(Stdio::null()).output().unwrap();
    let seen = String::from_utf8(seen.stdout).unwrap();
    assert!(seen.contains("requests") && count(&seen) == 1, "{seen}");
}

#[test]
fn formats_are_told_apart_by_their_first_lines() {
    let bench = Bench::new(PER_IP);
    let common = "1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5";
    let decisions = |text: &str| bench.decisions(&["--input", "-"], text.as_bytes());
    let lines = decisions(&format!("\u{feff}# a comment\n\n{common}\r\n{common} \"-\" \"x\"\n"));
    assert_eq!(lines.len(), 2, "the first that can be read decides: common");
    assert_eq!(lines[0]["ts"], "17/May/2015:10:05:03 +0000");
    assert_eq!(decisions(&format!("{common} \"-\" \"x\"\n{common}\n")).len(), 1, "combined");
    assert_eq!(decisions("\u{feff}{\"ts\":\"1970-01-01T00:00:00Z\",\"fields\":{}}")[0]["ts"], "1970-01-01T00:00:00Z");
    for (text, reason) in [
        ("what is this?\nnobody knows\n", "common: column 9: expected a user, mostly -, and a time in brackets"),
        ("{\"level\":\"info\",\"ts\":1}\n", "jsonl: column 3: expected the key ts, fields, cost or op"),
    ] {
        let ran = bench.replay(&["--input", "-"], text.as_bytes());
        assert_eq!(ran.code, 1);
        let expected = "error: cannot tell the format of standard input from its first lines; the first, read as ";
        assert!(ran.stderr.starts_with(&format!("{expected}{reason}.")), "{}", ran.stderr);
    }
}

#[test]
fn lines_that_cannot_be_read_are_skipped_counted_and_shown() {
    let bench = Bench::new(PER_USER);
    let mut text = trace(&[(1, "a")]);
    text.extend_from_slice(b"{\"ts\":1}\n\xff\xfe\n\n   \n");
    text.extend(std::iter::repeat_n(b'x', 3 << 20));
    text.push(b'\n');
    text.extend(trace(&[(2, "a")]));
    text.extend(b"{]\n".repeat(100));
    text.extend(trace(&[(3, "a")]));
    let ran = bench.replay(&["--input", "-"], &text);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let expected = "103 lines could not be read and were skipped:\n  \
                    standard input:2: column 9: expected a key \"fields\"\n  \
                    standard input:3: not UTF-8\n  \
                    standard input:6: longer than 1048576 bytes\n  \
                    standard input:8: column 2: expected a key in quotes\n  \
                    standard input:9: column 2: expected a key in quotes\n  ..\n";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    assert_eq!(counts(&bench.summary(&["--input", "-"], &text)), [3, 2, 1]);
}

#[test]
fn what_is_no_trace_is_a_failure_that_says_so() {
    let bench = Bench::new(PER_USER);
    let cut = gzip(&trace(&(0..20_000).map(|second| (second, "a")).collect::<Vec<_>>()));
    bench.file("cut.gz", &cut[..cut.len() / 2]);
    bench.file("empty", "");
    bench.file("wrong.toml", "rules = 1");
    bench.file("koala.conf", "# rules\n[rules]\n");
    bench.file("broken.gz", b"\x1f\x8bnonsense");
    for (args, expected) in [
        (&["--input", "missing.log"][..], "error: cannot read missing.log: No such file or directory"),
        (&["--input", "."], "error: cannot read .: Is a directory"),
        (&["--input", "empty"], "error: there is nothing to replay in empty"),
        (&["--input", "broken.gz"], "error: cannot read broken.gz: "),
        (&["--input", "cut.gz"], "error: cut.gz, behind line "),
        (&["--input", "empty", "--format", "common"], "error: there is nothing to replay in empty"),
        (&["--input", "flowgate.toml", "--format", "common"], "error: no line could be read"),
        (&["--input", "empty", "--config", "wrong.toml"], "error: unknown key \"rules\""),
        (&["--input", "empty", "--compare", "wrong.toml"], "error: unknown key \"rules\""),
        (&["--input", "empty", "--config", "missing.toml"], "error: "),
        (
            &["--input", "empty", "--config", "koala.conf"],
            "error: koala.conf is a file of Koala: `flowgate serve --koala",
        ),
        (
            &["--input", "empty", "--compare", "koala.conf"],
            "error: koala.conf is a file of Koala: `flowgate serve --koala",
        ),
        (&["--input", "empty", "--report", "no/such/place.html"], "error: cannot write no/such/place.html: "),
        (&["--input", "empty", "--decisions", "no/such/place"], "error: cannot write no/such/place: "),
    ] {
        let ran = bench.replay(args, b"");
        assert_eq!(ran.code, 1, "{args:?}");
        assert!(ran.stderr.starts_with(expected), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(bench.replay(&[], b"").code, 2, "without a trace");
    // The lines before the mistake are summed up.
    assert!(bench.replay(&["--input", "cut.gz"], b"").stdout.starts_with("requests"));
}

#[test]
fn without_a_rule_there_is_nothing_to_try() {
    let bench = Bench::new("");
    bench.file("rules.toml", PER_USER);
    let trace = trace(&[(1, "a"), (2, "a"), (3, "a")]);
    let ran = bench.replay(&["--input", "-"], &trace);
    let expected = "error: flowgate.toml has no rules, so there is no rule to try: give --config FILE\n";
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (1, "", expected));
    std::fs::remove_file(bench.path("flowgate.toml")).unwrap();
    let ran = bench.replay(&["--input", "-"], &trace);
    let expected = "error: no configuration was found, so there is no rule to try: give --config FILE\n";
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (1, "", expected));
    // A comparison with a policy without rules is allowed.
    let ran = bench.replay(&["--input", "-", "--compare", "rules.toml"], &trace);
    let warning = "warning: there are no rules in the defaults, so all requests pass; give --config FILE\n";
    assert_eq!((ran.code, &*ran.stderr), (0, warning));
    assert!(ran.stdout.contains(warning) && ran.stdout.contains("newly denied  1"), "{}", ran.stdout);
}

#[test]
fn decisions_on_standard_output_are_alone_there() {
    let bench = Bench::new(PER_USER);
    let ran = bench.replay(&["--input", "-", "--decisions", "-"], &trace(&[(1, "a"), (2, "a"), (3, "a")]));
    assert_eq!(ran.code, 0);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!((&lines[2]["allowed"], &lines[2]["retry_after"]), (&Value::from(false), &Value::from(58)));
    assert!(ran.stderr.starts_with("requests"), "{}", ran.stderr);
}

/// Decision lines answer which URLs were denied, and on which lines of the log.
#[test]
fn decisions_say_whose_they_are() {
    let bench = Bench::new("rule = [{ name = 'per-ip', by = ['ip'], limits = ['1/min'] }]");
    let line =
        |path: &str| format!("1.2.3.4 - ann [17/May/2015:10:05:03 +0000] \"GET {path} HTTP/1.1\" 200 5 \"-\" \"x\"\n");
    let log = format!("{}# nothing\n\n{}", line("/a"), line("/b\\\"?c"));
    let lines = bench.decisions(&["--input", "-"], log.as_bytes());
    let expected = r#"{"ts":"17/May/2015:10:05:03 +0000","line":1,"fields":{"ip":"1.2.3.4","user":"ann","method":"GET","path":"/a","status":"200","header.user-agent":"x"},"allowed":true,"#;
    let written = bench.read("decisions.jsonl");
    assert!(written.starts_with(expected), "{written}");
    let denied: Vec<_> = lines.iter().filter(|line| line["allowed"] == false).collect();
    assert_eq!(denied.len(), 1);
    assert_eq!((&denied[0]["line"], &denied[0]["fields"]["path"]), (&Value::from(4), &Value::from("/b\"")));
    assert_eq!(denied[0].get("file"), None, "there is but one");

    bench.file("first.log", line("/1"));
    bench.file("second.jsonl", r#"{"ts":1431857104,"fields":{"ip":"5.6.7.8","n":7}}"#);
    let lines = bench.decisions(&["--input", "first.log", "--input", "second.jsonl"], b"");
    let whose = lines.iter().map(|line| (line["file"].as_str().unwrap(), &line["line"], &line["fields"]["ip"]));
    let (one, ips) = (Value::from(1), ["1.2.3.4", "5.6.7.8"].map(Value::from));
    assert_eq!(whose.collect::<Vec<_>>(), [("first.log", &one, &ips[0]), ("second.jsonl", &one, &ips[1])]);
    assert_eq!(lines[1]["fields"]["n"], "7");
}

#[test]
fn the_guide_shows_what_is_printed() {
    let root = testdata("..");
    let guide = std::fs::read_to_string(root.join("docs/replay.md")).unwrap();
    let command = "replay --config examples/website.toml --input testdata/logs/site.log.gz --report report.html";
    assert!(guide.contains(command));
    for readme in ["README.md", "README.zh-CN.md"] {
        assert!(std::fs::read_to_string(root.join(readme)).unwrap().contains(command), "{readme}");
    }
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let (config, log) = (path("examples/website.toml"), path("testdata/logs/site.log.gz"));
    let ran = Bench::new("").replay(&["--config", &config, "--input", &log], b"");
    let shown = guide.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    for line in shown.lines().filter(|line| *line != "...") {
        assert!(ran.stdout.lines().any(|printed| printed == line), "{line}\n{}", ran.stdout);
    }
}

#[test]
fn advice_needs_no_report() {
    let bench = Bench::new("rule = [{ name = 'all', by = ['user'], limits = ['2/60s'] }]");
    let requests: Vec<(u64, &str)> = (0..9).map(|second| (second, "42")).collect();
    let file = bench.file("trace.jsonl", trace(&requests));
    let input = ["--input", file.to_str().unwrap()];
    let hint = "--advice tells which counts would leave nearly everybody alone\n";
    let plain = bench.replay(&input, b"").stdout;
    assert!(plain.ends_with(hint) && !plain.contains("To leave"), "{plain}");
    let advised = bench.replay(&[&input[..], &["--advice"]].concat(), b"").stdout;
    assert!(advised.contains("To leave the only user alone: 10 a minute (now 2).\n"), "{advised}");
    assert!(!advised.contains(hint), "{advised}");
    // If there are several limits, the output and the report say that each was tried alone.
    let alone =
        "Each limit was tried alone, as if there were no other: whom one count spares, another limit may still deny.";
    assert!(!advised.contains(alone), "{advised}");
    bench.file("flowgate.toml", "rule = [{ name = 'all', by = ['user'], limits = ['2/60s', '3/60s'] }]");
    let several = bench.replay(&[&input[..], &["--advice", "--report", "report.html"]].concat(), b"").stdout;
    assert!(several.contains(&format!("\n{alone}\n")), "{several}");
    assert!(bench.read("report.html").contains(&format!("<p class=\"hint\">{alone}</p>")));
}
