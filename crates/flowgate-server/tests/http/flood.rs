//! The login attack: use up the guesses for some accounts, make the server forget that by a crowd of made-up account
//! names, and guess on.

use std::fmt::Write as _;

use flowgate::Span;
use serde_json::json;

use super::Running;

const ACCOUNTS: usize = 20;

/// 1 MB holds some 27,000 counters.
const MADE_UP: usize = 45_000;

/// Names in one call, the most that one may have.
const BATCH: usize = 1000;

fn login(account: &str) -> String {
    json!({"fields": {"act": "login", "account": account}}).to_string()
}

fn sample(metrics: &str, name: &str) -> u64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in\n{metrics}")).parse().unwrap()
}

#[test]
fn a_crowd_of_made_up_accounts_frees_no_account() {
    let server = Running::start(
        r#"
        [store]
        max_memory = "1MB"

        [[rule]]
        name   = "login"
        when   = { act = "login", account = "*" }
        by     = ["account"]
        limits = ["10/day"]
        "#,
    );
    let mut client = server.connect();
    client.described = false;
    let json = [("content-type", "application/json")];
    let mut guess = |account: usize| {
        let reply = client.call("POST", "/v1/take", &json, &login(&format!("account-{account}")));
        reply.json()["allowed"] == true
    };
    for account in 0..ACCOUNTS {
        assert_eq!((0..11).filter(|_| guess(account)).count(), 10);
    }
    server.clock.advance(Span::from_secs(1));
    let mut crowd = server.connect();
    crowd.described = false;
    for first in (0..MADE_UP).step_by(BATCH) {
        let mut body = String::from("[");
        for number in first..first + BATCH {
            write!(body, "{}{}", if number > first { "," } else { "" }, login(&format!("made-up-{number}"))).unwrap();
        }
        assert_eq!(crowd.call("POST", "/v1/batch", &json, &(body + "]")).status, 200);
    }
    let free = (0..ACCOUNTS).filter(|&account| guess(account)).count();
    assert_eq!(free, 0, "accounts that can be guessed at again");
    let metrics = server.get("/metrics").body;
    assert!(sample(&metrics, "flowgate_memory_evicted_total") > 10_000, "the store is not full:\n{metrics}");
    assert_eq!(sample(&metrics, "flowgate_memory_evicted_in_use_total"), 0);
    assert_eq!(sample(&metrics, "flowgate_memory_bans_refused_total"), 0);
}
