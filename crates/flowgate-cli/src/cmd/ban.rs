//! `flowgate ban` and `unban`: bans a value of a field on a running server, and lifts the ban.

use anyhow::{Context, bail};
use flowgate::Span;
use flowgate_api::{BanOrder, Bans, Cost, DecideCall, Explanation, RuleBan, Text};
use flowgate_engine::bans::{BanId, wide_network};
use flowgate_engine::config::parse_duration;

use super::request::field;
use crate::client::{Client, Right, Server};
use crate::render::Renderer;
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
    /// The reason, which denied clients see
    #[arg(long, value_name = "TEXT", requires = "who")]
    reason: Option<String>,
    /// Ban a network larger than an IPv4 /8 or an IPv6 /16, too
    #[arg(long, requires = "who")]
    wide: bool,
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

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let client = args.server.client(Right::Admin)?;
    let (answer, text) = match (&args.who, &args.length) {
        (Some((field, value)), Some(length)) => {
            if let Some(addresses) = wide_network(value).filter(|_| !args.wide) {
                bail!("{field}={value} is {addresses}: to ban them all, add --wide");
            }
            let reason = args.reason.as_ref().map(|reason| Text(reason.into()));
            let (field, value) = (Text(field.into()), Text(value.into()));
            let answer = client.post("/v1/bans", &BanOrder { field, value, length: Text(length.into()), reason })?;
            // The server has checked the length already, and refuses a wrong one.
            let length = parse_duration(length).map_or(Span::ZERO, Span::from);
            let text = Renderer::for_stdout().new_ban(&answer.document()?, length);
            (answer, text)
        }
        _ => {
            let answer = client.get("/v1/bans")?;
            let text = Renderer::for_stdout().bans(&answer.document()?);
            (answer, text)
        }
    };
    terminal::print(&if args.json { answer.json() } else { text })
}

pub(crate) fn run_unban(args: &UnbanArgs) -> anyhow::Result<()> {
    let client = args.server.client(Right::Admin)?;
    let which = &args.which;
    let id = match (which.parse::<BanId>(), field(which)) {
        (Ok(id), _) => id,
        (Err(_), Ok((name, value))) => id_of(&client, &name, &value)?,
        (Err(other), Err(error)) => bail!("{which}: {error}, or {other}"),
    };
    client.delete(&format!("/v1/bans/{id}"))?;
    terminal::print(&format!("lifted   the ban {which}\n"))
}

/// The ban by hand on a value; without one, the only ban by a rule whose subject is exactly this field and value.
fn id_of(client: &Client, name: &str, value: &str) -> anyhow::Result<BanId> {
    let answer = client.get("/v1/bans")?;
    let Bans { bans, rule_bans } = answer.document()?;
    let by_hand = bans.into_iter().find(|ban| ban.field == name && ban.value == value).map(|ban| ban.id);
    let is_subject = |ban: &RuleBan<'_>| matches!(&*ban.subject.0, [(field, of)] if field.0 == name && of.0 == value);
    let mut by_rules = rule_bans.into_iter().filter(is_subject).map(|ban| ban.id);
    let id = match (by_hand, by_rules.next(), by_rules.next()) {
        (Some(id), ..) | (None, Some(id), None) => id,
        (None, None, _) => bail!(unbanned(client, name, value)),
        (None, Some(_), Some(_)) => {
            bail!("several rules have banned {name}={value}: name one by its id (see `flowgate ban`)")
        }
    };
    id.parse().context("the server is not a Flowgate server: the id of a ban")
}

/// The message for a value that has no ban of its own. A network around it may be banned.
fn unbanned(client: &Client, name: &str, value: &str) -> String {
    let call = DecideCall { fields: [(name, value)].into_iter().collect(), cost: Cost(1), gate: false };
    let explained = client.post("/v1/explain", &call).ok();
    let explanation: Option<Explanation<'_>> = explained.as_ref().and_then(|answer| answer.document().ok());
    match explanation.and_then(|explanation| explanation.ban) {
        Some(ban) => {
            let (field, of, id) = (ban.field, ban.value, ban.id);
            format!(
                "{name}={value} is banned as a part of {field}={of}: `flowgate unban {id}` lifts that ban, for all of it"
            )
        }
        None => format!("{name}={value} is not banned"),
    }
}
