//! `flowgate ban` and `unban`: keeps somebody out of a running server, and lets them in again.

use std::process::ExitCode;

use anyhow::{Context, bail};
use flowgate_engine::BanId;
use serde_json::{Value, json};

use super::request::field;
use crate::answer::Telling;
use crate::client::{Client, Server};
use crate::terminal;

/// Ban a value of a field on a running server, or list the bans in force
///
/// A ban by hand comes before all rules. It replaces an earlier one of the same value.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whom, such as `user=42` or `ip=192.0.2.0/24`; without it the bans in force are listed
    #[arg(value_name = "FIELD=VALUE", value_parser = field, requires = "length")]
    who: Option<(String, String)>,
    /// For how long, such as 10m, 1h or 7d
    #[arg(long = "for", value_name = "LENGTH", requires = "who")]
    length: Option<String>,
    /// Why: it is told to whoever is denied by the ban
    #[arg(long, value_name = "TEXT", requires = "who")]
    reason: Option<String>,
    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: Server,
}

/// Lift a ban on a running server
#[derive(Debug, clap::Args)]
pub(crate) struct UnbanArgs {
    /// The value as it was banned, such as `user=42`, or the id of a ban (see `flowgate ban`)
    #[arg(value_name = "FIELD=VALUE | ID")]
    which: String,
    #[command(flatten)]
    server: Server,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let client = args.server.client()?;
    let (answer, text) = match (&args.who, &args.length) {
        (Some((name, value)), Some(length)) => {
            let mut order = json!({ "field": name, "value": value, "for": length });
            if let Some(reason) = &args.reason {
                order["reason"] = reason.as_str().into();
            }
            let ban = client.post("/v1/bans", &order)?;
            let text = Telling::to_stdout().imposed(&ban);
            (ban, text)
        }
        _ => {
            let bans = client.get("/v1/bans")?;
            let text = Telling::to_stdout().bans(&bans);
            (bans, text)
        }
    };
    terminal::print(&if args.json { format!("{answer}\n") } else { text })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run_unban(args: &UnbanArgs) -> anyhow::Result<ExitCode> {
    let client = args.server.client()?;
    let which = &args.which;
    let id = match (which.parse::<BanId>(), field(which)) {
        (Ok(id), _) => id,
        (Err(_), Ok((name, value))) => id_of(&client, &name, &value)?,
        (Err(other), Err(error)) => bail!("{which}: {error}, or {other}"),
    };
    client.delete(&format!("/v1/bans/{id}"))?;
    terminal::print(&format!("lifted   the ban {which}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The ban by hand of a value; else the only ban by a rule whose subject is just that.
fn id_of(client: &Client, name: &str, value: &str) -> anyhow::Result<BanId> {
    let bans = client.get("/v1/bans")?;
    let list = |kind: &str| bans[kind].as_array().cloned().unwrap_or_default();
    let by_hand = list("bans").into_iter().find(|ban| ban["field"] == name && ban["value"] == value);
    let is_subject = |ban: &Value| {
        let subject = ban["subject"].as_object();
        subject.is_some_and(|subject| subject.len() == 1 && subject.get(name).is_some_and(|found| found == value))
    };
    let by_rules: Vec<Value> = list("rule_bans").into_iter().filter(is_subject).collect();
    let ban = match (&by_hand, by_rules.as_slice()) {
        (Some(ban), _) | (None, [ban]) => ban,
        (None, []) => bail!("{name}={value} is not banned"),
        (None, _) => bail!("several rules have banned {name}={value}: name one by its id (see `flowgate ban`)"),
    };
    ban["id"].as_str().unwrap_or_default().parse().context("this is not a Flowgate server: the id of a ban")
}
