//! Environment variables.

use super::*;

#[test]
fn variables_replace_values_of_files() {
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
fn variables_reach_every_key() {
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
fn variables_of_other_programs_are_ignored() {
    let kubernetes = [("FLOWGATE_PORT", "tcp://10.0.0.1:7070"), ("FLOWGATE_SERVICE_HOST", "10.0.0.1")];
    assert!(from_text("", &kubernetes).is_ok());
    assert!(from_text("", &[("FLOWGATE_CONFIG", "/etc/flowgate.toml"), ("FLOWGATED", "1")]).is_ok());
    assert_eq!(mistake("", &[("FLOWGATE_PROT", "1")]), "unknown environment variable FLOWGATE_PROT");
}
