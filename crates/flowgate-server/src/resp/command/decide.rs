//! `FG.LIMIT`, `FG.TAKE` and its siblings, `FG.BAN`: limits, rules and bans.
//!
//! A decision is eight elements: allowed, limit, remaining, retry after, reset after, delay, action, rule. Times are
//! milliseconds, rounded up; -1 stands for "no wait" and "no limit", -2 for "no wait helps".

use flowgate::{Retry, Span, Verdict};
use flowgate_engine::{AdHoc, Decision, Request, Rule, TakeAnswer, bans::BanOrder};

use super::{Call, number};
use crate::limit_cache;
use crate::resp::decode::PlainCommand;
use crate::resp::error::Error;
use crate::resp::reply::Reply;
use crate::service::Operation;

/// `FG.TAKE cost field value [field value ...]` and its siblings.
pub(super) fn decide(call: &mut Call<'_>, operation: Operation) -> Result<(), Error> {
    let words = call.command.count();
    if words.is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    let mut request = Request::new().cost(units(call, 0)?);
    for index in (1..words).step_by(2) {
        request.push(call.text(index, "field")?, call.text(index + 1, "value")?);
    }
    let answer = call.session.shared.service.decide_at(operation, &request, call.at);
    call.reply_with(answer, |decision, reply| {
        write_decision(&decision, reply);
        Ok(())
    })
}

/// The cost and the fields of `FG.TAKE`; `None` if there is a mistake in it.
#[inline]
pub(crate) fn take_fields<'a>(command: &PlainCommand<'a>) -> Option<(u64, impl Iterator<Item = (&'a str, &'a str)>)> {
    Some((number_of_units(command.word(1)?)?, command.pairs(2)?))
}

/// The request of `FG.TAKE`; `None` if there is a mistake in it.
pub(crate) fn request<'a>(command: &PlainCommand<'a>) -> Option<Request<'a>> {
    let (cost, fields) = take_fields(command)?;
    Some(Request::from_iter(fields).cost(cost))
}

/// The answer to a planned `FG.TAKE`.
#[inline]
pub(crate) fn write_answer(answer: &TakeAnswer<'_>, reply: &mut Reply<'_>) {
    match answer {
        TakeAnswer::Passes(pass) => {
            reply.decision(numbers(pass.numbers()), "allow", pass.rule().map_or("", Rule::name));
        }
        TakeAnswer::Denied(denied) => {
            let rule = denied.rule();
            reply.decision(numbers(denied.numbers()), rule.action.as_str(), rule.name());
        }
        TakeAnswer::Decided(decision) => write_decision(decision, reply),
    }
}

fn write_decision(decision: &Decision, reply: &mut Reply<'_>) {
    let rule = decision.rule().map_or("", |rule| rule.name());
    reply.decision(numbers(&decision.numbers), decision.action(), rule);
}

/// `FG.LIMIT key limit [cost [TAKE|PEEK|RECORD|REFUND]]`.
pub(super) fn limit(call: &mut Call<'_>) -> Result<(), Error> {
    let key = call.session.key(call.command.arg(0).unwrap_or_default());
    let limit = call.text(1, "limit")?;
    let cost = if call.command.count() > 2 { limit_cost(call)? } else { 1 };
    let operation = match call.command.count() {
        2 | 3 => Operation::Take,
        4 if call.is(3, "take") => Operation::Take,
        4 if call.is(3, "peek") => Operation::Peek,
        4 if call.is(3, "record") => Operation::Record,
        4 if call.is(3, "refund") => Operation::Refund,
        _ => return Err(Error::Syntax),
    };
    let service = &call.session.shared.service;
    let answer = limit_cache::with(limit, |limit| service.limit(operation, AdHoc { key, limit, cost }, call.at))?;
    call.reply_with(answer, |answer, reply| {
        write_limit(&answer?.decision, reply);
        Ok(())
    })
}

#[inline]
pub(crate) fn write_limit(decision: &flowgate::Decision, reply: &mut Reply<'_>) {
    reply.decision(numbers(decision), "", "");
}

/// The cost. A part of a limit in its place means that a shell has split a limit without quotes.
fn limit_cost(call: &Call<'_>) -> Result<u64, Error> {
    let word = call.command.arg(2).unwrap_or_default();
    let of_limit = word.contains(&b'/') || word.contains(&b'=');
    let usage = "FG.LIMIT key \"bucket 30/60s burst=15\" [cost]: quote a limit that has spaces";
    units(call, 2).map_err(|error| if of_limit { error.with_usage(usage) } else { error })
}

/// `FG.BAN field value seconds [reason]`.
pub(super) fn ban(call: &mut Call<'_>) -> Result<(), Error> {
    if call.command.count() > 4 {
        return Err(Error::Arity("fg.ban"));
    }
    let seconds = units(call, 2)?;
    if seconds == 0 {
        // A ban of zero seconds would have no effect, and answer OK.
        return Err(Error::NotInteger);
    }
    let length = Span::from_secs(seconds);
    let (field, value, reason) = (call.text(0, "field")?, call.text(1, "value")?, call.text(3, "reason")?);
    let order = BanOrder { field, value, length, reason, author: None };
    let answer = call.session.shared.service.ban(order, &call.session.author());
    call.reply_with(answer, |answer, reply| {
        answer?;
        reply.ok();
        Ok(())
    })
}

/// `FG.UNBAN field value`: 1 when there was such a ban, else 0.
pub(super) fn unban(call: &mut Call<'_>) -> Result<(), Error> {
    let lifted =
        call.session.shared.service.unban_value(call.text(0, "field")?, call.text(1, "value")?, &call.session.author());
    call.reply_with(lifted, |lifted, reply| {
        reply.integer(i64::from(lifted?));
        Ok(())
    })
}

/// A number of units or seconds.
fn units(call: &Call<'_>, index: usize) -> Result<u64, Error> {
    number_of_units(call.command.arg(index).unwrap_or_default()).ok_or(Error::NotInteger)
}

#[inline]
fn number_of_units(text: &[u8]) -> Option<u64> {
    number::parse(text).and_then(|number| u64::try_from(number).ok())
}

fn numbers(decision: &flowgate::Decision) -> [i64; 6] {
    let flowgate::Decision { verdict, limit, remaining, reset_after } = *decision;
    let millis = |span: Span| span.as_millis_ceil() as i64;
    let count = |count: Option<u64>| count.map_or(-1, |count| count as i64);
    let (allowed, retry_after, delay) = match verdict {
        Verdict::Allow { delay } => (1, -1, millis(delay)),
        Verdict::Deny(Retry::After(wait)) => (0, millis(wait), 0),
        Verdict::Deny(Retry::Never) => (0, -2, 0),
    };
    [allowed, count(limit), count(remaining), retry_after, millis(reset_after), delay]
}
