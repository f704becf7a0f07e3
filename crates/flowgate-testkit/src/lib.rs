//! What the tests of several crates share. Every crate has it as a dev-dependency, and as nothing else.
//!
//! Without features this crate uses no other crate of the workspace, so that the library's unit tests can use it. (A
//! dev-dependency that uses the library gets a second build of it, whose types differ from those of the unit tests.)
//!
//! | module | what it has | feature |
//! |---|---|---|
//! | [`vectors`] | the recorded traces of `testdata/vectors/` as plain data | |
//! | [`wait`], [`port`] | waiting with a timeout, and free TCP ports | |
//! | [`properties`] | random limits and steps for property tests, and the naive reference | `properties` |
//! | [`redis`] | a Redis server of a test's own | `redis` |

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

pub mod port;
#[cfg(feature = "properties")]
pub mod properties;
#[cfg(all(unix, feature = "redis"))]
pub mod redis;
pub mod vectors;
pub mod wait;
