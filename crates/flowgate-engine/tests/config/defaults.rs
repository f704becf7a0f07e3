//! The defaults are the documented ones.

use super::*;

#[test]
fn an_empty_file_has_the_documented_defaults() {
    let Config { listen, server, auth, tls, log, store, gate, console, koala, koala_file, lists, policy } =
        config("", &[]);
    assert_eq!(listen.http, ListenAddress::Tcp("127.0.0.1:7070".parse().unwrap()));
    assert_eq!(listen.resp, ListenAddress::Tcp("127.0.0.1:7071".parse().unwrap()));
    assert_eq!(listen.grpc, ListenAddress::Off);
    assert_eq!((server.max_connections, server.threads), (10_000, 0));
    assert_eq!(server.idle_timeout, Duration::from_secs(300));
    assert_eq!((server.request_timeout, server.drain), (Duration::from_secs(5), Duration::from_secs(10)));
    assert_eq!(server.max_request, ByteSize::new(1_000_000));
    assert!(auth.resp_password.is_none() && auth.api_token.is_none() && auth.admin_token.is_none());
    assert!(auth.view_token.is_none());
    assert!(!auth.insecure && tls.is_none());
    assert_eq!((log.format, log.level, log.denials), (LogFormat::Human, LogLevel::Info, Denials::Off));
    assert_eq!(store.max_memory, ByteSize::new(1_000_000_000));
    assert_eq!(store.when_full, WhenFull::Evict);
    assert!(store.redis.is_none());
    let proxies: Vec<_> = gate.trusted_proxies.iter().map(ToString::to_string).collect();
    assert_eq!(proxies, ["127.0.0.0/8", "::1"]);
    assert_eq!((gate.ipv6_prefix, gate.deny_status), (64, 429));
    assert_eq!(gate.headers, [HeaderFamily::RateLimit, HeaderFamily::XRateLimit]);
    assert!(console.enabled);
    assert_eq!((console.history_rules, console.sample), (300, Sampling::OnDemand));
    assert_eq!((console.sample_for, console.session), (Duration::from_secs(600), Duration::from_secs(8 * 3600)));
    assert_eq!(console.sample_memory, ByteSize::new(16_000_000));
    assert_eq!((koala.rules, koala.tz.as_str()), (None, "Asia/Shanghai"));
    assert!(koala_file.is_none());
    assert!(lists.is_empty() && policy.rules.is_empty() && policy.lists.is_empty());
}

#[test]
fn defaults_that_are_written_out_change_nothing() {
    assert_eq!(config(DOCUMENTED_DEFAULTS, &[]).to_toml(), config("", &[]).to_toml());
}

#[test]
fn no_file_is_an_empty_file() {
    let loaded = load(Input::Defaults, []).unwrap();
    assert_eq!(loaded.config.to_toml(), config("", &[]).to_toml());
    assert!(loaded.origins.is_empty() && loaded.warnings.is_empty());
}

#[test]
fn redis_has_the_documented_defaults() {
    let redis = config("[store]\ntype = \"redis\"", &[]).store.redis.unwrap();
    let RedisServers::One(url) = redis.servers else { panic!("a cluster") };
    assert_eq!(url.expose(), "redis://127.0.0.1:6379/0");
    assert_eq!((redis.prefix.as_str(), redis.timeout), ("fg:", Duration::from_millis(50)));
    assert_eq!((redis.on_failure, redis.local_share, redis.deny_cache), (OnFailure::Local, Share::ALL, true));
    assert_eq!(redis.deny_cache_max, Duration::from_secs(1));
}
