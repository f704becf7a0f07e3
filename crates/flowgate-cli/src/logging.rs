//! The log of the running server: on standard error, as the section `[log]` says.

use std::io;

use flowgate_engine::config::{Log, LogFormat, LogLevel};
use tracing_subscriber::filter::LevelFilter;

use crate::terminal;

/// Starts the log. Before that, and in commands that do not serve, nothing is logged.
pub(crate) fn start(log: &Log) {
    let level = match log.level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level);
    match log.format {
        LogFormat::Human => builder.with_target(false).with_ansi(terminal::wants_color()).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
}
