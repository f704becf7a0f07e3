//! The commands, one module each.

pub(crate) mod config;
pub(crate) mod replay;
pub(crate) mod serve;
pub(crate) mod validate;
