//! Whatever the lines of a trace hold: each is read or refused, and what was read lies within the line.

#![no_main]

use flowgate_replay::event::{Event, Format};
use flowgate_replay::lines::{Line, Lines};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut lines = Lines::new(bytes);
    let mut event = Event::default();
    while let Ok(Some(block)) = lines.block() {
        for (_, line) in block {
            if let Line::Whole(line) = line {
                read(&String::from_utf8_lossy(line), &mut event);
            }
        }
    }
});

fn read(line: &str, event: &mut Event) {
    for format in [Format::Jsonl, Format::Combined, Format::Common] {
        match format.read(line, event) {
            Ok(()) => {
                assert!(!line[event.time_range.clone()].is_empty());
                let size: usize = event.request(line).fields().map(|(name, value)| name.len() + value.len()).sum();
                assert!(size <= 3 * line.len() + 64);
            }
            Err(reason) => assert!(reason.to_string().len() < 200),
        }
    }
}
