//! Random and mutated lines: every line gets an answer, in bounded time and memory.

use std::io::Cursor;
use std::time::{Duration, Instant};

use flowgate_replay::event::{Event, Format};
use flowgate_replay::lines::{Line, Lines};

/// How long each test tries; long enough for some hundred thousand lines.
const BUDGET: Duration = Duration::from_secs(2);

const SEEDS: [&str; 10] = [
    r#"{"ts":1700000000.25,"fields":{"user":"42","ip":"1.2.3.4"},"cost":1,"op":"take"}"#,
    r#"{"ts":"2023-11-14T22:13:20.25+08:00","fields":{"a\u00e9\ud83d\ude00":"b\\\"\n"}}"#,
    r#"{ "op" : "reset", "fields" : { "x" : -1.5e3, "y" : true }, "ts" : 17e8 }"#,
    r#"{"ts":0.000000000000000000000000000001e40,"fields":{}}"#,
    r#"83.149.9.216 - - [17/May/2015:10:05:03 +0000] "GET /a/b.png?c=d HTTP/1.1" 200 203023 "http://x/" "Mozilla/5.0 (X)""#,
    r#"2001:db8::7 - J. [R] Doe [31/Dec/2016:23:59:60 -0430] "POST /\"x\"\\\xc3\xa9 HTTP/2.0" 404 - "-" "a \"q\"""#,
    r#"10.0.0.1 - - [17/May/2015:10:05:03.125 +0000] "HEAD http://h/x#y HTTP/1.1" 301 -"#,
    r#"::1 - - [17/May/2015:10:05:03 +0000] "\x16\x03\x01" 400 0 "" "" extra "#,
    r#"Www.example.com:80 1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5 "-" "x""#,
    r#"[::1]:51234 ann - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#,
];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    /// A seed with a few changes: bytes replaced, inserted, removed, repeated, swapped with another seed's.
    fn line(&mut self) -> Vec<u8> {
        let mut line = SEEDS[self.below(SEEDS.len())].as_bytes().to_vec();
        for _ in 0..self.below(6) {
            let at = self.below(line.len() + 1);
            let interesting = br#""\{}[]:,-+.eE0129 TtZz/xu"#;
            let byte =
                if self.below(4) == 0 { self.below(256) as u8 } else { interesting[self.below(interesting.len())] };
            match self.below(5) {
                0 if at < line.len() => line[at] = byte,
                1 => line.insert(at, byte),
                2 => {
                    let length = self.below(8).min(line.len() - at);
                    line.drain(at..at + length);
                }
                3 => {
                    let length = self.below(20).min(line.len() - at);
                    let part = line[at..at + length].repeat(1 + self.below(50));
                    line.splice(at..at, part);
                }
                _ => {
                    let other = SEEDS[self.below(SEEDS.len())].as_bytes();
                    line.truncate(at);
                    line.extend_from_slice(&other[self.below(other.len())..]);
                }
            }
        }
        line
    }
}

#[test]
fn whatever_a_line_holds_it_is_read_or_refused() {
    let (start, mut random, mut event) = (Instant::now(), Random(0x9e37_79b9_7f4a_7c15), Event::default());
    let (mut read, mut refused) = (0_u64, 0_u64);
    while start.elapsed() < BUDGET {
        for _ in 0..100 {
            let line = random.line();
            let line = String::from_utf8_lossy(&line);
            for format in [Format::Jsonl, Format::Combined, Format::Common] {
                match format.read(&line, &mut event) {
                    Ok(()) => {
                        read += 1;
                        // The ranges of an event lie within its line.
                        assert!(line.get(event.time_range.clone()).is_some_and(|given| !given.is_empty()), "{line}");
                        let request = event.request(&line);
                        let size: usize = request.fields().map(|(name, value)| name.len() + value.len()).sum();
                        // A byte outside UTF-8 becomes five bytes: a mark of three, and two digits.
                        assert!(size <= 5 * line.len() + 64, "{line}");
                    }
                    Err(reason) => {
                        refused += 1;
                        assert!(reason.to_string().len() < 200);
                    }
                }
            }
        }
    }
    assert!(read > 1_000 && refused > 1_000, "{read} read, {refused} refused");
}

#[test]
fn what_is_read_of_json_is_what_it_says() {
    let (start, mut random, mut event, mut same) = (Instant::now(), Random(7), Event::default(), 0);
    while start.elapsed() < BUDGET / 2 {
        let line = random.line();
        let Ok(line) = std::str::from_utf8(&line) else { continue };
        if Format::Jsonl.read(line, &mut event).is_err() {
            continue;
        }
        let value: serde_json::Value = match serde_json::from_str(line) {
            Ok(value) => value,
            // A trace keeps a number as text, however large it is. serde_json would have to make it a float.
            Err(error) if error.to_string().starts_with("number out of range") => continue,
            Err(error) => panic!("{line}: {error}"),
        };
        for (name, text) in event.request(line).fields() {
            match &value["fields"][name] {
                serde_json::Value::String(expected) => assert_eq!(text, expected, "{line}"),
                other => assert!(other.is_number() || other.is_boolean(), "{line}"),
            }
        }
        same += 1;
    }
    assert!(same > 1_000, "{same}");
}

#[test]
fn whatever_the_bytes_every_line_comes_out_once() {
    let mut random = Random(99);
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..random.below(5_000)).map(|_| b"ab\n\r\0\xff"[random.below(6)]).collect();
        let mut lines = Lines::new(Cursor::new(&bytes));
        let mut found = Vec::new();
        while let Some(block) = lines.block().unwrap() {
            for (_, line) in block {
                let Line::Whole(line) = line else { panic!("none is too long") };
                found.push(line.to_vec());
            }
        }
        let mut expected: Vec<Vec<u8>> =
            bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec()).collect();
        // Bytes after the last line end are one more line.
        if bytes.last().is_none_or(|last| *last == b'\n') {
            expected.pop();
        }
        assert_eq!(found, expected);
    }
}
