//! `flowgate take`, `peek` and `reset`: asks a running server about a request, or about a key with a limit.

use std::process::ExitCode;

use flowgate_api::{Cost, Decision, Explanation, FrontReport, LimitCall, Operation, Text};

use super::request;
use crate::client::{Answer, Right};
use crate::render::Renderer;
use crate::terminal;

/// The exit code of `take` and `peek` when the answer is no.
const DENIED: u8 = 3;

const EXAMPLES: &str = "\
Examples:
  flowgate take act=reply user=42
  flowgate peek act=reply user=42 --cost 3 --json
  flowgate take --key report:7 --limit '10/h' || echo 'not now'

Exit codes:
  0  allowed, or forgotten
  1  it failed; the reason is on standard error
  2  the command line is wrong
  3  denied";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    request: request::RequestArgs,
    /// Ask about this key, by --limit, instead of a request and its rules
    #[arg(long, value_name = "KEY", requires = "limit", conflicts_with_all = ["fields", "gate"])]
    key: Option<String>,
    /// The limit for --key, such as 5/60s
    #[arg(long, value_name = "LIMIT", requires = "key")]
    limit: Option<String>,
}

pub(crate) fn run(args: &Args, operation: Operation) -> anyhow::Result<ExitCode> {
    let answer = ask(args, operation)?;
    let decision: Decision<'_> = answer.document()?;
    terminal::print(&match (args.request.json, operation) {
        (true, _) => answer.json(),
        (false, Operation::Reset) => format!("reset    {}", after_reset(args, &decision)?),
        (false, _) => Renderer::for_stdout().decision(&decision),
    })?;
    let denied = !decision.allowed && operation != Operation::Reset;
    Ok(if denied { ExitCode::from(DENIED) } else { ExitCode::SUCCESS })
}

/// What is decided after a reset. A request that no rule of the configuration matches may match rules of another
/// system.
fn after_reset(args: &Args, decision: &Decision<'_>) -> anyhow::Result<String> {
    let renderer = Renderer::for_stdout();
    if !decision.matched && args.key.is_none() {
        let explained = args.request.server.client(Right::Decide)?.post("/v1/explain", &args.request.call()?)?;
        let explanation: Explanation<'_> = explained.document()?;
        let matching = |front: &&FrontReport<'_>| front.rules.iter().any(|rule| rule.matched);
        if let Some(front) = explanation.fronts.iter().find(matching) {
            return Ok(renderer.front(front) + "\n");
        }
    }
    Ok(renderer.decision(decision))
}

fn ask(args: &Args, operation: Operation) -> anyhow::Result<Answer> {
    let client = args.request.server.client(Right::Decide)?;
    match (&args.key, &args.limit) {
        (Some(key), Some(limit)) => {
            let (key, limit, cost) = (Text(key.into()), Text(limit.into()), Cost(args.request.cost));
            client.post("/v1/limit", &LimitCall { key, limit, cost, op: operation })
        }
        _ => client.post(&format!("/v1/{}", operation.name()), &args.request.call()?),
    }
}
