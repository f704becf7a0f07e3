//! The commands, one module each.

pub(crate) mod ban;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod decide;
pub(crate) mod explain;
pub(crate) mod import;
pub(crate) mod journal;
pub(crate) mod pause;
pub(crate) mod replay;
pub(crate) mod request;
pub(crate) mod serve;
pub(crate) mod token;
pub(crate) mod validate;
