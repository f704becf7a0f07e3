//! Lines of each format: the fields that they give, or the mistake in them.

use flowgate_api::Operation;
use flowgate_replay::event::{Event, Format};

/// The content of a line, or the reason why it cannot be read.
fn read(format: Format, line: &str) -> String {
    let mut event = Event::default();
    if let Err(reason) = format.read(line, &mut event) {
        return reason.to_string();
    }
    let mut shown = format!("{:?}", event.time);
    if event.operation != Operation::Take {
        shown += &format!(" {:?}", event.operation);
    }
    if event.cost != 1 {
        shown += &format!(" cost={}", event.cost);
    }
    for (name, value) in event.request(line).fields() {
        shown += &format!(" {name}={value:?}");
    }
    shown
}

#[track_caller]
fn check(format: Format, rows: &[(&str, &str)]) {
    for (line, expected) in rows {
        assert_eq!(read(format, line), *expected, "{line}");
    }
}

#[test]
fn the_combined_log_format_is_read() {
    const AT: &str = "1431857103.000000000s";
    let row = |line: &str, expected: &str| check(Format::Combined, &[(line, &expected.replace("AT", AT))]);
    row(
        r#"83.149.9.216 - ann [17/May/2015:10:05:03 +0000] "GET /a/b.png?c=d HTTP/1.1" 200 203023 "http://x/" "Mozilla/5.0 (X)""#,
        r#"AT ip="83.149.9.216" user="ann" method="GET" path="/a/b.png" status="200" header.referer="http://x/" header.user-agent="Mozilla/5.0 (X)""#,
    );
    // Escaped quotes and backslashes; raw bytes as servers write them.
    row(
        r#"::1 - - [17/May/2015:18:05:03 +0800] "POST /\"x\" HTTP/2.0" 404 - "-" "a \"quoted\" \\ agent""#,
        r#"AT ip="::1" method="POST" path="/\"x\"" status="404" header.user-agent="a \"quoted\" \\ agent""#,
    );
    row(
        r#"2001:db8::7 - - [17/May/2015:10:05:03 +0000] "\x16\x03\x01" 400 226 "-" "-""#,
        r#"AT ip="2001:db8::7" status="400""#,
    );
    row(
        r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /caf\xc3\xa9\xff\x HTTP/1.0" 200 1 "" """#,
        r#"AT ip="1.2.3.4" method="GET" path="/café�ff\\x" status="200""#,
    );
    // A user with spaces and a bracket, a request without a version, a path with a space, a proxy's request.
    row(
        r#"1.2.3.4 - J. [R] Doe [17/May/2015:10:05:03 +0000] "GET /" 200 1 "-" "x""#,
        r#"AT ip="1.2.3.4" user="J. [R] Doe" method="GET" path="/" status="200" header.user-agent="x""#,
    );
    row(
        r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a b HTTP/1.1" - - "-" "x" 0.003 "10.0.0.1""#,
        r#"AT ip="1.2.3.4" method="GET" path="/a b" header.user-agent="x""#,
    );
    row(
        r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET http://example.com/a?b HTTP/1.1" 200 5 "-" "x""#,
        r#"AT ip="1.2.3.4" method="GET" path="/a" status="200" header.user-agent="x""#,
    );
    // Every path gets one spelling, as behind a gateway. A target that is not a path stays as it is.
    row(
        r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET //a/./%62/../c%20d?e HTTP/1.1" 200 5 "-" "x""#,
        r#"AT ip="1.2.3.4" method="GET" path="/a/c d" status="200" header.user-agent="x""#,
    );
    for target in ["/login", "/LOGIN", "/login/", "/login;x", "/login%20", "/\\x4cogin;x/?y", "/login#x", "/login?y#x"]
    {
        row(
            &format!(r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET {target} HTTP/1.1" 200 5 "-" "x""#),
            r#"AT ip="1.2.3.4" method="GET" path="/login" status="200" header.user-agent="x""#,
        );
    }
    row(
        r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "OPTIONS * HTTP/1.1" 200 5 "-" "x""#,
        r#"AT ip="1.2.3.4" method="OPTIONS" path="*" status="200" header.user-agent="x""#,
    );
    row(r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "-" 408 0 "-" "-""#, r#"AT ip="1.2.3.4" status="408""#);
    // A leap second is the first second of the next minute.
    check(
        Format::Combined,
        &[(
            r#"1.2.3.4 - - [31/Dec/2016:23:59:60 +0000] "GET / HTTP/1.1" 200 5 "-" "-""#,
            r#"1483228800.000000000s ip="1.2.3.4" method="GET" path="/" status="200""#,
        )],
    );
}

/// The first column of a log for several sites is the site, not the client.
#[test]
fn logs_with_virtual_hosts_are_read() {
    let line = |start: &str| format!(r#"{start} [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5 "-" "x""#);
    for (start, expected) in [
        // Apache's vhost_combined, and what nginx is told to write.
        ("www.example.com:80 1.2.3.4 - -", r#"ip="1.2.3.4" host="www.example.com""#),
        ("WWW.Example.com:443 2001:db8::7 - ann", r#"ip="2001:db8::7" host="www.example.com" user="ann""#),
        ("www.example.com 1.2.3.4 - J. Doe", r#"ip="1.2.3.4" host="www.example.com" user="J. Doe""#),
        ("localhost fe80::1%eth0 - -", r#"ip="fe80::1%eth0" host="localhost""#),
        ("192.0.2.1:80 1.2.3.4 - -", r#"ip="1.2.3.4" host="192.0.2.1""#),
        ("[2001:db8::1]:443 1.2.3.4 - -", r#"ip="1.2.3.4" host="[2001:db8::1]""#),
        ("www.example.com:80 client.example.net - -", r#"ip="client.example.net" host="www.example.com""#),
        ("- 1.2.3.4 - -", r#"ip="1.2.3.4""#),
        // These lines have no client.
        ("www.example.com:80 - -", r#"host="www.example.com""#),
        // Clients by name, with an identd answer, and with a port.
        ("client.example.net - -", r#"ip="client.example.net""#),
        ("client.example.net ann ann", r#"ip="client.example.net" user="ann""#),
        ("1.2.3.4 ann -", r#"ip="1.2.3.4""#),
        ("::1 ann -", r#"ip="::1""#),
        ("2001:db8::7:80 - -", r#"ip="2001:db8::7:80""#),
        ("1.2.3.4:51234 - -", r#"ip="1.2.3.4""#),
        ("[2001:db8::7]:51234 - ann", r#"ip="2001:db8::7" user="ann""#),
        ("1.2.3.4 5.6.7.8 -", r#"ip="1.2.3.4""#),
    ] {
        let expected =
            format!(r#"1431857103.000000000s {expected} method="GET" path="/" status="200" header.user-agent="x""#);
        check(Format::Combined, &[(&line(start), &expected)]);
    }
    let start = "www.example.com:80 1.2.3.4 -";
    check(Format::Combined, &[(&line(start), "column 30: expected a user, mostly -, and a time in brackets")]);
}

#[test]
fn odd_lines_of_access_logs() {
    let time = "expected a time such as 17/May/2015:10:05:03 +0000";
    check(
        Format::Combined,
        &[
            ("x", "column 1: expected an address"),
            (" ", "column 1: expected an address"),
            ("1.2.3.4 - ", "column 11: expected a user, mostly -, and a time in brackets"),
            ("1.2.3.4 - - x", "column 11: expected a user, mostly -, and a time in brackets"),
            ("1.2.3.4 - - [1", "column 14: expected a time in brackets"),
            (r#"1.2.3.4 - - [17/Mai/2015:10:05:03 +0000] "GET /" 200 5 "-" "-""#, &format!("column 14: {time}")),
            (r#"1.2.3.4 - - [32/May/2015:10:05:03 +0000] "GET /" 200 5 "-" "-""#, &format!("column 14: {time}")),
            (r#"1.2.3.4 - - [17/May/2015:10:05:03] "GET /" 200 5 "-" "-""#, &format!("column 14: {time}")),
            ("1.2.3.4 - - [17/May/2015:10:05:03 +0000]", "column 41: expected a space"),
            ("1.2.3.4 - - [17/May/2015:10:05:03 +0000] GET", "column 42: expected a request in quotes"),
            (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / \""#, "column 51: expected a closing quote"),
            (
                r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /" ok 5 "-" "-""#,
                "column 50: expected a status of three digits",
            ),
            (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /" 200 5x "-" "-""#, "column 54: expected a size or -"),
            (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /" 200 5"#, "column 55: expected a referrer in quotes"),
            (
                r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /" 200 5 "-""#,
                "column 59: expected a user agent in quotes",
            ),
        ],
    );
}

#[test]
fn the_common_log_format_is_read() {
    check(
        Format::Common,
        &[
            (
                r#"10.0.0.1 - - [17/May/2015:10:05:03 +0000] "HEAD /x HTTP/1.1" 301 -"#,
                r#"1431857103.000000000s ip="10.0.0.1" method="HEAD" path="/x" status="301""#,
            ),
            // Text after the last known field is ignored.
            (
                r#"10.0.0.1 - - [17/May/2015:10:05:03 +0000] "HEAD /x HTTP/1.1" 301 7 "ref" "ua"#,
                r#"1431857103.000000000s ip="10.0.0.1" method="HEAD" path="/x" status="301""#,
            ),
        ],
    );
}

#[test]
fn json_lines_are_read() {
    check(
        Format::Jsonl,
        &[
            (r#"{"ts":1700000000.25,"fields":{"user":"42"}}"#, r#"1700000000.250000000s user="42""#),
            (
                r#" { "op" : "refund" , "cost" : 0 , "fields" : { } , "ts" : "2023-11-14T22:13:20.25Z" } "#,
                "1700000000.250000000s Refund cost=0",
            ),
            (
                r#"{"ts":17e8,"fields":{"a\"\\\/\b\f\n\r\té":"é\u00e9\ud83d\ude00\u0000","n":-1.5e3,"t":true,"f":false}}"#,
                "1700000000.000000000s a\"\\/\u{8}\u{c}\n\r\té=\"éé😀\\0\" n=\"-1.5e3\" t=\"true\" f=\"false\"",
            ),
            (
                r#"{"ts":1.123456789,"fields":{},"op":"reset","cost":1000000000000}"#,
                "1.123456789s Reset cost=1000000000000",
            ),
            (r#"{"ts":1,"fields":{},"op":"peek"}"#, "1.000000000s Peek"),
            (r#"{"ts":1,"fields":{},"op":"record"}"#, "1.000000000s Record"),
        ],
    );
}

#[test]
fn odd_lines_of_json() {
    let object = r#"expected an object: {"ts": .., "fields": {..}}"#;
    check(
        Format::Jsonl,
        &[
            ("", &format!("column 1: {object}")),
            ("[]", &format!("column 1: {object}")),
            ("{}", r#"column 3: expected a key "ts""#),
            (r#"{"ts":1}"#, r#"column 9: expected a key "fields""#),
            (r#"{"fields":{}}"#, r#"column 14: expected a key "ts""#),
            (r#"{"ts":-1,"fields":{}}"#, "column 7: expected seconds since 1970, up to the year 2262"),
            (r#"{"ts":9999999999,"fields":{}}"#, "column 7: expected seconds since 1970, up to the year 2262"),
            (r#"{"ts":01,"fields":{}}"#, "column 7: expected a time: a number of seconds, or a text"),
            (r#"{"ts":null,"fields":{}}"#, "column 7: expected a time: a number of seconds, or a text"),
            (
                r#"{"ts":"yesterday","fields":{}}"#,
                "column 7: expected a time from 1970 to 2262 such as 2023-11-14T22:13:20Z",
            ),
            (r#"{"ts":1,"ts":2,"fields":{}}"#, "column 10: expected each key once"),
            (r#"{"ts":1,"fields":{},"fields":{}}"#, "column 22: expected each key once"),
            (r#"{"ts":1,"fields":{"a":"1","a":"2"}}"#, "column 27: expected each field once"),
            (r#"{"ts":1,"fields":{"a":{}}}"#, "column 23: expected a text, a number, true or false"),
            (r#"{"ts":1,"fields":{"a":null}}"#, "column 23: expected a text, a number, true or false"),
            (r#"{"ts":1,"fields":[]}"#, "column 18: expected an object of fields"),
            (r#"{"ts":1,"fields":{"a":"\x"}}"#, "column 24: expected an escape that JSON knows"),
            (r#"{"ts":1,"fields":{"a":"\ud800"}}"#, "column 24: expected four hexadecimal digits"),
            (r#"{"ts":1,"fields":{"a":"\u00g0"}}"#, "column 24: expected four hexadecimal digits"),
            ("{\"ts\":1,\"fields\":{\"a\":\"\u{1}\"}}", "column 24: expected a closing quote"),
            (r#"{"ts":1,"fields":{"a":"b"#, "column 25: expected a closing quote"),
            (r#"{"ts":1,"fields":{"a":"\"#, "column 25: expected a closing quote"),
            (r#"{"ts":1,"fields":{},"cost":-1}"#, "column 28: expected a whole number up to 10^12"),
            (r#"{"ts":1,"fields":{},"cost":1.5}"#, "column 28: expected a whole number up to 10^12"),
            (r#"{"ts":1,"fields":{},"cost":1000000000001}"#, "column 28: expected a whole number up to 10^12"),
            (
                r#"{"ts":1,"fields":{},"cost":99999999999999999999999}"#,
                "column 28: expected a whole number up to 10^12",
            ),
            (r#"{"ts":1,"fields":{},"cost":"1"}"#, "column 28: expected a whole number"),
            (
                r#"{"ts":1,"fields":{},"op":"TAKE"}"#,
                r#"column 27: expected "take", "peek", "record", "refund" or "reset""#,
            ),
            (r#"{"ts":1,"fields":{},"user":"42"}"#, "column 22: expected the key ts, fields, cost or op"),
            (r#"{"ts":1 "fields":{}}"#, "column 9: expected a comma or }"),
            (r#"{"ts":1,"fields":{},}"#, "column 21: expected a key in quotes"),
            (r#"{"ts":1,"fields":{}}x"#, "column 21: expected the end of the line"),
        ],
    );
    let many: Vec<String> = (0..300).map(|number| format!("\"f{number}\":\"\"")).collect();
    let line = format!(r#"{{"ts":1,"fields":{{{}}}}}"#, many.join(","));
    assert!(read(Format::Jsonl, &line).ends_with("expected at most 256 fields"));
}
