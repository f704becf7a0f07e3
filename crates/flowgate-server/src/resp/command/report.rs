//! What clients and people ask about the server: `INFO`, `COMMAND`, `CONFIG GET`, `TIME`.

use std::fmt::Write;

use flowgate::Database;

use super::{COMMANDS, Call, Spec};
use crate::resp::error::{Error, QuotedText};

/// The version of Redis whose protocol this is. Client libraries choose by it what they send.
pub(super) const REDIS_VERSION: &str = "7.2.0";

/// The work of a report, as a number of usual commands: it reads the counts of every shard, or writes a long text.
pub(super) const REPORT_WORK: usize = 32;

/// Settings that clients look up, with values that fit this server.
const SETTINGS: &[(&str, &str)] = &[("save", ""), ("appendonly", "no"), ("databases", "16")];

/// Seconds since the epoch, and microseconds.
pub(super) fn time(call: &mut Call<'_>) -> Result<(), Error> {
    let micros = call.at.on_the_wall(call.at.now).as_nanos() / 1_000;
    let mut reply = call.reply();
    reply.array(2);
    reply.bulk((micros / 1_000_000).to_string().as_bytes());
    reply.bulk((micros % 1_000_000).to_string().as_bytes());
    Ok(())
}

/// `INFO [section ...]`: answers all sections, which are short.
pub(super) fn info(call: &mut Call<'_>) -> Result<(), Error> {
    call.takes(REPORT_WORK);
    let (shared, stats) = (&call.session.shared, call.session.shared.service.stats());
    let mut text = String::from("# Server\r\n");
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{name}:{value}\r\n");
    };
    line("redis_version", &REDIS_VERSION);
    line("redis_mode", &"standalone");
    line("flowgate_version", &env!("CARGO_PKG_VERSION"));
    line("role", &"master");
    for (name, value) in shared.counters.list() {
        line(name, &value);
    }
    line("used_memory", &stats.bytes);
    line("maxmemory", &stats.max_bytes);
    line("evicted_keys", &stats.evicted);
    line("evicted_keys_in_use", &stats.evicted_in_use);
    line("refused_keys", &stats.refused);
    line("refused_bans", &stats.bans_refused);
    line("store", &if shared.service.shared_stats().is_some() { "redis" } else { "memory" });
    if let Some(shared) = shared.service.shared_stats() {
        line("store_away", &shared.away);
        line("store_outages", &shared.outages);
        line("store_unanswered", &shared.unanswered);
        line("store_unreadable_values", &shared.unreadable);
        line("degraded_decisions", &shared.degraded);
        line("deny_cache_hits", &shared.deny_cache_hits);
    }
    for number in 0..Database::COUNT {
        let keys = Database::new(number).map_or(0, |database| shared.service.counters_in(database));
        if keys > 0 || number == 0 {
            line(&format!("db{number}"), &format_args!("keys={keys},expires={keys},avg_ttl=0"));
        }
    }
    call.reply().bulk(text.as_bytes());
    Ok(())
}

/// `CONFIG GET name [name ...]`, without unknown names.
pub(super) fn config(call: &mut Call<'_>) -> Result<(), Error> {
    call.takes(REPORT_WORK);
    if !call.is(0, "get") {
        let subcommand = QuotedText::new(call.command.arg(0).unwrap_or_default());
        return Err(Error::UnknownSubcommand { command: "CONFIG", subcommand, known: "GET" });
    }
    if call.command.count() < 2 {
        return Err(Error::Arity("config|get"));
    }
    let asked = |name: &str| (1..call.command.count()).any(|index| call.is(index, name) || call.is(index, "*"));
    let max_bytes = call.session.shared.service.stats().max_bytes.to_string();
    let settings = SETTINGS.iter().copied().chain([("maxmemory", max_bytes.as_str())]);
    let found: Vec<_> = settings.filter(|(name, _)| asked(name)).collect();
    let mut reply = call.reply();
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// `COMMAND [COUNT|LIST|DOCS|INFO [name ...]]`.
pub(super) fn command(call: &mut Call<'_>) -> Result<(), Error> {
    call.takes(REPORT_WORK);
    if call.command.count() == 0 {
        return describe(call, COMMANDS.iter().map(Some).collect());
    }
    if call.is(0, "count") {
        call.reply().integer(COMMANDS.len() as i64);
    } else if call.is(0, "list") {
        let mut reply = call.reply();
        reply.array(COMMANDS.len());
        COMMANDS.iter().for_each(|spec| reply.bulk(spec.name.as_bytes()));
    } else if call.is(0, "docs") {
        // There are no help texts. redis-cli works without them.
        call.reply().map(0);
    } else if call.is(0, "info") {
        let named = |name: &[u8]| COMMANDS.iter().find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()));
        let specs = match call.command.count() {
            1 => COMMANDS.iter().map(Some).collect(),
            _ => call.command.args().skip(1).map(named).collect(),
        };
        return describe(call, specs);
    } else {
        let subcommand = QuotedText::new(call.command.arg(0).unwrap_or_default());
        return Err(Error::UnknownSubcommand { command: "COMMAND", subcommand, known: "COUNT, DOCS, INFO, LIST" });
    }
    Ok(())
}

fn describe(call: &mut Call<'_>, specs: Vec<Option<&Spec>>) -> Result<(), Error> {
    let mut reply = call.reply();
    reply.array(specs.len());
    for spec in specs {
        let Some(spec) = spec else {
            reply.null();
            continue;
        };
        reply.array(6);
        reply.bulk(spec.name.as_bytes());
        reply.integer(spec.arity.into());
        reply.array(spec.flags.len());
        spec.flags.iter().for_each(|flag| reply.simple(flag));
        reply.integer(spec.keys.0.into());
        reply.integer(spec.keys.1.into());
        reply.integer(i64::from(spec.keys.0 > 0));
    }
    Ok(())
}
