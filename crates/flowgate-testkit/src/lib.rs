//! What the tests of several crates share. Every crate has it as a dev-dependency, and as nothing else.
//!
//! Without features this crate uses no other crate of the workspace, so that the library's unit tests can use it. (A
//! dev-dependency that uses the library gets a second build of it, whose types differ from those of the unit tests.)
//!
//! | module | what it has | feature |
//! |---|---|---|
//! | [`vectors`] | the recorded traces of `testdata/vectors/` as plain data | |
//! | [`server_process`] | the flowgate binary as a server | |
//! | [`http`], [`resp`] | clients that fail by panicking | |
//! | [`wait`], [`port`] | waiting with a timeout, and free TCP ports | |
//! | [`files`], [`snapshots`], [`certificates`] | temporary files, recorded messages, certificates by `openssl` | |
//! | [`properties`] | random limits and steps for property tests, and the naive reference | `properties` |
//! | [`envoy`] | a client of Envoy's rate limit service, with messages by `prost` | `envoy` |
//! | [`redis`], [`sentinel`], [`cluster`] | a Redis server of a test's own; one with a replica and sentinels; a cluster | `redis` |
//! | [`server`] | a server in a thread of the test's process | `server` |

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

pub mod certificates;
#[cfg(all(unix, feature = "redis"))]
pub mod cluster;
#[cfg(feature = "envoy")]
pub mod envoy;
pub mod files;
pub mod http;
pub mod port;
#[cfg(feature = "properties")]
pub mod properties;
#[cfg(all(unix, feature = "redis"))]
pub mod redis;
pub mod resp;
#[cfg(all(unix, feature = "redis"))]
pub mod sentinel;
#[cfg(feature = "server")]
pub mod server;
pub mod server_process;
pub mod snapshots;
pub mod vectors;
pub mod wait;
