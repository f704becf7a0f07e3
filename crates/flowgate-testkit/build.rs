//! Makes the messages of Envoy's rate limit service from the server's `proto/`, for `src/envoy.rs`.

#[cfg(not(feature = "envoy"))]
fn main() {}

#[cfg(feature = "envoy")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let protos = concat!(env!("CARGO_MANIFEST_DIR"), "/../flowgate-server/proto");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={protos}");
    let descriptors = protox::compile(["envoy/service/ratelimit/v3/rls.proto"], [protos])?;
    prost_build::Config::new().include_file("messages.rs").compile_fds(descriptors)?;
    Ok(())
}
