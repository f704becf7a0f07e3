//! `flowgate take`, `peek` and `reset`: asks a running server about a request, or about a key with a limit.

use std::process::ExitCode;

use anyhow::bail;
use serde_json::{Value, json};

use super::request;
use crate::answer::Telling;
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
    request: request::Asked,
    /// Ask about this key, by --limit, instead of a request and its rules
    #[arg(long, value_name = "KEY", requires = "limit", conflicts_with_all = ["fields", "gate"])]
    key: Option<String>,
    /// The limit for --key, such as 5/60s
    #[arg(long, value_name = "LIMIT", requires = "key")]
    limit: Option<String>,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Take,
    Peek,
    Reset,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Take => "take",
            Operation::Peek => "peek",
            Operation::Reset => "reset",
        }
    }
}

pub(crate) fn run(args: &Args, operation: Operation) -> anyhow::Result<ExitCode> {
    let decision = ask(args, operation)?;
    if args.request.json {
        terminal::print(&format!("{decision}\n"))?;
    } else {
        let what = if operation == Operation::Reset { "reset    " } else { "" };
        terminal::print(&format!("{what}{}", Telling::to_stdout().decision(&decision)))?;
    }
    match decision["allowed"].as_bool() {
        Some(false) if operation != Operation::Reset => Ok(ExitCode::from(DENIED)),
        Some(_) => Ok(ExitCode::SUCCESS),
        None => bail!("this is no Flowgate server: its answer is no decision"),
    }
}

fn ask(args: &Args, operation: Operation) -> anyhow::Result<Value> {
    let client = args.request.server.client()?;
    match (&args.key, &args.limit) {
        (Some(key), Some(limit)) => {
            let op = operation.name();
            client.post("/v1/limit", &json!({ "key": key, "limit": limit, "cost": args.request.cost, "op": op }))
        }
        _ => client.post(&format!("/v1/{}", operation.name()), &args.request.body()?),
    }
}
