//! Secrets: where they come from, and that they never show.

use super::*;

#[test]
fn secrets_come_from_a_file_without_the_line_end() {
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
fn a_secret_of_a_variable_replaces_the_file_of_a_secret() {
    let text = "[auth]\napi_token_file = \"/no/such/file\"";
    let config = config(text, &[("FLOWGATE_AUTH__API_TOKEN", "s3cret")]);
    assert_eq!(config.auth.api_token.unwrap().expose(), "s3cret");
}

#[test]
fn secrets_never_show() {
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
    assert!(toml.contains("admin_token = \"***\"") && toml.contains("url = \"redis://user:***@10.0.0.1\""), "{toml}");
    let wrong = from_text(&format!("{text}\ntimeout = 5"), &[]).unwrap_err();
    assert!(!format!("{wrong:?}").contains("s3cret"), "{wrong:?}");
    // What is hidden cannot be taken for the secret itself.
    assert_eq!(mistake(&toml, &[]), "this secret is hidden");
}

#[test]
fn secrets_on_lines_with_wrong_syntax_never_show() {
    for line in [
        "[auth] api_token = \"s3cret\"",
        "[auth] \"s3cret\"",
        "[auth]api_token: 's3cret'",
        "[auth",
        "[[auth]] resp_password s3cret",
        "url: \"redis://u:s3cret@h\"",
        "url: redis://u:x=s3cret@h",
        "store: { url: \"redis://u:s3cret@h\" }",
        "auth: { api_token: \"s3cret\" }",
        "\"redis://u:s3cret@h\",",
        "[store] url = \"redis://u:s3cret@h\"",
        "[store] url: redis://h?password=s3cret",
    ] {
        // The line is shown: the mistake is in it, or right before it.
        for text in
            [format!("{line}\n"), format!("limits = [\n{line}\n"), format!("{line}\nadmin_token = \"s3cret\"\n")]
        {
            let wrong = from_text(&text, &[]).unwrap_err();
            assert!(!format!("{wrong:?}{wrong}").contains("s3cret"), "{text}: {wrong}");
            let shown = flowgate_engine::config::hide_secrets(&text);
            assert!(!shown.contains("s3cret"), "{text}: {shown}");
        }
    }
}

/// In quadratic time each of these lines would take minutes.
#[test]
fn a_long_line_with_wrong_syntax_is_searched_in_linear_time() {
    let bytes = 1 << 18;
    for part in ["a=", "a:", "\"@a\" ", "\"\\\"", "'", "[", "{", "x=[", "# ", "[auth] ", "u@", "   =", "\\\\\""] {
        let started = std::time::Instant::now();
        let text = format!("x = {}\n", part.repeat(bytes / part.len()));
        assert!(from_text(&text, &[]).is_err(), "{part}");
        flowgate_engine::config::hide_secrets(&text);
        assert!(started.elapsed().as_secs() < 20, "{part}: {:?}", started.elapsed());
    }
}

#[test]
fn passwords_of_sentinels_and_of_their_servers_never_show() {
    let text = "
        [store]
        type = \"redis\"
        sentinel = [\"10.0.0.5:26379\"]
        master = \"mymaster\"
        sentinel_username = \"sam\"
        sentinel_password = \"s3cret-1\"";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("password");
    fs::write(&path, "s3cret-2\n").unwrap();
    let config = config(text, &[("FLOWGATE_STORE__PASSWORD_FILE", path.to_str().unwrap())]);
    let redis = config.store.redis.as_ref().unwrap();
    let RedisServers::Sentinel(sentinel) = &redis.servers else { panic!("{redis:?}") };
    assert_eq!(sentinel.sentinel_login.username.as_deref(), Some("sam"));
    assert_eq!(sentinel.sentinel_login.password.as_ref().unwrap().expose(), "s3cret-1");
    assert_eq!(sentinel.login.password.as_ref().unwrap().expose(), "s3cret-2");
    assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
    let toml = config.to_toml();
    assert!(!toml.contains("s3cret") && toml.contains("sentinel_password = \"***\""), "{toml}");
    assert_eq!(mistake(&toml, &[]), "this secret is hidden");
    let shown = flowgate_engine::config::hide_secrets(text);
    assert!(!shown.contains("s3cret") && shown.contains("sentinel_username = \"sam\""), "{shown}");
    assert_eq!(flowgate_engine::config::restore_secrets(&shown, text), text);
}

#[test]
fn sentinels_are_bounded() {
    let text = |number: usize| {
        let addresses = vec!["10.0.0.5:26379"; number];
        format!("[store]\ntype = \"redis\"\nmaster = \"m\"\nsentinel = {addresses:?}")
    };
    assert!(from_text(&text(32), &[]).is_ok());
    assert_eq!(mistake(&text(33), &[]), "expected at most 32 sentinels, found 33");
}

#[test]
fn listeners_beyond_loopback_need_secrets() {
    let public = "[listen]\nhttp = \"0.0.0.0:7070\"\nresp = \"0.0.0.0:7071\"\ngrpc = \"0.0.0.0:7072\"";
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
