//! What `flowgate serve` says when it is ready.

use std::path::Path;

use flowgate_engine::config::{Config, Door, LogFormat, RedisServers, Store};
use flowgate_server::Server;

/// Says what is in force: to people line by line, to a machine as one event.
pub(super) fn announce(server: &Server, file: Option<&Path>, config: &Config) {
    let version = env!("FLOWGATE_VERSION");
    let origin = file.map_or_else(|| "the defaults".to_owned(), |file| file.display().to_string());
    let (rules, lists) = (config.policy.rules.len(), config.policy.lists.len());
    let koala = config.koala_file.as_ref().map(|file| file.len());
    let store = describe_store(&config.store);
    let tls = config.tls.is_some();
    let http = url(if tls { "https" } else { "http" }, server.http_door());
    let resp = url(if tls { "rediss" } else { "redis" }, server.resp_door());
    if config.log.format == LogFormat::Json {
        tracing::info!(version, config = origin, rules, lists, koala, store, http, resp, "serving");
        return;
    }
    eprintln!("flowgate {version}");
    eprintln!("  config  {origin}");
    eprintln!("  rules   {rules}, lists {lists}");
    if let (Some(rules), Some(path)) = (koala, &config.koala.rules) {
        eprintln!("  koala   {rules} rules of {}", path.display());
    }
    eprintln!("  store   {store}");
    eprintln!("  http    {http}");
    eprintln!("  resp    {resp}");
    if let Some(command) = try_it(server, tls) {
        eprintln!("try: {command}");
    }
}

fn url(scheme: &str, door: Option<&Door>) -> String {
    match door {
        None | Some(Door::Off) => "off".to_owned(),
        Some(Door::Tcp(address)) => format!("{scheme}://{address}"),
        // No TLS there, and no scheme that everybody knows.
        Some(door @ Door::Unix(_)) => door.to_string(),
    }
}

/// A command that shows that the server answers.
fn try_it(server: &Server, tls: bool) -> Option<String> {
    let decide = "FG.LIMIT user:42:reply 5/60s";
    match (server.resp_door(), server.http_door()) {
        (Some(Door::Tcp(address)), _) => {
            let tls = if tls { "--tls " } else { "" };
            Some(format!("redis-cli {tls}-h {} -p {} {decide}", address.ip(), address.port()))
        }
        (Some(Door::Unix(path)), _) => Some(format!("redis-cli -s {} {decide}", path.display())),
        (_, Some(Door::Tcp(address))) => {
            let scheme = if tls { "https" } else { "http" };
            Some(format!("curl {scheme}://{address}/healthz"))
        }
        (_, Some(Door::Unix(path))) => Some(format!("curl --unix-socket {} http://localhost/healthz", path.display())),
        _ => None,
    }
}

/// Where counters live; an address is shown without its password.
fn describe_store(store: &Store) -> String {
    match store.redis.as_ref().map(|redis| &redis.servers) {
        None => format!("memory, at most {}", store.max_memory),
        Some(RedisServers::One(url)) => url.to_string(),
        Some(RedisServers::Cluster(urls)) => {
            let urls: Vec<String> = urls.iter().map(ToString::to_string).collect();
            format!("the cluster of {}", urls.join(", "))
        }
    }
}
