//! `GET /v1/subjects/NAME`: the subjects that a rule counts and denies most. `GET /v1/denials`: the last denials, one
//! by one.

use flowgate_api::{Denial, Denials, Fields, SubjectCount, Subjects};

use super::Call;
use super::error::Error;
use super::query::Query;
use super::reply::{self, Reply};
use crate::recent::{self, SeenCount, Subject};
use crate::service::Service;

/// The most denials of an answer.
const MAX_DENIALS: usize = 1_000;
const DEFAULT_DENIALS: usize = 200;

/// The subjects of a rule that is, or was, in force.
pub(super) fn of_rule(call: &Call<'_>) -> Result<Reply, Error> {
    Query::read(call, &[])?;
    let service = &call.shared.service;
    // The names of rules need no escapes.
    let name = call.head.path.rsplit('/').next().unwrap_or_default();
    let now = service.now();
    let subjects = service.recent().subjects.read(name, now);
    if subjects.since.is_none() && service.rules().rules.iter().all(|rule| rule.name() != name) {
        return Err(Error::NoSuchThing("no rule of that name"));
    }
    let [asked, denied, shadow] =
        subjects.kinds.each_ref().map(|kind| kind.iter().map(|seen| count(service, seen)).collect());
    let since = subjects.since.map(Into::into);
    Ok(reply::json(&Subjects { now: now.into(), since, asked, denied, shadow }))
}

fn count<'s>(service: &Service, (subject, seen): &'s (Subject, SeenCount)) -> SubjectCount<'s> {
    SubjectCount {
        subject: subject.fields().collect(),
        cut: !subject.is_whole,
        count: seen.count,
        error: seen.error,
        first: seen.first.into(),
        last: seen.last.into(),
        banned: service.is_banned_by_hand(subject.fields()),
    }
}

/// `?after=41200&rule=reply&limit=200`.
pub(super) fn denials(call: &Call<'_>) -> Result<Reply, Error> {
    let query = Query::read(call, &["after", "rule", "limit"])?;
    let after = query.number("after", 0..=u64::MAX)?;
    let limit = query.number("limit", 1..=MAX_DENIALS)?.unwrap_or(DEFAULT_DENIALS);
    let service = &call.shared.service;
    let page = service.recent().denials.read(after, query.get("rule").filter(|rule| !rule.is_empty()), limit);
    let events = page.denials.iter().map(denial).collect();
    Ok(reply::json(&Denials { now: service.now().into(), next: page.next, lost: page.lost, events }))
}

fn denial((number, denial): &(u64, recent::DenialEvent)) -> Denial<'_> {
    let subject = denial.subject.as_ref();
    Denial {
        seq: *number,
        at: denial.at.into(),
        rule: denial.rule.as_deref().map(Into::into),
        by: denial.by.into(),
        action: (&*denial.action).into(),
        subject: subject.map_or_else(Fields::default, |subject| subject.fields().map(named).collect()),
        cut: subject.is_some_and(|subject| !subject.is_whole),
        fields: denial.fields.iter().map(|(name, value)| (&**name, &**value)).collect(),
        cost: denial.cost,
        retry_after: denial.retry_after.map(Into::into),
        stands_for: denial.stands_for,
        degraded: denial.degraded,
    }
}

/// A field of a subject. A key has no name.
fn named<'s>((name, value): (&'s str, &'s str)) -> (&'s str, &'s str) {
    if name.is_empty() { ("key", value) } else { (name, value) }
}
