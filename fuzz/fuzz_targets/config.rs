//! Whatever a configuration holds: an answer, no panic, no hang; what is right can be written and read again.

#![no_main]

use std::path::Path;

use flowgate_engine::config::{Config, Input, load};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // A directory that is not there, so that what is read does not depend on the machine.
    let input = Input::Text { name: "fuzz.toml", base: Path::new("/nonexistent"), text };
    let report = match load(input, []) {
        Ok(loaded) => {
            check_round_trip(&loaded.config);
            loaded.warnings
        }
        Err(report) => {
            assert!(report.has_errors());
            report
        }
    };
    assert!(report.to_string().len() < 200_000);
    assert!(report.entries().count() <= 100);
});

fn check_round_trip(config: &Config) {
    let written = config.to_toml();
    // What is hidden cannot be read back.
    if written.contains("***") {
        return;
    }
    match Config::from_toml(&written) {
        Ok(again) => assert_eq!(again.to_toml(), written),
        Err(report) => panic!("{report}\nin\n{written}"),
    }
}
