//! What the tests of several crates share. Every crate has it as a dev-dependency, and as nothing else.
//!
//! Without features this crate uses no other crate of the workspace, so that the library's unit tests can use it. (A
//! dev-dependency that uses the library gets a second build of it, whose types differ from those of the unit tests.)
//!
//! | module | what it has | feature |
//! |---|---|---|
//! | [`vectors`] | the recorded traces of `testdata/vectors/` as plain data | |
//! | [`properties`] | random limits and steps for property tests, and the naive reference | `properties` |

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

#[cfg(feature = "properties")]
pub mod properties;
pub mod vectors;
