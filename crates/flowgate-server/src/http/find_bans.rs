//! `POST /v1/bans/find`: searches the bans, page by page. The body holds the text to find, so that addresses and logs
//! do not.

use std::cmp::Reverse;

use flowgate_api::{BanSearch, FoundBan, FoundBans, Origin};
use flowgate_engine::bans::{BanId, RuleBan};

use super::body::Body;
use super::error::Error;
use super::reply::{self, Reply};
use super::{Call, body};
use crate::service::Service;

const MAX_PAGE: u64 = 1_000;
const DEFAULT_PAGE: u64 = 100;

/// The most bytes of a text to find: no part of a ban is longer.
const MAX_TEXT_BYTES: usize = 1_024;

/// `{"text":"192.0.2","origin":"any","after":null,"limit":100}`.
pub(super) async fn find(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    let body = body::read_json(call.shared, call.headers(), body).await?;
    let BanSearch { text, origin, after, limit } = body::parse(&body)?;
    let limit = limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Error::invalid("limit", format!("expected a whole number from 1 to {MAX_PAGE}")));
    }
    if text.0.len() > MAX_TEXT_BYTES {
        return Err(Error::invalid("text", format!("longer than {MAX_TEXT_BYTES} bytes")));
    }
    let after = match after {
        Some(id) => Some(id.0.parse::<BanId>().map_err(|error| Error::invalid("after", error))?),
        None => None,
    };
    let service = call.shared.service.clone();
    let by_rules = call.answered(service.rule_bans()).await??;
    let search = Search { text: text.0.to_lowercase(), origin, after, limit: limit as usize };
    // There may be ten thousand bans by hand and as many by rules, so the search does not run on the event loop.
    let written = tokio::task::spawn_blocking(move || document(&service, &by_rules, &search)).await;
    Ok(reply::json_text(written.map_err(|_| Error::Overloaded)?))
}

/// What to find. The text is in lower case.
struct Search {
    text: String,
    origin: Origin,
    after: Option<BanId>,
    limit: usize,
}

fn document(service: &Service, by_rules: &[RuleBan], search: &Search) -> Vec<u8> {
    let by_hand = service.bans();
    let total = by_hand.len() + by_rules.len();
    let is_wanted = |ban: &FoundBan<'_>| search.origin == Origin::Any || search.origin == ban.origin;
    let all = by_hand.iter().map(|ban| (ban.id, FoundBan::from(&**ban)));
    let all = all.chain(by_rules.iter().map(|ban| (ban.id, FoundBan::from(ban))));
    let mut found: Vec<(BanId, FoundBan<'_>)> =
        all.filter(|(_, ban)| is_wanted(ban) && contains(ban, &search.text)).collect();
    // Bans are ordered by their ids alone, so that a page continues where the one before ended, though bans come and
    // go.
    let order = |id: BanId| (id.kind(), Reverse(id));
    found.sort_unstable_by_key(|(id, _)| order(*id));
    let number = found.len();
    let mut page = found.into_iter().filter(|(id, _)| search.after.is_none_or(|after| order(*id) > order(after)));
    let bans: Vec<(BanId, FoundBan<'_>)> = page.by_ref().take(search.limit).collect();
    let next = page.next().and(bans.last()).map(|(id, _)| id.to_string().into());
    reply::written(&FoundBans {
        now: service.now().into(),
        total: total as u64,
        by_hand: by_hand.len() as u64,
        found: number as u64,
        next,
        complete: service.shared_stats().is_none_or(|shared| shared.away == 0),
        bans: bans.into_iter().map(|(_, ban)| ban).collect(),
    })
}

/// True if a part of a ban contains a text in lower case. `field=value` counts as a part, too.
fn contains(ban: &FoundBan<'_>, text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let holds = |part: &str| part.to_lowercase().contains(text);
    let by_hand = match (&ban.field, &ban.value) {
        (Some(field), Some(value)) => holds(&format!("{field}={value}")),
        _ => false,
    };
    let subject = ban.subject.iter().flat_map(|subject| &subject.0);
    by_hand
        || subject.into_iter().any(|(name, value)| holds(&format!("{}={}", name.0, value.0)))
        || ban.rule.as_deref().is_some_and(holds)
        || ban.reason.as_deref().is_some_and(holds)
        || ban.author.iter().any(|author| holds(&author.by) || author.from.as_deref().is_some_and(holds))
        || holds(&ban.id)
}
