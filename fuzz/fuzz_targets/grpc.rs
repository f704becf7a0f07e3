//! Any bytes are a message of Envoy's rate limit service within its bounds, or an error.

#![no_main]

use flowgate_server::fuzzing::read_rate_limit_request;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(descriptors) = read_rate_limit_request(bytes) {
        assert!((1..=128).contains(&descriptors.len()));
        assert!(descriptors.iter().all(|entries| (1..=256).contains(entries)));
    }
});
