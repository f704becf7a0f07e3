//! What gRPC reflection shows is made from the server's `proto/`, by `scripts/protos`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;

use flowgate_testkit::files::repository;
use prost::Message;

/// With the variable `UPDATE_PROTOS` the file is written anew.
#[test]
fn descriptors_are_current() {
    let protos = repository("crates/flowgate-server/proto");
    let descriptors = protox::compile(["envoy/service/ratelimit/v3/rls.proto"], [&protos]).unwrap().encode_to_vec();
    let path = repository("crates/flowgate-server/src/grpc/descriptors.bin");
    if std::env::var_os("UPDATE_PROTOS").is_some() {
        fs::write(&path, &descriptors).unwrap();
    }
    assert!(fs::read(&path).unwrap() == descriptors, "{} is out of date: run scripts/protos", path.display());
}
