//! `flowgate pause` and `resume`: for a while, no rule of a running server denies.

use flowgate_api::{Pause, PauseOrder, Text};

use crate::client::{Right, Server};
use crate::render::Renderer;
use crate::terminal;

/// Let no rule of a running server deny for a while, or tell whether they do
///
/// All rules are evaluated and counted as shadows, and bans by rules do not hold. Bans by hand hold. The pause ends by
/// itself, with `flowgate resume`, or with the server. Each server is paused by itself.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how long, such as 10m or 1h, at most 24h; without it the pause in force is told
    #[arg(long = "for", value_name = "LENGTH")]
    length: Option<String>,
    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: Server,
}

/// End the pause of a running server: its rules deny again
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    server: Server,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let client = args.server.client(Right::Admin)?;
    let answer = match &args.length {
        Some(length) => client.post("/v1/pause", &PauseOrder { length: Text(length.into()) })?,
        None => client.get("/v1/pause")?,
    };
    let pause: Pause = answer.document()?;
    terminal::print(&if args.json { answer.json() } else { Renderer::for_stdout().pause(pause) })
}

pub(crate) fn run_resume(args: &ResumeArgs) -> anyhow::Result<()> {
    let pause: Pause = args.server.client(Right::Admin)?.delete("/v1/pause")?.document()?;
    terminal::print(&Renderer::for_stdout().pause(pause))
}
