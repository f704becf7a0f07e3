//! The configuration as a whole: defaults, the documented example, variables, includes, secrets, and back to TOML.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use flowgate::{MemoryStore, Op, Time, WhenFull};
use flowgate_engine::config::{
    ByteSize, Config, Denials, Flag, HeaderFamily, Input, ListenAddress, LoadedConfig, LogFormat, LogLevel, Options,
    Origin, Purpose, RedisServers, Report, Share, load, load_with,
};
use flowgate_engine::{Action, Engine, Limits, Matcher, OnFailure, Request};

/// Every key of the documentation, with its default.
const DOCUMENTED_DEFAULTS: &str = include_str!("../../../testdata/config/defaults.toml");

/// The rules of the documentation.
const DOCUMENTED_RULES: &str = include_str!("../../../testdata/config/example.toml");

fn from_text(text: &str, environment: &[(&str, &str)]) -> Result<LoadedConfig, Report> {
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    load(Input::Text { name: "flowgate.toml", base: testdata(), text }, environment)
}

fn testdata() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/config"))
}

#[track_caller]
fn config(text: &str, environment: &[(&str, &str)]) -> Config {
    from_text(text, environment).unwrap_or_else(|report| panic!("{report}")).config
}

#[track_caller]
fn mistake(text: &str, environment: &[(&str, &str)]) -> String {
    from_text(text, environment).unwrap_err().entries().next().unwrap().message.to_owned()
}

mod defaults {
    use super::*;

    #[test]
    fn an_empty_file_has_the_documented_ones() {
        let Config { listen, server, auth, tls, log, store, gate, koala, koala_file, lists, policy } = config("", &[]);
        assert_eq!(listen.http, ListenAddress::Tcp("127.0.0.1:7070".parse().unwrap()));
        assert_eq!(listen.resp, ListenAddress::Tcp("127.0.0.1:7071".parse().unwrap()));
        assert_eq!(listen.grpc, ListenAddress::Off);
        assert_eq!((server.max_connections, server.threads), (10_000, 0));
        assert_eq!(server.idle_timeout, Duration::from_secs(300));
        assert_eq!((server.request_timeout, server.drain), (Duration::from_secs(5), Duration::from_secs(10)));
        assert_eq!(server.max_request, ByteSize::new(1_000_000));
        assert!(auth.resp_password.is_none() && auth.api_token.is_none() && auth.admin_token.is_none());
        assert!(!auth.insecure && tls.is_none());
        assert_eq!((log.format, log.level, log.denials), (LogFormat::Human, LogLevel::Info, Denials::Off));
        assert_eq!(store.max_memory, ByteSize::new(1_000_000_000));
        assert_eq!(store.when_full, WhenFull::Evict);
        assert!(store.redis.is_none());
        let proxies: Vec<_> = gate.trusted_proxies.iter().map(ToString::to_string).collect();
        assert_eq!(proxies, ["127.0.0.0/8", "::1"]);
        assert_eq!((gate.ipv6_prefix, gate.deny_status), (64, 429));
        assert_eq!(gate.headers, [HeaderFamily::RateLimit, HeaderFamily::XRateLimit]);
        assert_eq!((koala.rules, koala.tz.as_str()), (None, "Asia/Shanghai"));
        assert!(koala_file.is_none());
        assert!(lists.is_empty() && policy.rules.is_empty() && policy.lists.is_empty());
    }

    #[test]
    fn writing_them_out_changes_nothing() {
        assert_eq!(config(DOCUMENTED_DEFAULTS, &[]).to_toml(), config("", &[]).to_toml());
    }

    #[test]
    fn no_file_is_an_empty_file() {
        let loaded = load(Input::Defaults, []).unwrap();
        assert_eq!(loaded.config.to_toml(), config("", &[]).to_toml());
        assert!(loaded.origins.is_empty() && loaded.warnings.is_empty());
    }

    #[test]
    fn redis_has_the_documented_ones() {
        let redis = config("[store]\ntype = \"redis\"", &[]).store.redis.unwrap();
        let RedisServers::One(url) = redis.servers else { panic!("a cluster") };
        assert_eq!(url.expose(), "redis://127.0.0.1:6379/0");
        assert_eq!((redis.prefix.as_str(), redis.timeout), ("fg:", Duration::from_millis(50)));
        assert_eq!((redis.on_failure, redis.local_share, redis.deny_cache), (OnFailure::Local, Share::ALL, true));
        assert_eq!(redis.deny_cache_max, Duration::from_secs(1));
    }
}

mod example {
    use super::*;

    #[test]
    fn becomes_rules_and_lists() {
        let config = config(DOCUMENTED_RULES, &[]);
        assert!(config.policy.lists["vip"].contains("42"));
        assert!(config.policy.lists["blocked"].contains("192.0.2.7"));
        let [blocked, reply, api] = config.policy.rules.as_slice() else { panic!("not three rules") };
        assert_eq!((blocked.name.as_str(), blocked.title.as_deref()), ("blocked", Some("Blocked addresses")));
        assert_eq!(blocked.action, Action::Deny);
        assert!(matches!(&blocked.limits, Limits::None));
        assert!(matches!(&blocked.when[0].matcher, Matcher::List(name) if **name == *"blocked"));

        assert_eq!(reply.by, ["user"]);
        let fields: Vec<_> = reply.when.iter().map(|condition| condition.field.as_str()).collect();
        assert_eq!(fields, ["act", "user"], "conditions keep the order in which they are written");
        let Limits::Fixed(limits) = &reply.limits else { panic!("no limits") };
        let limits: Vec<_> = limits.iter().map(ToString::to_string).collect();
        assert_eq!(limits, ["sliding 5/60s", "fixed 100/1d tz=Asia/Shanghai", "bucket 30/60s burst=15"]);
        assert_eq!((reply.code, reply.message.as_deref()), (Some(201), Some("You reply too fast.")));
        assert_eq!(reply.on_failure, Some(OnFailure::Local));
        let ban = reply.ban.as_ref().unwrap();
        assert_eq!((ban.after, ban.lengths.len(), ban.forget.as_secs_ceil()), (3, 3, 86_400));

        let Limits::ByField { field, cases, default } = &api.limits else { panic!("not by a field") };
        assert_eq!((field.as_str(), cases.len(), default.as_ref().unwrap().len()), ("plan", 2, 1));
        assert_eq!(api.action, Action::Other("captcha".into()));
    }

    #[test]
    fn gives_no_warnings() {
        let loaded = from_text(DOCUMENTED_RULES, &[]).unwrap();
        // Its lists and certificates are complete; `vip` is there to be looked at.
        let messages: Vec<_> = loaded.warnings.entries().map(|entry| entry.message.to_owned()).collect();
        assert_eq!(messages, ["no rule uses the list \"vip\""]);
    }
}

mod variables {
    use super::*;

    #[test]
    fn replace_what_files_say() {
        let text = "[server]\nthreads = 2\n[store]\ntype = \"redis\"\nurl = \"redis://10.0.0.1:6379\"";
        let config = config(
            text,
            &[
                ("FLOWGATE_SERVER__THREADS", "8"),
                ("FLOWGATE_SERVER__DRAIN", "1m"),
                ("FLOWGATE_STORE__URL", "rediss://10.0.0.2:6380/1"),
                ("FLOWGATE_STORE__DENY_CACHE", "false"),
                ("FLOWGATE_LOG__DENIALS", "0.5%"),
                ("FLOWGATE_LISTEN__GRPC", "127.0.0.1:7072"),
                ("HOME", "/root"),
            ],
        );
        assert_eq!((config.server.threads, config.server.drain), (8, Duration::from_secs(60)));
        let redis = config.store.redis.unwrap();
        assert!(matches!(redis.servers, RedisServers::One(url) if url.expose() == "rediss://10.0.0.2:6380/1"));
        assert!(!redis.deny_cache);
        assert_eq!(config.log.denials, Denials::Share(Share::new(1, 200).unwrap()));
        assert_eq!(config.listen.grpc, ListenAddress::Tcp("127.0.0.1:7072".parse().unwrap()));
    }

    #[test]
    fn lists_are_separated_by_commas_or_are_toml() {
        let proxies = |value: &str| {
            let gate = config("", &[("FLOWGATE_GATE__TRUSTED_PROXIES", value)]).gate;
            gate.trusted_proxies.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(proxies("10.0.0.0/8, 192.168.1.7"), ["10.0.0.0/8", "192.168.1.7"]);
        assert_eq!(proxies("[\"10.0.0.0/8\", \"::1\"]"), ["10.0.0.0/8", "::1"]);
        assert!(proxies("").is_empty() && proxies("[]").is_empty());
    }

    #[test]
    fn reach_every_key_of_every_section() {
        // The output names every key; each must be known as a variable, too.
        let text = config("[store]\ntype = \"redis\"", &[]).to_toml();
        let mut section = String::new();
        let mut seen = 0;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name.to_uppercase();
            } else if let Some((key, value)) = line.split_once(" = ") {
                let name = format!("FLOWGATE_{section}__{}", key.to_uppercase());
                let value = value.trim_matches('"');
                let result = from_text("", &[("FLOWGATE_STORE__TYPE", "redis"), (name.as_str(), value)]);
                assert!(result.is_ok(), "{name}={value}: {}", result.unwrap_err());
                seen += 1;
            }
        }
        assert!(seen >= 34, "only {seen} keys found");
    }

    #[test]
    fn of_other_programs_are_passed_over() {
        let kubernetes = [("FLOWGATE_PORT", "tcp://10.0.0.1:7070"), ("FLOWGATE_SERVICE_HOST", "10.0.0.1")];
        assert!(from_text("", &kubernetes).is_ok());
        assert!(from_text("", &[("FLOWGATE_CONFIG", "/etc/flowgate.toml"), ("FLOWGATED", "1")]).is_ok());
        assert_eq!(mistake("", &[("FLOWGATE_PROT", "1")]), "unknown environment variable FLOWGATE_PROT");
    }
}

mod secrets {
    use super::*;

    #[test]
    fn come_from_a_file_without_the_line_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        for content in ["s3cret", "s3cret\n", "s3cret\r\n"] {
            fs::write(&path, content).unwrap();
            let text = format!("[auth]\napi_token_file = {:?}", path.to_str().unwrap());
            assert_eq!(config(&text, &[]).auth.api_token.unwrap().expose(), "s3cret");
            let variable = config("", &[("FLOWGATE_AUTH__ADMIN_TOKEN_FILE", path.to_str().unwrap())]);
            assert_eq!(variable.auth.admin_token.unwrap().expose(), "s3cret");
        }
        fs::write(&path, "redis://user:s3cret@10.0.0.1\n").unwrap();
        let text = format!("[store]\ntype = \"redis\"\nurl_file = {:?}", path.to_str().unwrap());
        let redis = config(&text, &[]).store.redis.unwrap();
        assert!(matches!(&redis.servers, RedisServers::One(url) if url.expose().contains("s3cret")));
    }

    #[test]
    fn given_by_a_variable_replace_the_file_of_a_file() {
        let text = "[auth]\napi_token_file = \"/no/such/file\"";
        let config = config(text, &[("FLOWGATE_AUTH__API_TOKEN", "s3cret")]);
        assert_eq!(config.auth.api_token.unwrap().expose(), "s3cret");
    }

    #[test]
    fn never_show() {
        let text = "
            [auth]
            resp_password = \"s3cret-1\"
            api_token = \"s3cret-2\"
            [store]
            type = \"redis\"
            url = \"redis://user:s3cret-3@10.0.0.1\"";
        let config = config(text, &[("FLOWGATE_AUTH__ADMIN_TOKEN", "s3cret-4")]);
        assert_eq!(config.auth.api_token.as_ref().unwrap().expose(), "s3cret-2");
        assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
        let toml = config.to_toml();
        assert!(!toml.contains("s3cret"), "{toml}");
        assert!(
            toml.contains("admin_token = \"***\"") && toml.contains("url = \"redis://user:***@10.0.0.1\""),
            "{toml}"
        );
        let wrong = from_text(&format!("{text}\ntimeout = 5"), &[]).unwrap_err();
        assert!(!format!("{wrong:?}").contains("s3cret"), "{wrong:?}");
        // What is hidden cannot be taken for the secret itself.
        assert_eq!(mistake(&toml, &[]), "this secret is hidden");
    }

    #[test]
    fn open_doors_beyond_loopback() {
        let public = "[listen]\nhttp = \"0.0.0.0:7070\"\nresp = \"0.0.0.0:7071\"";
        assert!(mistake(public, &[]).contains("can be reached from other machines"));
        let one = [("FLOWGATE_AUTH__API_TOKEN", "s3cret")];
        assert!(mistake(public, &one).contains("resp asks for no secret"));
        let both = [("FLOWGATE_AUTH__API_TOKEN", "s3cret"), ("FLOWGATE_AUTH__RESP_PASSWORD", "s3cret")];
        assert!(from_text(public, &both).is_ok());
        assert!(from_text(public, &[("FLOWGATE_AUTH__INSECURE", "true")]).is_ok());
        let certificates = "[tls]\ncert = \"example.toml\"\nkey = \"example.toml\"\nclient_ca = \"example.toml\"\n";
        assert!(from_text(&format!("{certificates}{public}"), &[]).is_ok());
        assert!(from_text("[listen]\nhttp = \"[::1]:7070\"\nresp = \"unix:/run/x\"", &[]).is_ok());
    }
}

#[test]
fn an_option_comes_before_all_and_is_called_by_its_name() {
    let flag = |value: &str| Flag { name: "--http", section: "listen", key: "http", value: value.to_owned() };
    let variable = || [("FLOWGATE_LISTEN__HTTP".to_owned(), "127.0.0.1:1".to_owned())];
    let input = || Input::Text { name: "x", base: testdata(), text: "[listen]\nhttp = \"off\"" };
    let load = |flags: &[Flag]| load_with(input(), variable(), Options { flags, ..Options::default() });
    let loaded = load(&[flag("127.0.0.1:2")]).unwrap();
    assert_eq!(loaded.config.listen.http, ListenAddress::Tcp("127.0.0.1:2".parse().unwrap()));
    let report = load(&[flag("0.0.0.0:2")]).unwrap_err().to_string();
    assert!(report.contains("--> option --http\n"), "{report}");
    assert!(report.contains("| --http=0.0.0.0:2\n"), "{report}");
    assert!(!report.contains("FLOWGATE_LISTEN"), "{report}");
}

#[test]
fn whoever_only_looks_needs_no_certificates() {
    for (cert, cause) in [("none.pem", "there is no such file"), ("errors", "it is not a regular file")] {
        let text = format!("[tls]\ncert = \"{cert}\"\nkey = \"example.toml\"");
        let read = |purpose| {
            let input = Input::Text { name: "x", base: testdata(), text: &text };
            load_with(input, [], Options { purpose, ..Options::default() })
        };
        let report = read(Purpose::Serve).unwrap_err().to_string();
        assert!(report.starts_with("error: cannot read ") && report.contains(cause), "{report}");
        let loaded = read(Purpose::Study).unwrap();
        assert!(loaded.warnings.is_empty() && loaded.config.tls.is_some(), "{}", loaded.warnings);
    }
}

mod includes {
    use super::*;

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    fn rule(name: &str) -> String {
        format!("[[rule]]\nname = \"{name}\"\nlimits = [\"5/60s\"]\n")
    }

    #[test]
    fn are_joined_in_the_order_of_their_names() {
        let main = format!("include = [\"last.toml\", \"rules.d/*.toml\", \"*.toml\"]\n{}", rule("main"));
        let directory = directory(&[
            ("flowgate.toml", &main),
            ("last.toml", &rule("named-first")),
            ("rules.d/20-b.toml", &rule("b")),
            ("rules.d/10-a.toml", &format!("[log]\nlevel = \"debug\"\n{}", rule("a"))),
            ("rules.d/.hidden.toml", "not toml at all"),
            ("rules.d/notes.txt", "not toml at all"),
        ]);
        let path = directory.path().join("flowgate.toml");
        let loaded = load(Input::File(&path), []).unwrap();
        let names: Vec<_> = loaded.config.policy.rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, ["main", "named-first", "a", "b"], "each file once, the main file not again");
        assert_eq!(loaded.config.log.level, LogLevel::Debug);
        let names = ["flowgate.toml", "last.toml", "rules.d", "rules.d/10-a.toml", "rules.d/20-b.toml", ""];
        let expected: Vec<_> = names.iter().map(|name| directory.path().join(name)).collect();
        let origins: Vec<_> = loaded.origins.iter().map(|origin| origin.path()).collect();
        assert_eq!(origins, expected, "what to watch: the files, and where the patterns look");
    }

    #[test]
    fn are_known_to_whoever_waits_for_a_mistake_to_be_mended() {
        let main = "include = [\"rules.toml\", \"gone.toml\"]";
        let directory = directory(&[("flowgate.toml", main), ("rules.toml", "not toml at all")]);
        let path = directory.path().join("flowgate.toml");
        let report = load(Input::File(&path), []).unwrap_err();
        let names: Vec<_> = report.origins().iter().map(|origin| origin.path().file_name().unwrap()).collect();
        assert_eq!(names, ["flowgate.toml", "rules.toml", "gone.toml"]);
        assert!(!report.origins().iter().any(Origin::has_changed));
        fs::write(directory.path().join("gone.toml"), rule("new")).unwrap();
        assert!(report.origins()[2].has_changed());
    }

    #[test]
    fn read_their_lists_beside_themselves() {
        let part = "[lists]\nblocked = { file = \"blocked.txt\" }\n[[rule]]\nname = \"b\"\nwhen = { ip = \"@blocked\" }\n\
            action = \"deny\"";
        let directory = directory(&[
            ("flowgate.toml", "include = [\"rules.d/b.toml\"]\n[lists]\nvip = { values = [\"7\"] }"),
            ("rules.d/b.toml", part),
            ("rules.d/blocked.txt", "192.0.2.7"),
        ]);
        let path = directory.path().join("flowgate.toml");
        let loaded = load(Input::File(&path), []).unwrap();
        assert!(loaded.config.policy.lists["blocked"].contains("192.0.2.7"));
        assert_eq!(loaded.config.policy.lists.len(), 2);
        assert_eq!(loaded.origins.last().unwrap().path(), directory.path().join("rules.d/blocked.txt"));
    }

    #[test]
    fn name_their_own_file_in_mistakes() {
        let directory = directory(&[
            ("flowgate.toml", "include = [\"rules.d/*.toml\"]\n[server]\nthread = 1"),
            ("rules.d/a.toml", "[[rule]]\nname = \"a\"\nlimits = [\"5/60x\"]"),
        ]);
        let path = directory.path().join("flowgate.toml");
        let report = load(Input::File(&path), []).unwrap_err();
        let places: Vec<_> = report.entries().map(|entry| (entry.source.unwrap(), entry.position.unwrap())).collect();
        assert_eq!(places.len(), 2);
        assert!(places[0].0.ends_with("flowgate.toml") && places[0].1.line == 3);
        assert!(places[1].0.ends_with("a.toml") && (places[1].1.line, places[1].1.column) == (3, 14));
    }

    #[test]
    fn that_are_no_files_are_refused() {
        let directory = directory(&[("flowgate.toml", "include = [\"rules.d\"]"), ("rules.d/a.toml", "")]);
        let report = load(Input::File(&directory.path().join("flowgate.toml")), []).unwrap_err();
        assert!(report.to_string().contains("it is not a regular file"), "{report}");
    }

    #[test]
    fn may_have_a_byte_order_mark_and_any_line_end() {
        let config = config("\u{feff}[log]\r\nlevel = \"debug\"\r\n", &[]);
        assert_eq!(config.log.level, LogLevel::Debug);
    }

    #[test]
    fn that_are_no_text_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flowgate.toml");
        fs::write(&path, b"[log]\nlevel = \"\xff\"\n").unwrap();
        let report = load(Input::File(&path), []).unwrap_err();
        assert!(report.to_string().contains("it is not UTF-8 at line 2, column 10"), "{report}");
    }

    #[test]
    fn of_a_missing_main_file_say_so() {
        let report = load(Input::File(Path::new("/no/such/flowgate.toml")), []).unwrap_err();
        assert_eq!(report.to_string(), "error: cannot read /no/such/flowgate.toml: there is no such file\n");
    }
}

mod written {
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
    fn out_and_read_back_it_is_the_same() {
        check_round_trip("");
        check_round_trip(DOCUMENTED_DEFAULTS);
        check_round_trip(DOCUMENTED_RULES);
        check_round_trip(
            "[store]\ntype = \"redis\"\ncluster = [\"10.0.0.1:1\", \"rediss://[::1]:2\"]\nlocal_share = \"1/3\"",
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
    fn rules_keep_what_they_ask_for() {
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
}

#[test]
fn all_of_several_must_hold_of_a_field() {
    let text = r#"rule = [{ name = "r", limits = ["5/60s"], when = { n = { all = ["*", ["1..9", "20"], "!7", { ne = "~x" }] } } }]"#;
    let config = Config::from_toml(text).unwrap();
    let engine = Engine::new(&config.policy, MemoryStore::default()).unwrap();
    let matched = |value| engine.decide(Op::Peek, &Request::new().field("n", value), Time::from_secs(1)).matched;
    assert!(matched("1") && matched("20") && !matched("7") && !matched("10") && !matched(""));
    assert_eq!(config.policy.rules[0].when.len(), 4);
    let again = Config::from_toml(&config.to_toml()).unwrap();
    assert_eq!(again.to_toml(), config.to_toml());
    assert!(config.to_toml().contains(r#"when = { n = { all = ["*", ["1..9", "20"], "!7", { ne = "~x" }] } }"#));
}
