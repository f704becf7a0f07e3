//! Fields have the same names in logs as behind a gateway. Names that no line has are reported.

use crate::Trial;

const AGENTS: [&str; 3] = ["Mozilla/5.0", "SomeBot/1.0", "SomeBot/1.0"];

fn log() -> String {
    let line = |(second, agent): (usize, &&str)| {
        format!(
            "1.2.3.4 - - [17/May/2015:10:05:{second:02} +0000] \"GET /a?page={second}&q=x+y&q=z HTTP/1.1\" 200 5 \
             \"http://from/\" \"{agent}\"\n"
        )
    };
    AGENTS.iter().enumerate().map(line).collect()
}

fn denied(policy: &str) -> u64 {
    let summary = Trial::new(policy, log().as_bytes()).summary();
    assert_eq!(summary.warnings(), [""; 0], "{policy}");
    summary.outcome.denied
}

#[test]
fn logs_have_the_fields_of_a_gateway() {
    for (condition, expected) in [
        ("ua = '~Bot'", 2),
        ("'header.user-agent' = '~Bot'", 2),
        ("'header.User-Agent' = '~Bot'", 2),
        ("'header.referer' = 'http://from/'", 3),
        ("'query.page' = '1'", 1),
        ("'query.q' = 'x y'", 3),
        ("'query.q' = 'z'", 0),
        ("method = 'GET', path = '/a', status = '200', ip = '1.2.3.4'", 3),
    ] {
        let policy = format!("rule = [{{ name = 'r', when = {{ {condition} }}, action = 'deny' }}]");
        assert_eq!(denied(&policy), expected, "{condition}");
    }
    assert_eq!(denied("rule = [{ name = 'r', by = ['ua'], limits = ['1/min'] }]"), 1);
}

/// A decision line shows every field of the log, and the parameters that rules look at.
#[test]
fn decision_lines_have_the_gateways_names() {
    let policy = "rule = [{ name = 'r', by = ['ua', 'query.page'], limits = ['1/min'] }]";
    let line = Trial::new(policy, log().as_bytes()).decisions();
    let expected = r#"{"ts":"17/May/2015:10:05:00 +0000","line":1,"fields":{"ip":"1.2.3.4","method":"GET","query.page":"0","path":"/a","status":"200","header.referer":"http://from/","header.user-agent":"Mozilla/5.0"},"#;
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn the_website_example_limits_robots_in_a_replay() {
    let website = include_str!("../../../../examples/website.toml");
    let log = log().repeat(10);
    for policy in [website.to_owned(), website.replace("\"header.user-agent\"", "ua")] {
        let summary = Trial::new(&policy, log.as_bytes()).summary();
        let robots = &summary.outcome.rules[0];
        assert_eq!((robots.name.as_str(), robots.seen, robots.denied), ("robots", 20, 10));
        assert_eq!(summary.warnings().len(), 0, "{:?}", summary.warnings());
        assert!(summary.text().contains("rule \"downloads\" matched no request, though lines have its fields\n"));
    }
}

#[test]
fn fields_that_no_line_has_are_warned_of_with_the_nearest() {
    let json = br#"{"ts":1,"fields":{"user":"7","act":"reply"}}"#;
    let common = b"1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET /a HTTP/1.1\" 200 5\n";
    let log = log();
    let rule = |when: &str| format!("rule = [{{ name = 'r', when = {{ {when} }}, limits = ['1/min'] }}]");
    for (trace, when, warning) in [
        (
            &json[..],
            "usr = '*'",
            "no line has the field \"usr\", so rule \"r\" matched no request; did you mean \"user\"?",
        ),
        (
            json,
            "x-plan = '*'",
            "no line has the field \"x-plan\", so rule \"r\" matched no request; lines have user, act",
        ),
        (
            log.as_bytes(),
            "agent = '~Bot'",
            "a log in the combined format cannot have the field \"agent\", so rule \"r\" matched no request; did you mean \
             \"header.user-agent\"?",
        ),
        (
            log.as_bytes(),
            "'header.x-api-key' = '*'",
            "a log in the combined format cannot have the field \"header.x-api-key\", so rule \"r\" matched no request; lines \
             can have ip, user, method, path, status, header.referer, header.user-agent",
        ),
        (
            log.as_bytes(),
            "account = '!*'",
            "a log in the combined format cannot have the field \"account\", so this replay cannot show what rule \"r\" does \
             where requests have it; did you mean \"user\"?",
        ),
        (
            log.as_bytes(),
            "user = '*'",
            "no line has the field \"user\", so rule \"r\" matched no request; lines can have ip, user, method, path, status, \
             header.referer, header.user-agent",
        ),
        (
            log.as_bytes(),
            "host = 'a', 'query.p' = '*'",
            "no line has the field \"host\", so rule \"r\" matched no request; lines can have ip, user, method, path, status, \
             header.referer, header.user-agent",
        ),
        (
            common,
            "ua = '~Bot'",
            "a log in the common format cannot have the field \"header.user-agent\", so rule \"r\" matched no request; lines \
             can have ip, user, method, path, status",
        ),
    ] {
        let policy = rule(when);
        let summary = Trial::new(&policy, trace).summary();
        assert_eq!(summary.warnings().first().map(String::as_str), Some(warning), "{when}");
        assert!(!summary.text().contains("though lines have its fields"));
    }
    let both =
        "rule = [{ name = 'a', by = ['usr'], limits = ['1/s'] }, { name = 'b', by = ['usr'], limits = ['2/s'] }]";
    let [warning] = &Trial::new(both, json).compare(&rule("usr = '7'")).summary().warnings()[..] else { panic!() };
    assert!(warning.contains("so rules \"a\", \"b\", \"r\" matched no request"), "{warning}");
}
