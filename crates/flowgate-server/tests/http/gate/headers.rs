//! The headers of a reply.

use sfv::{BareItem, List, ListEntry, Parser};

use super::*;

#[test]
fn headers_follow_the_configuration() {
    for (families, ratelimit, x_ratelimit) in
        [("[]", false, false), ("['ratelimit']", true, false), ("['x-ratelimit']", false, true)]
    {
        let server =
            Running::start(&format!("gate = {{ headers = {families} }}\nrule = [{{ name = 'a', limits = ['1/s'] }}]"));
        let reply = server.gate(&[]);
        let has = |names: &[&str]| names.iter().map(|name| reply.header(name).is_some()).collect::<Vec<_>>();
        assert_eq!(has(&["ratelimit", "ratelimit-policy"]), [ratelimit; 2], "{families}");
        assert_eq!(
            has(&["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]),
            [x_ratelimit; 3],
            "{families}"
        );
    }
}

/// The one member of a list of structured fields: a string and parameters.
#[track_caller]
fn structured(text: &str) -> (String, Vec<(String, i64)>) {
    let list = Parser::new(text).parse::<List>().unwrap();
    let [ListEntry::Item(item)] = list.as_slice() else { panic!("{text}") };
    let integer = |value: &BareItem| i64::from(value.as_integer().unwrap());
    let params = item.params.iter().map(|(key, value)| (key.as_str().to_owned(), integer(value))).collect();
    (item.bare_item.as_string().unwrap().as_str().to_owned(), params)
}

#[test]
fn the_fields_are_structured_and_agree_with_the_decision() {
    for limit in
        ["5/60s", "bucket 7/10s burst=3", "fixed 4/day tz=Asia/Shanghai", "approx 3/1500ms", "fixed 1/5s after=3/day"]
    {
        let server = Running::start(&format!("rule = [{{ name = 'a.b-c_9', limits = ['{limit}'] }}]"));
        for step in 0..12 {
            server.clock.advance(Span::from_millis(step * 137));
            let before = server.post("/v1/peek", r#"{"fields":{}}"#).json();
            let reply = server.gate(&[]);
            let after = server.post("/v1/peek", r#"{"fields":{},"cost":0}"#).json();
            let (name, policy) = structured(reply.header("ratelimit-policy").unwrap());
            let (same, left) = structured(reply.header("ratelimit").unwrap());
            assert_eq!((name.as_str(), same.as_str()), ("a.b-c_9", "a.b-c_9"));
            assert_eq!((policy[0].0.as_str(), left[0].0.as_str(), left[1].0.as_str()), ("q", "r", "t"));
            assert_eq!(left[0].1, after["remaining"].as_i64().unwrap(), "{limit}");
            let seconds = if reply.status == 200 { &after["reset_after"] } else { &before["retry_after"] };
            let seconds = (seconds.as_f64().unwrap().ceil() as i64).max(i64::from(reply.status != 200));
            assert_eq!(left[1].1, seconds, "{limit}");
            let retry_after = reply.header("retry-after").map(|text| text.parse::<i64>().unwrap());
            assert_eq!(retry_after, (reply.status != 200).then_some(seconds), "{limit}");
        }
    }
}

#[test]
fn retry_after_is_never_early() {
    for limit in
        ["3/7s", "bucket 3/700ms burst=2", "fixed 2/hour tz=Asia/Kathmandu", "approx 5/11s", "sliding 2000/13s"]
    {
        let server = Running::start(&format!("rule = [{{ name = 'all', limits = ['{limit}'] }}]"));
        for step in 1..40 {
            server.clock.advance(Span::from_nanos(step * 123_456_789));
            let reply = server.gate(&[]);
            if let Some(wait) = reply.header("retry-after") {
                server.clock.advance(Span::from_secs(wait.parse().unwrap()));
                assert_eq!(server.gate(&[]).status, 200, "{limit}: {wait} s are too short");
            }
            server.post("/v1/record", r#"{"fields":{},"cost":2}"#);
        }
    }
}
