//! The announcement of `flowgate serve` once it is ready.

use std::io::{self, IsTerminal};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use flowgate_engine::config::{Config, Durability, Durable, Listen, ListenAddress, LogFormat, RedisServers, Store};
use flowgate_koala::KoalaFile;
use flowgate_server::Server;

use super::admin_token::MadeToken;
use crate::state_directory;

/// Announces what is in force: to people in lines, to machines as one event.
pub(super) fn announce(server: &Server, file: Option<&Path>, config: &Config, made: Option<&MadeToken>) {
    let version = env!("FLOWGATE_VERSION");
    let origin = file.map_or_else(|| "the defaults".to_owned(), |file| file.display().to_string());
    let (rules, lists) = (config.policy.rules.len(), config.policy.lists.len());
    let koala = KoalaFile::from_config(config).map(KoalaFile::number_of_rules);
    let store = describe_store(&config.store, state_directory::find().as_deref());
    let tls = config.tls.is_some();
    let http = url(if tls { "https" } else { "http" }, &server.listening.http);
    let resp = url(if tls { "rediss" } else { "redis" }, &server.listening.resp);
    let grpc = url(if tls { "https" } else { "http" }, &server.listening.grpc);
    if config.log.format == LogFormat::Json {
        let admin_token_file = made.map(|made| made.file.display().to_string());
        tracing::info!(
            version,
            config = origin,
            rules,
            lists,
            koala,
            store,
            http,
            resp,
            grpc,
            admin_token_file,
            "serving"
        );
        return;
    }
    eprintln!("flowgate {version}");
    eprintln!("  config  {origin}");
    eprintln!("  rules   {rules}, lists {lists}");
    if let (Some(rules), Some(path)) = (koala, &config.koala.rules) {
        eprintln!("  koala   {rules} rules of {}", path.display());
    }
    eprintln!("  store   {store}");
    if let Some(made) = made {
        eprintln!("  admin   by the token in {}", made.file.display());
    }
    eprintln!("  http    {http}");
    eprintln!("  resp    {resp}");
    if server.listening.grpc != ListenAddress::Off {
        eprintln!("  grpc    {grpc}");
    }
    // The log must not hold the token, so only a terminal gets the link.
    if io::stderr().is_terminal()
        && let Some(link) = console_link(&server.listening.http, config, made)
    {
        eprintln!("  console {link}");
    }
    if let Some(command) = try_it(&server.listening, config) {
        eprintln!("try: {command}");
    }
}

fn url(scheme: &str, address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp(address) => format!("{scheme}://{address}"),
        other => other.to_string(),
    }
}

/// The address of the console. If the server has made its own token, the link logs in: a browser sends the part after
/// `#` to no server. A token of the configuration is not shown.
fn console_link(http: &ListenAddress, config: &Config, made: Option<&MadeToken>) -> Option<String> {
    let mut address = http.tcp()?;
    if !config.console.enabled {
        return None;
    }
    if address.ip().is_unspecified() {
        let local = if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        address.set_ip(local);
    }
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let login = made.map_or_else(String::new, |made| format!("#login={}", made.token.expose()));
    Some(format!("{scheme}://{address}/{login}"))
}

/// A command that shows that the server answers. Over TLS it names files that only its reader knows.
fn try_it(Listen { http, resp, .. }: &Listen, config: &Config) -> Option<String> {
    // An operator with Koala's rules has clients that ask over HTTP.
    if let (true, ListenAddress::Tcp(address), None) = (config.koala.rules.is_some(), http, &config.tls) {
        return Some(format!("curl 'http://{address}/rule/browse?act=ask&uid=42'"));
    }
    let decide = "FG.LIMIT user:42:reply 5/60s";
    let password = if config.auth.resp_password.is_some() { " --askpass" } else { "" };
    let (scheme, tls) = match &config.tls {
        None => ("http", ""),
        Some(tls) if tls.client_ca.is_none() => ("https", " --cacert CA.pem"),
        Some(_) => ("https", " --cacert CA.pem --cert CLIENT.pem --key CLIENT.key"),
    };
    match (resp, http) {
        (ListenAddress::Tcp(address), _) => {
            let (host, port) = (address.ip(), address.port());
            let tls = if tls.is_empty() { String::new() } else { format!(" --tls{tls}") };
            Some(format!("redis-cli{tls} -h {host} -p {port}{password} {decide}"))
        }
        (ListenAddress::Unix(path), _) => Some(format!("redis-cli -s {}{password} {decide}", path.display())),
        (_, ListenAddress::Tcp(address)) => Some(format!("curl{tls} {scheme}://{address}/healthz")),
        (_, ListenAddress::Unix(path)) => {
            Some(format!("curl --unix-socket {} http://localhost/healthz", path.display()))
        }
        _ => None,
    }
}

/// The place of the counters. An address is shown without its password. Durable counters are in `state` unless the
/// configuration names a directory.
fn describe_store(store: &Store, state: Option<&Path>) -> String {
    match store.redis.as_ref().map(|redis| &redis.servers) {
        None => format!("memory, at most {}{}", store.max_memory, describe_durable(&store.durable, state)),
        Some(RedisServers::One(url)) => url.to_string(),
        Some(RedisServers::Cluster(urls)) => {
            let urls: Vec<String> = urls.iter().map(ToString::to_string).collect();
            format!("the cluster of {}", urls.join(", "))
        }
        Some(RedisServers::Sentinel(sentinel)) => {
            let urls: Vec<String> = sentinel.sentinels.iter().map(ToString::to_string).collect();
            format!("the master {} of the sentinels {}", sentinel.master, urls.join(", "))
        }
    }
}

fn describe_durable(durable: &Durable, state: Option<&Path>) -> String {
    let directory = durable.dir.as_deref().or(state).unwrap_or(Path::new(""));
    match durable.mode {
        Durability::Off => String::new(),
        Durability::EverySec => format!(", durable (everysec) in {}", directory.display()),
        Durability::Always => format!(", durable (always) in {}", directory.display()),
    }
}

#[cfg(test)]
mod tests {
    use flowgate_engine::config::Secret;

    use super::*;

    #[track_caller]
    fn check(toml: &str, expected: &str) {
        let config = Config::from_toml(toml).unwrap();
        let command = try_it(&config.listen, &config);
        assert_eq!(command.unwrap(), expected);
    }

    #[test]
    fn the_link_to_the_console_logs_in_by_a_token_that_the_server_has_made() {
        let made = MadeToken { file: "admin-token".into(), token: Secret::new("0af3") };
        let link = |toml: &str, made| {
            let config = Config::from_toml(toml).unwrap();
            console_link(&config.listen.http, &config, made)
        };
        assert_eq!(link("", Some(&made)).as_deref(), Some("http://127.0.0.1:7070/#login=0af3"));
        assert_eq!(link("auth.admin_token = 'x'", None).as_deref(), Some("http://127.0.0.1:7070/"));
        let public = "listen.http = '0.0.0.0:80'\nauth.insecure = true";
        assert_eq!(link(public, Some(&made)).as_deref(), Some("http://127.0.0.1:80/#login=0af3"));
        let public = "listen.http = '[::]:80'\nauth.insecure = true";
        assert_eq!(link(public, None).as_deref(), Some("http://[::1]:80/"));
        assert_eq!(link("console.enabled = false", Some(&made)), None);
        assert_eq!(link("listen.http = 'unix:/run/http'", Some(&made)), None);
    }

    #[test]
    fn the_command_to_try_brings_what_the_server_asks_for() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("any.pem");
        std::fs::write(&file, "").unwrap();
        let file = file.display();
        let tls = format!("[tls]\ncert = '{file}'\nkey = '{file}'\n");
        let decide = "FG.LIMIT user:42:reply 5/60s";
        check("", &format!("redis-cli -h 127.0.0.1 -p 7071 {decide}"));
        let secret = "auth.resp_password = 'x'\n";
        check(secret, &format!("redis-cli -h 127.0.0.1 -p 7071 --askpass {decide}"));
        let socket = "listen.resp = 'unix:/run/resp'\n";
        check(&format!("{secret}{socket}"), &format!("redis-cli -s /run/resp --askpass {decide}"));
        check(&tls, &format!("redis-cli --tls --cacert CA.pem -h 127.0.0.1 -p 7071 {decide}"));
        let closed = "listen.resp = 'off'\n";
        check(closed, "curl http://127.0.0.1:7070/healthz");
        let mutual = format!("{closed}{tls}client_ca = '{file}'\n");
        let certificates = "--cacert CA.pem --cert CLIENT.pem --key CLIENT.key";
        check(&mutual, &format!("curl {certificates} https://127.0.0.1:7070/healthz"));
    }
}
