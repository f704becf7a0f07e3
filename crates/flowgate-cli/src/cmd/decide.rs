//! `flowgate take`, `peek` and `reset`: asks a running server about a request, or about a key with a limit.

use std::process::ExitCode;

use flowgate_api::{Cost, Decision, Explanation, FrontReport, LimitCall, Operation, Text};
use flowgate_engine::config::nearest_word;

use super::request;
use crate::client::{Answer, Right};
use crate::render::Renderer;
use crate::terminal;

/// The exit code of `take` and `peek` for a denied request.
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
        (false, _) => Renderer::for_stdout().decision(&decision) + &about_unmatched(args, &decision),
    })?;
    let denied = !decision.allowed && operation != Operation::Reset;
    Ok(if denied { ExitCode::from(DENIED) } else { ExitCode::SUCCESS })
}

/// The text after a reset. A request that no rule of the configuration matches may match rules of another system.
fn after_reset(args: &Args, decision: &Decision<'_>) -> anyhow::Result<String> {
    let renderer = Renderer::for_stdout();
    if !is_unmatched(args, decision) {
        return Ok(renderer.decision(decision));
    }
    let explained = explain(args)?;
    let explanation: Explanation<'_> = explained.document()?;
    let matching = |front: &&FrontReport<'_>| front.rules.iter().any(|rule| rule.matched);
    Ok(match explanation.fronts.iter().find(matching) {
        Some(front) => renderer.front(front) + "\n",
        None => renderer.decision(decision) + &rules_look_at(args, &explanation),
    })
}

/// The line below the decision on a request that passes because no rule matches it.
fn about_unmatched(args: &Args, decision: &Decision<'_>) -> String {
    if !is_unmatched(args, decision) || !decision.allowed {
        return String::new();
    }
    // The decision is known already. A server of an older version gives no explanation; then the line is left out.
    let explained = explain(args).ok();
    let explanation = explained.as_ref().and_then(|answer| answer.document().ok());
    explanation.map_or_else(String::new, |explanation| rules_look_at(args, &explanation))
}

fn is_unmatched(args: &Args, decision: &Decision<'_>) -> bool {
    !decision.matched && args.key.is_none()
}

fn explain(args: &Args) -> anyhow::Result<Answer> {
    args.request.server.client(Right::Decide)?.post("/v1/explain", &args.request.call()?)
}

/// The most fields that a line names.
const MAX_FIELDS: usize = 12;

/// The fields that the rules read, for a request that none of them matches. Without this line a mistyped field looks
/// like success.
fn rules_look_at(args: &Args, explanation: &Explanation<'_>) -> String {
    let fields = &explanation.fields;
    if fields.is_empty() {
        // Rules of another system do not count for a request over the API.
        let is_bare = explanation.rules.is_empty() && explanation.fronts.is_empty();
        return if is_bare { "         there are no rules\n".to_owned() } else { String::new() };
    }
    let given = args.request.fields.iter().map(|(name, _)| name.as_str());
    let unknown = given.filter(|name| !fields.iter().any(|field| field == name));
    let slip = unknown.filter_map(|name| Some((name, nearest_word(name, fields.iter().map(|field| &**field))?))).next();
    let advice = match slip {
        Some((name, meant)) => format!("did you mean {meant:?} instead of {name:?}?"),
        None => "`flowgate explain` tells why each does not match".to_owned(),
    };
    let more = if fields.len() > MAX_FIELDS { ", .." } else { "" };
    let names = fields.iter().take(MAX_FIELDS).map(|field| &**field).collect::<Vec<_>>().join(", ");
    format!("         rules look at {names}{more}; {advice}\n")
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
