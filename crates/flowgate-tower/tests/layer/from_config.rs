//! A layer from a file of rules does what the gate does with the same file.

use super::*;

fn from_toml(text: &str) -> Result<RateLimit, flowgate_tower::Error> {
    RateLimit::from_config(&Config::from_toml(text).unwrap())
}

fn from_client(peer: &str, uri: &str) -> http::request::Builder {
    Request::builder().uri(uri).extension(peer.parse::<SocketAddr>().unwrap())
}

#[tokio::test]
async fn the_settings_of_the_gate_are_in_force() {
    let limit = from_toml(
        r#"
        gate = { deny_status = 418, headers = ["x-ratelimit"], path_ignores = [], trusted_proxies = ["10.0.0.0/8"] }
        rule = [{ name = "login", when = { path = "/login" }, by = ["ip"], limits = ["1/60s"] }]
        "#,
    );
    let service = limit.unwrap().layer(echo(&Arc::default()));
    let status = async |peer: &str, uri: &str, client: &str| {
        let request = from_client(peer, uri).header("x-forwarded-for", client).body(()).unwrap();
        ask(&service, request).await
    };
    assert_eq!(status("10.0.0.1:9", "/login", "1.1.1.1").await.status(), 200);
    let denied = status("10.0.0.1:9", "/login", "1.1.1.1").await;
    assert_eq!(denied.status(), 418);
    assert_eq!(headers(&denied, LEFT), "- | - | 1 | 0 | 60 | 60");
    assert_eq!(status("10.0.0.1:9", "/login", "1.1.1.2").await.status(), 200, "another client of a trusted proxy");
    assert_eq!(status("10.0.0.1:9", "/Login", "1.1.1.1").await.status(), 200, "another path by path_ignores");
    assert_eq!(status("127.0.0.1:9", "/login", "1.1.1.3").await.status(), 200, "no trusted proxy: counted itself");
    assert_eq!(status("127.0.0.1:9", "/login", "1.1.1.4").await.status(), 418);
}

#[tokio::test]
async fn rules_see_the_fields_of_the_gate() {
    let cases = [
        ("method", "POST", Request::post("/"), Request::get("/")),
        ("host", "a.example", Request::get("/").header("host", "A.Example:80"), Request::get("/").header("host", "b")),
        ("path", "/a/*", Request::get("/A/b"), Request::get("/b")),
        ("header.x-plan", "free", Request::get("/").header("X-Plan", "free"), Request::get("/")),
        ("ua", "~bot", Request::get("/").header("user-agent", "bot"), Request::get("/").header("user-agent", "x")),
        ("query.tok", "a b", Request::get("/?tok=a+b"), Request::get("/?tok=c")),
        ("query.tok", "a b", Request::get("/?tok=a&tok=b"), Request::get("/")),
    ];
    for (field, value, denied, passing) in cases {
        let rules = format!(r#"rule = [{{ name = "no", when = {{ "{field}" = "{value}" }}, action = "deny" }}]"#);
        let service = from_toml(&rules).unwrap().layer(echo(&Arc::default()));
        assert_eq!(ask(&service, denied.body(()).unwrap()).await.status(), 403, "{field}");
        assert_eq!(ask(&service, passing.body(()).unwrap()).await.status(), 200, "{field}");
    }
}

#[test]
fn fields_that_only_the_service_knows_are_asked_for() {
    let rules = r#"rule = [{ name = "user", by = ["user", "ip"], limits = ["1/60s"] }]"#;
    let limit = from_toml(rules).unwrap();
    assert_eq!(limit.missing_fields(), ["user"]);
    assert_eq!(limit.field("user", |_| Some(7_u64)).missing_fields(), [""; 0]);
}

#[test]
fn counters_in_redis_are_refused() {
    let error = from_toml("store = { type = 'redis', url = 'redis://localhost' }").unwrap_err();
    assert!(error.to_string().starts_with("store.type = \"redis\": the layer counts in its own process."), "{error}");
}

#[tokio::test]
async fn a_file_names_its_mistakes_and_finds_its_lists() {
    let directory = std::env::temp_dir().join(format!("flowgate-tower-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("blocked.txt"), "6.6.6.6\n").unwrap();
    let file = directory.join("rules.toml");
    let write = |rules: &str| std::fs::write(&file, rules).unwrap();

    write(
        "lists = { bad = { file = 'blocked.txt' } }\nrule = [{ name = 'no', when = { ip = '@bad' }, action = 'deny' }]",
    );
    let service = RateLimit::from_config(&Config::from_file(&file).unwrap()).unwrap().layer(echo(&Arc::default()));
    let status = async |peer: &str| ask(&service, from_client(peer, "/").body(()).unwrap()).await.status().as_u16();
    assert_eq!((status("6.6.6.6:1").await, status("7.7.7.7:1").await), (403, 200));

    write("rules = []");
    let mistakes = Config::from_file(&file).unwrap_err().to_string();
    assert!(mistakes.contains("rules.toml:1:1"), "{mistakes}");
    let gone = Config::from_file(directory.join("gone.toml")).unwrap_err().to_string();
    assert!(gone.contains("gone.toml"), "{gone}");
    std::fs::remove_dir_all(&directory).unwrap();
}
