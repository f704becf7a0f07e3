//! The settings that only a restart changes: they are read once, at the start.

use flowgate_engine::config::{Auth, Config, Console, Gate, Listen, Log, Server, Store};

/// The keys whose values differ, except rules, lists and the files of certificates.
pub(crate) fn changed(old: &Config, new: &Config) -> Vec<&'static str> {
    let Config { listen, server, auth, tls, log, store, gate, console, koala: _, koala_file: _, lists: _, policy: _ } =
        new;
    let mut same = vec![("[tls]", tls.is_some() == old.tls.is_some())];
    // Every struct is destructured by name, so that the compiler asks about a new key.
    macro_rules! compare {
        ($section:ident is $type:ident { $($key:ident),* } $(without $ignored:ident)?) => {
            let $type { $($key,)* $($ignored: _)? } = $section;
            $(same.push((concat!(stringify!($section), ".", stringify!($key)), *$key == old.$section.$key));)*
        };
    }
    compare!(listen is Listen { http, resp, grpc });
    compare!(server is Server { max_connections, idle_timeout, request_timeout, max_request, drain, threads });
    compare!(auth is Auth { resp_password, api_token, admin_token, view_token, insecure });
    compare!(log is Log { format, level, denials });

    let Store { max_memory, when_full, redis, durable } = store;
    same.push(("the durable keys of [store]", *durable == old.store.durable));
    same.push(("store.max_memory", *max_memory == old.store.max_memory));
    same.push(("store.when_full", *when_full == old.store.when_full));
    same.push(("store.type", redis.is_some() == old.store.redis.is_some()));
    let both_redis = redis.is_some() && old.store.redis.is_some();
    same.push(("the Redis keys of [store]", !both_redis || *redis == old.store.redis));

    compare!(gate is Gate { trusted_proxies, ipv6_prefix, headers, deny_status } without path_ignores);
    compare!(console is Console { enabled, history_rules, sample, sample_for, sample_memory, session });
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
