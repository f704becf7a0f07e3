//! Whatever a Koala rule file holds: an answer, no panic, no hang; what is right can be imported and decided by.

#![no_main]

use std::path::Path;

use flowgate::{MemoryStore, Time};
use flowgate_engine::config::{Input, load};
use flowgate_engine::{Engine, Policy, Request};
use flowgate_koala::{KoalaAsk, KoalaFile, KoalaRules};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // A directory that is not there, so that what is read does not depend on the machine.
    let base = Path::new("/nonexistent/conf");
    let report = match KoalaFile::load(Input::Text { name: "fuzz.conf", base, text }, "Asia/Shanghai") {
        Ok(loaded) => {
            use_it(loaded.file);
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

fn use_it(file: KoalaFile) {
    let toml = file.to_toml(std::path::Path::new("/nowhere"));
    if let Err(report) = load(Input::Text { name: "imported.toml", base: Path::new("/nonexistent"), text: &toml }, []) {
        panic!("{report}\nin\n{toml}");
    }
    let engine = Engine::new(&Policy::default(), MemoryStore::default()).expect("an empty policy fits");
    let rules = KoalaRules::new(file, engine.memory(), None).expect("what was loaded fits");
    let request = Request::new().field("act", "ask").field("qid", "7").field("ip", "10.0.0.1").field("uid", "x");
    for second in 0..3 {
        let now = Time::from_secs(1_700_000_000 + second);
        let answer = rules.decide(&engine, KoalaAsk::CompleteAndCount, &request, now);
        rules.note(&answer, now);
    }
}
