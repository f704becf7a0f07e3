//! A stream of the Redis protocol says the same however it is cut, and nothing of it is kept beyond the bound.

#![no_main]

use flowgate_server::fuzzing::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    // A small bound is met by short inputs, too.
    for max_command in [16, 64, 1 << 16] {
        check(bytes, usize::from(cut), max_command);
    }
});
