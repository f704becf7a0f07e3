//! The settings that only a restart changes: they are read once, at the start.

use flowgate_engine::config::{Auth, Config, Console, Gate, Listen, Log, Server, Store};

/// The keys whose values differ, except rules, lists and the files of certificates.
// Every struct is destructured by name, so that the compiler asks about a new key.
pub(crate) fn changed(old: &Config, new: &Config) -> Vec<&'static str> {
    let Config { listen, server, auth, tls, log, store, gate, console, koala: _, koala_file: _, lists: _, policy: _ } =
        new;
    let mut same = vec![("[tls]", tls.is_some() == old.tls.is_some())];

    let Listen { http, resp, grpc } = listen;
    same.push(("listen.http", *http == old.listen.http));
    same.push(("listen.resp", *resp == old.listen.resp));
    same.push(("listen.grpc", *grpc == old.listen.grpc));

    let Server { max_connections, idle_timeout, request_timeout, max_request, drain, threads } = server;
    same.push(("server.max_connections", *max_connections == old.server.max_connections));
    same.push(("server.idle_timeout", *idle_timeout == old.server.idle_timeout));
    same.push(("server.request_timeout", *request_timeout == old.server.request_timeout));
    same.push(("server.max_request", *max_request == old.server.max_request));
    same.push(("server.drain", *drain == old.server.drain));
    same.push(("server.threads", *threads == old.server.threads));

    let Auth { resp_password, api_token, admin_token, view_token, insecure } = auth;
    same.push(("auth.resp_password", *resp_password == old.auth.resp_password));
    same.push(("auth.api_token", *api_token == old.auth.api_token));
    same.push(("auth.admin_token", *admin_token == old.auth.admin_token));
    same.push(("auth.view_token", *view_token == old.auth.view_token));
    same.push(("auth.insecure", *insecure == old.auth.insecure));

    let Log { format, level, denials } = log;
    same.push(("log.format", *format == old.log.format));
    same.push(("log.level", *level == old.log.level));
    same.push(("log.denials", *denials == old.log.denials));

    let Store { max_memory, when_full, redis, durable } = store;
    same.push(("the durable keys of [store]", *durable == old.store.durable));
    same.push(("store.max_memory", *max_memory == old.store.max_memory));
    same.push(("store.when_full", *when_full == old.store.when_full));
    same.push(("store.type", redis.is_some() == old.store.redis.is_some()));
    let both_redis = redis.is_some() && old.store.redis.is_some();
    same.push(("the Redis keys of [store]", !both_redis || *redis == old.store.redis));

    // The spelling of paths changes with the rules.
    let Gate { trusted_proxies, ipv6_prefix, headers, deny_status, path_ignores: _ } = gate;
    same.push(("gate.trusted_proxies", *trusted_proxies == old.gate.trusted_proxies));
    same.push(("gate.ipv6_prefix", *ipv6_prefix == old.gate.ipv6_prefix));
    same.push(("gate.headers", *headers == old.gate.headers));
    same.push(("gate.deny_status", *deny_status == old.gate.deny_status));

    let Console { enabled, history_rules, sample, sample_for, sample_memory, session } = console;
    same.push(("console.enabled", *enabled == old.console.enabled));
    same.push(("console.history_rules", *history_rules == old.console.history_rules));
    same.push(("console.sample", *sample == old.console.sample));
    same.push(("console.sample_for", *sample_for == old.console.sample_for));
    same.push(("console.sample_memory", *sample_memory == old.console.sample_memory));
    same.push(("console.session", *session == old.console.session));

    same.into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(toml: &str, expected: &[&str]) {
        let new = Config::from_toml(toml).unwrap();
        assert_eq!(changed(&Config::default(), &new), expected);
        assert_eq!(changed(&new, &Config::default()), expected);
    }

    #[test]
    fn names_the_keys_that_wait_for_a_restart() {
        check("", &[]);
        check("[lists]\nvip = { values = [\"7\"] }\n[[rule]]\nname = \"a\"\nlimits = [\"5/60s\"]", &[]);
        check("[listen]\nresp = \"off\"\n[server]\nthreads = 2", &["listen.resp", "server.threads"]);
        check("[tls]\ncert = \"/dev/null\"\nkey = \"/dev/null\"", &["[tls]"]);
        check("[auth]\napi_token = \"s3cret\"", &["auth.api_token"]);
        check("[store]\ntype = \"redis\"\nmax_memory = \"2GB\"", &["store.max_memory", "store.type"]);
        check("[log]\nlevel = \"debug\"\n[gate]\ndeny_status = 403", &["log.level", "gate.deny_status"]);
    }

    #[test]
    fn a_secret_is_compared_without_being_shown() {
        let config = |secret| Config::from_toml(&format!("[auth]\nresp_password = \"{secret}\"")).unwrap();
        assert_eq!(changed(&config("one"), &config("two")), ["auth.resp_password"]);
        assert_eq!(changed(&config("one"), &config("one")), [""; 0]);
    }
}
