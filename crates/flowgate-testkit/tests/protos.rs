//! What is made from the server's `proto/`: the descriptors that reflection shows, and the messages of the tests.
//! `scripts/protos` makes them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use flowgate_testkit::files::repository;
use prost::Message;
use prost_build::{Config, Module};

const MESSAGES: &str = "crates/flowgate-testkit/src/envoy/messages.rs";
const DESCRIPTORS: &str = "crates/flowgate-server/src/grpc/descriptors.bin";

/// With the variable `UPDATE_PROTOS` the files are written anew.
#[test]
fn generated_files_are_current() {
    let protos = repository("crates/flowgate-server/proto");
    let descriptors = protox::compile(["envoy/service/ratelimit/v3/rls.proto"], [&protos]).unwrap();
    let requests =
        descriptors.file.iter().map(|file| (Module::from_protobuf_package_name(file.package()), file.clone()));
    let mut modules = Config::new().generate(requests.collect()).unwrap();
    // `prost-types` has these.
    modules.retain(|module, _| module.parts().next() != Some("google"));
    let mut text = "// Made by scripts/protos.\n".to_owned();
    write(&mut text, &modules.iter().map(|(module, code)| (module.parts().collect(), code.as_str())).collect());
    check(MESSAGES, text.as_bytes());
    check(DESCRIPTORS, &descriptors.encode_to_vec());
}

fn check(path: &str, expected: &[u8]) {
    let path: PathBuf = repository(path);
    if std::env::var_os("UPDATE_PROTOS").is_some() {
        fs::write(&path, expected).unwrap();
    }
    assert!(fs::read(&path).unwrap() == expected, "{} is out of date: run scripts/protos", path.display());
}

/// Writes the modules of all packages, one within the other.
fn write(out: &mut String, packages: &BTreeMap<Vec<&str>, &str>) {
    let mut children: BTreeMap<&str, BTreeMap<Vec<&str>, &str>> = BTreeMap::new();
    for (path, code) in packages {
        match path.split_first() {
            None => out.push_str(code),
            Some((first, rest)) => {
                children.entry(first).or_default().insert(rest.to_vec(), code);
            }
        }
    }
    for (name, packages) in children {
        out.push_str(&format!("pub mod {name} {{\n"));
        write(out, &packages);
        out.push_str("}\n");
    }
}
