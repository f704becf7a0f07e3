//! Prints results for people and for pipes.

use std::env;
use std::io::{self, IsTerminal, Write};

use flowgate_engine::config::Color;

/// Whether messages on standard error have colours: only on a terminal, and unless `NO_COLOR` is set.
pub(crate) fn color() -> Color {
    if wants_color() { Color::Always } else { Color::Never }
}

/// Whether results on standard output have colours, by the same rule.
pub(crate) fn color_on_stdout() -> Color {
    if io::stdout().is_terminal() && allows_color() { Color::Always } else { Color::Never }
}

/// Whether standard error is a terminal that shows colours.
pub(crate) fn wants_color() -> bool {
    io::stderr().is_terminal() && allows_color()
}

fn allows_color() -> bool {
    let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
    !unwanted && !dumb
}

/// Prints a result. A reader that closes the pipe early, as `head` does, is not an error.
///
/// # Errors
/// When standard output cannot be written to.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}
