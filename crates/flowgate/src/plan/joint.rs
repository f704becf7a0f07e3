//! Joint: the parts of a plan, decided together.
//!
//! Rule       Refunds come first and count in any case. Then the other parts follow in order. Each is asked as if all
//!            parts before it had been counted on the counters they share, whether these pass or not; a peek counts
//!            nothing for those after it.
//! Rule       A part that asks and is denied denies the step: no part is charged, not even a record. Then the rules
//!            that count denied requests and are exceeded are charged, and bans get their strikes. Every part is
//!            answered after that, so all answers describe the state that the step leaves.
//! Rule       An allowed step answers as its parts would one after the other at that instant.
//! Rule       Shadow rules see the parts one after the other, each by itself, whatever the step decides.
//! Rule       A part that meets a ban in force changes no counter and gives no strike. A step gives a subject at most
//!            one strike.
//! Bound      An allowed step counts as its parts would by themselves, so the bound of every limit holds.

use std::collections::HashMap;

use super::{Charge, Hit, Op, PlanPart, Verdict, counts_denied, decide as decide_hits};
use crate::algorithm::{Counter, WindowCount};
use crate::ask::Ask;
use crate::ban::{BanHit, Standing};
use crate::decision::Retry;
use crate::limit::{Limit, MAX_COUNT};
use crate::memory::Key;
use crate::time::Time;

/// The counters and the ban records of a plan, each once however many parts meet it.
#[derive(Debug)]
pub(crate) struct SharedCounters<'a> {
    /// Hits whose counters the plan may create come first.
    pub(crate) hits: Vec<Hit<'a>>,
    pub(crate) bans: Vec<BanHit<'a>>,
    /// The number of `hits`, from the first on, whose counters the plan may create.
    pub(crate) creatable_hits: usize,
    /// The number of `bans`, from the first on, whose records the plan may create.
    pub(crate) creatable_bans: usize,
    /// Where the counters and records of each part are.
    parts: Vec<PartIndices>,
    /// What earlier parts ask of each counter.
    pending: Vec<Pending>,
    /// Whether each hit of the plan ends up with a copy of its counter as it was right after the hit.
    copies: bool,
}

/// For each hit and each ban of a part the index of what it shares.
#[derive(Debug, Default)]
struct PartIndices {
    hits: Vec<usize>,
    bans: Vec<usize>,
}

impl<'a> SharedCounters<'a> {
    /// Gathers what the parts share. A counter or a record that some hits have in common moves out of the first of
    /// them.
    pub(crate) fn new(parts: &mut [PlanPart<'_, 'a>]) -> SharedCounters<'a> {
        let (mut hits, mut bans) = (Places::default(), Places::default());
        let mut indices: Vec<PartIndices> = parts.iter().map(|_| PartIndices::default()).collect();
        let (mut creatable_hits, mut creatable_bans) = (0, 0);
        for creates in [true, false] {
            let of_kind =
                parts.iter_mut().zip(&mut indices).filter(|(part, _)| part.ask(Time::EPOCH).counts() == creates);
            for (part, indices) in of_kind {
                for hit in part.hits.iter_mut() {
                    let index = hits.find(hit.key, || hit.split_off());
                    hits.all[index].cover(hit.limit);
                    indices.hits.push(index);
                }
                for ban in part.bans.iter_mut() {
                    let index = bans.find(ban.key, || ban.split_off());
                    bans.all[index].watches &= ban.watches;
                    indices.bans.push(index);
                }
            }
            if creates {
                (creatable_hits, creatable_bans) = (hits.all.len(), bans.all.len());
            }
        }
        let pending = vec![Pending::default(); hits.all.len()];
        let (hits, bans) = (hits.all, bans.all);
        SharedCounters { hits, bans, creatable_hits, creatable_bans, parts: indices, pending, copies: false }
    }

    /// The same, so that each hit of the plan ends up with a copy of its counter as it was right after the hit.
    #[cfg(feature = "portable")]
    pub(crate) fn with_copies(self) -> SharedCounters<'a> {
        SharedCounters { copies: true, ..self }
    }

    /// Calls `act` on some hits of a part, from the one numbered `first` on, while they have their counters.
    fn lend(&mut self, number: usize, first: usize, hits: &mut [Hit<'_>], act: impl FnOnce(&mut [Hit<'_>])) {
        let indices = &self.parts[number].hits[first..][..hits.len()];
        for (hit, &index) in hits.iter_mut().zip(indices) {
            hit.swap_counter(&mut self.hits[index]);
        }
        act(hits);
        // In reverse, so that a counter that a part names twice comes back from the hit that got it.
        for (hit, &index) in hits.iter_mut().zip(indices).rev() {
            let copy = self.copies.then(|| hit.counter.clone());
            hit.swap_counter(&mut self.hits[index]);
            if let Some(copy) = copy {
                hit.counter = copy;
            }
        }
    }
}

/// Distinct keys in the order of their first use.
struct Places<T> {
    by_key: HashMap<Key, usize>,
    all: Vec<T>,
}

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places { by_key: HashMap::new(), all: Vec::new() }
    }
}

impl<T> Places<T> {
    /// The index of a key. A counter that is kept nowhere is not shared.
    fn find(&mut self, key: Key, make: impl FnOnce() -> T) -> usize {
        let next = self.all.len();
        let index = if key == Key::NOWHERE { next } else { *self.by_key.entry(key).or_insert(next) };
        if index == next {
            self.all.push(make());
        }
        index
    }
}

/// Decides the parts at `now` and fills in their outcomes. `shared` was made of them, and its counters are loaded.
pub(crate) fn decide(now: Time, parts: &mut [PlanPart<'_, '_>], shared: &mut SharedCounters<'_>) {
    refund(now, parts, shared);
    let banned = find_bans(now, parts, shared);
    let mut denied = evaluate(now, parts, shared);
    denied |= banned.contains(&true) || parts.iter().any(|part| part.op == Op::Deny);
    count_shadows(now, parts, shared, &banned);
    if denied {
        let strikes = find_strikes(parts, shared, &banned);
        charge_denied(now, parts, shared, &banned);
        strike(now, parts, shared, &strikes);
        evaluate(now, parts, shared);
    }
    conclude(now, parts, shared, denied);
}

fn refund(now: Time, parts: &mut [PlanPart<'_, '_>], shared: &mut SharedCounters<'_>) {
    for (number, part) in parts.iter_mut().enumerate().filter(|(_, part)| part.op == Op::Refund) {
        let ask = part.ask(now);
        shared.lend(number, 0, part.hits, |hits| decide_hits(ask, hits));
    }
}

/// Looks for bans in force, and returns for each part whether one denies it.
fn find_bans(now: Time, parts: &mut [PlanPart<'_, '_>], shared: &mut SharedCounters<'_>) -> Vec<bool> {
    shared.bans.iter_mut().for_each(|ban| ban.look(now));
    for (part, indices) in parts.iter_mut().zip(&shared.parts) {
        for (ban, &index) in part.bans.iter_mut().zip(&indices.bans) {
            ban.standing = shared.bans[index].standing;
        }
    }
    parts.iter().map(|part| part.op.asks() && part.is_banned()).collect()
}

/// Sets the verdict of every enforced hit. Returns true if a hit of a part that asks is denied.
fn evaluate(now: Time, parts: &mut [PlanPart<'_, '_>], shared: &mut SharedCounters<'_>) -> bool {
    let mut denied = false;
    shared.pending.fill(Pending::default());
    for (part, indices) in parts.iter_mut().zip(&shared.parts).filter(|(part, _)| part.op != Op::Refund) {
        let ask = part.ask(now);
        let enforced = part.hits.iter_mut().zip(&indices.hits).filter(|(hit, _)| !hit.flags.shadow);
        for (hit, &index) in enforced {
            let (found, pending) = (&shared.hits[index], &mut shared.pending[index]);
            let verdict = if ask.op.asks() { pending.check(ask, hit.limit, &found.counter) } else { Verdict::PASS };
            hit.outcome.verdict = if found.no_room { verdict.refused() } else { verdict };
            denied |= ask.op.asks() && !hit.outcome.allowed();
            if ask.op != Op::Peek {
                pending.count(ask, hit.limit, &found.counter);
            }
        }
    }
    denied
}

/// Lets shadow rules count each part by itself.
fn count_shadows(now: Time, parts: &mut [PlanPart<'_, '_>], shared: &mut SharedCounters<'_>, banned: &[bool]) {
    for (number, part) in parts.iter_mut().enumerate().filter(|(_, part)| part.op != Op::Refund) {
        let op = if banned[number] { Op::Peek } else { part.op };
        let ask = Ask { op, ..part.ask(now) };
        each_rule(part.hits, |first, hits| {
            if hits[0].flags.shadow {
                shared.lend(number, first, hits, |hits| decide_hits(ask, hits));
            }
        });
    }
}

/// The bans that get a strike, as (part, ban). Only the first part whose rule denies gives a strike. Denials by shadow
/// rules and by a full store give none.
fn find_strikes(parts: &[PlanPart<'_, '_>], shared: &SharedCounters<'_>, banned: &[bool]) -> Vec<(usize, usize)> {
    let mut struck = vec![false; shared.bans.len()];
    let mut strikes = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        if banned[number] || part.op == Op::Peek || !part.op.asks() {
            continue;
        }
        let indices = &shared.parts[number];
        for (place, (ban, &record)) in part.bans.iter().zip(&indices.bans).enumerate() {
            let of_rule = |hit: &Hit<'_>| hit.rule_id == ban.rule_id && !hit.flags.shadow;
            let mut hits = part.hits.iter().zip(&indices.hits);
            let denies = hits.any(|(hit, &i)| of_rule(hit) && !hit.outcome.allowed() && !shared.hits[i].no_room);
            if denies && !struck[record] {
                struck[record] = true;
                strikes.push((number, place));
            }
        }
    }
    strikes
}

/// Charges the rules that count denied requests and are exceeded.
fn charge_denied(now: Time, parts: &mut [PlanPart<'_, '_>], shared: &mut SharedCounters<'_>, banned: &[bool]) {
    for (number, part) in parts.iter_mut().enumerate() {
        if banned[number] || part.op == Op::Peek || !part.op.asks() {
            continue;
        }
        let ask = part.ask(now);
        each_rule(part.hits, |first, hits| {
            if hits[0].flags.shadow || !hits[0].flags.count_denied {
                return;
            }
            shared.lend(number, first, hits, |hits| {
                if counts_denied(hits) {
                    hits.iter_mut().for_each(|hit| hit.limit.charge(ask, &mut hit.counter, Charge::Denied));
                }
            });
        });
    }
}

/// Gives the strikes. A ban that begins holds for all parts that share its subject.
fn strike(now: Time, parts: &mut [PlanPart<'_, '_>], shared: &mut SharedCounters<'_>, strikes: &[(usize, usize)]) {
    for &(number, place) in strikes {
        let record = &mut shared.bans[shared.parts[number].bans[place]];
        record.strike(now);
        parts[number].bans[place].standing = record.standing;
    }
    for (part, indices) in parts.iter_mut().zip(&shared.parts) {
        for (ban, &index) in part.bans.iter_mut().zip(&indices.bans) {
            if let (Standing::Clear, Some(until)) = (ban.standing, shared.bans[index].standing.until()) {
                ban.standing = Standing::Banned { until };
            }
        }
    }
}

/// Charges an allowed step, and answers.
fn conclude(now: Time, parts: &mut [PlanPart<'_, '_>], shared: &mut SharedCounters<'_>, denied: bool) {
    for (number, part) in parts.iter_mut().enumerate().filter(|(_, part)| part.op != Op::Refund) {
        let ask = part.ask(now);
        each_rule(part.hits, |first, hits| {
            if hits[0].flags.shadow {
                return;
            }
            shared.lend(number, first, hits, |hits| {
                for hit in hits {
                    let verdict = hit.outcome.verdict;
                    if !denied && ask.op != Op::Peek && !hit.no_room {
                        hit.limit.charge(ask, &mut hit.counter, Charge::Counted);
                    }
                    if ask.op == Op::Peek { hit.look(verdict, now) } else { hit.conclude(verdict, now) }
                }
            });
        });
    }
}

/// Calls `act` for each rule, with the index of its first hit and with its hits.
fn each_rule<'a>(hits: &mut [Hit<'a>], mut act: impl FnMut(usize, &mut [Hit<'a>])) {
    let mut first = 0;
    for rule in hits.chunk_by_mut(|a, b| a.rule_id == b.rule_id) {
        let next = first + rule.len();
        act(first, rule);
        first = next;
    }
}

/// The units that the parts so far ask of one counter.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// The number of units.
    units: u64,
    /// For a limit with `after=`, the number of units beyond the free ones.
    enforced: u64,
    /// Like `enforced`, for a time after the current period of `after=`.
    enforced_later: u64,
}

impl Pending {
    /// Would `ask` pass once the units of the earlier parts are counted? All parts are charged at the same instant, so
    /// no wait lets the earlier units expire before this part. They are added to its cost and checked together.
    fn check(self, ask: Ask, limit: &Limit, counter: &Counter) -> Verdict {
        if ask.cost == 0 {
            return Verdict::PASS;
        }
        let units = self.units.saturating_add(ask.cost);
        let Some(after) = limit.after_window() else { return limit.check(Ask { cost: units, ..ask }, counter) };
        let (nanos, seen) = (ask.now.as_nanos(), counter.seen.as_ref());
        if WindowCount::count_at(seen, nanos).saturating_add(units) <= after.free {
            return Verdict::PASS;
        }
        let own =
            |enforced: u64, now| limit.check_own(Ask { cost: enforced.saturating_add(ask.cost), now, ..ask }, counter);
        let verdict = own(self.enforced, ask.now);
        // When the period of `seen` ends, units are free again and fewer are enforced.
        let left = WindowCount::reset_after(seen, nanos);
        let frees = units <= after.free || self.enforced_later < self.enforced;
        match verdict {
            Verdict::Deny(retry) if frees && !left.is_zero() && retry > Retry::After(left) => {
                let later = if units <= after.free { Verdict::PASS } else { own(self.enforced_later, ask.now + left) };
                match later {
                    Verdict::Allow { .. } => Verdict::Deny(Retry::After(left)),
                    Verdict::Deny(Retry::After(wait)) => Verdict::Deny(Retry::After(left + wait)),
                    never => never,
                }
            }
            _ => verdict,
        }
    }

    /// Adds the units of `ask`.
    fn count(&mut self, ask: Ask, limit: &Limit, counter: &Counter) {
        let cost = ask.cost.min(MAX_COUNT);
        let units = self.units.saturating_add(cost);
        if let Some(after) = limit.after_window() {
            let seen = WindowCount::count_at(counter.seen.as_ref(), ask.now.as_nanos());
            // As `Limit::charge` counts: from the last free unit on.
            if seen.saturating_add(units) >= after.free {
                self.enforced = self.enforced.saturating_add(cost);
            }
            if units >= after.free {
                self.enforced_later = self.enforced_later.saturating_add(cost);
            }
        }
        self.units = units;
    }
}
