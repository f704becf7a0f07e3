//! A configuration written out as TOML.

use super::*;

#[track_caller]
fn check_round_trip(text: &str) {
    let first = config(text, &[]).to_toml();
    let second = config(&first, &[]).to_toml();
    assert_eq!(first, second);
    for line in text.lines().filter(|line| line.starts_with("name = ")) {
        assert!(first.contains(line), "{line} is missing in\n{first}");
    }
}

#[test]
fn a_configuration_written_out_is_read_back() {
    check_round_trip("");
    check_round_trip(DOCUMENTED_DEFAULTS);
    check_round_trip(DOCUMENTED_RULES);
    check_round_trip(
        "[store]\ntype = \"redis\"\ncluster = [\"10.0.0.1:1\", \"rediss://[::1]:2\"]\nlocal_share = \"1/3\"",
    );
    check_round_trip(
        "[store]\ntype = \"redis\"\nsentinel = [\"a:1\", \"rediss://[::1]:2\"]\nmaster = \"m\"\ndatabase = 3\ntls = true",
    );
    let directory = tempfile::tempdir().unwrap();
    let cert = directory.path().join("a\"b.pem");
    fs::write(&cert, "").unwrap();
    check_round_trip(&format!(
        r#"
[listen]
http = "off"
grpc = "[::1]:7072"
[server]
max_request = "3MiB"
drain = "90s"
[log]
denials = "1/3"
format = "json"
[tls]
cert = {:?}
key = "example.toml"
"#,
        cert.to_str().unwrap()
    ));
}

#[test]
fn rules_are_written_out_whole() {
    check_round_trip(
        r#"
[lists]
"a.b" = { values = ["quo\"te", "10.0.0.0/8"] }
[[rule]]
name = "everything"
title = "Tab\tand\nline"
when = { a = "x", b = ["x", "y"], c = "*", d = "!*", e = "!x", f = "> 100", g = "<= 5", h = "1..100", i = "10.0.0.0/8", j = "10.0.0.1..10.0.0.9", k = "10.0.24.*", l = "/api/*", m = "~^/v[0-9]+\\.x", n = "@a.b", o = "!@a.b", p = { eq = "*literal" }, ip = [{ eq = "1.2.3/24" }, "unknown"], q = [{ eq = "!x" }, "z"], r = { eq = "" }, "header.X-Y" = "1" }
by = ["a", "header.X-Y"]
limits_by = { field = "plan", "free plan" = ["unlimited"], pro = ["pace 10/s max_wait=none", "approx 100/h after=5/day tz=UTC"], default = ["bucket 0.5/s burst=15"] }
action = "review"
code = -7
count_denied = true
shadow = true
on_failure = "deny"
ban = { after = 3, within = "90s", for = ["1m", "36h"] }
[[rule]]
name = "last"
action = "allow"
"#,
    );
}
