//! `flowgate explain`: shows what a server would decide, and why. Changes nothing.

use super::request;
use crate::client::Right;
use crate::render::Renderer;
use crate::terminal;

/// Explain what a running server would decide, and why
///
/// Shows every rule from top to bottom: whether it matches or the first condition that does not hold, and how its
/// limits stand. Changes nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    request: request::RequestArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let answer = args.request.server.client(Right::Decide)?.post("/v1/explain", &args.request.call()?)?;
    terminal::print(&match args.request.json {
        true => answer.json(),
        false => Renderer::for_stdout().explanation(&answer.document()?),
    })
}
