//! The reference: the semantics of limits written down as plainly as possible, for one counter and for a plan.
//!
//! Nothing here is fast or small. Instants of a bucket are fractions over N, sliding is a list of what was counted
//! when, waits are found by trying. The library must give the same answers to the nanosecond.

mod plan;

use flowgate::{Decision, Retry, Span, Verdict};
pub use plan::{RuleHits, apply, together};

use super::calendars;
use super::specs::{Algorithm, DAYS, MICROS, Spec, Window};

const MAX_DEBT: u64 = 36_500 * DAYS;
const MAX_COST: u64 = 1_000_000_000_000;
const MAX_COUNTED: u64 = (1 << 53) - 1;

/// The state of one limit for one subject.
#[derive(Clone, Debug)]
pub struct Counter {
    /// The limit.
    pub spec: Spec,
    /// bucket and pace: in parts of a nanosecond, `spec.micros` to one. Zero when full.
    full_at: i128,
    /// fixed: when the window ends and what was counted in it.
    window: Option<(u64, u64)>,
    /// sliding: when each request was counted, and its units; oldest first.
    log: Vec<(u64, u64)>,
    /// approx: the start of the newest window, the units of the one before it and its own.
    pair: (u64, u64, u64),
    /// The window of `after`.
    seen: Option<(u64, u64)>,
}

impl Counter {
    /// A counter that was never used.
    pub fn new(spec: &Spec) -> Counter {
        let spec = spec.clone();
        Counter { spec, full_at: 0, window: None, log: Vec::new(), pair: (0, 0, 0), seen: None }
    }

    /// Whether a request of this cost passes at `now`.
    pub fn check(&self, now: u64, cost: u64) -> Verdict {
        if cost == 0 {
            return PASS;
        }
        if cost > MAX_COST {
            return NEVER;
        }
        let Some((free, _)) = self.spec.after else { return self.own_check(now, cost) };
        if self.seen_at(now) + cost <= free {
            return PASS;
        }
        let until_free = self.seen.map_or(0, |(ends_at, _)| ends_at.saturating_sub(now));
        match self.own_check(now, cost) {
            NEVER if cost <= free => after(until_free),
            Verdict::Deny(Retry::After(wait)) if cost <= free => after(until_free.min(wait.as_nanos())),
            verdict => verdict,
        }
    }

    /// Counts a request. A denied request is counted up to the cap only.
    pub fn charge(&mut self, now: u64, cost: u64, denied: bool) {
        let cost = cost.min(MAX_COST);
        if cost == 0 {
            return;
        }
        if let Some((free, window)) = self.spec.after.clone() {
            let seen = self.seen_at(now);
            let counted = if denied { (seen + cost).min(free).max(seen) } else { (seen + cost).min(MAX_COUNTED) };
            let ends_at = self.seen.filter(|&(ends_at, _)| now < ends_at).map_or(end(&window, now), |seen| seen.0);
            self.seen = Some((ends_at, counted));
            if seen + cost < free {
                return;
            }
        }
        self.own_charge(now, cost, denied);
    }

    /// Gives units back.
    pub fn refund(&mut self, now: u64, cost: u64) {
        let cost = cost.min(MAX_COST);
        if cost == 0 {
            return;
        }
        if let Some((free, _)) = self.spec.after {
            let seen = self.seen_at(now);
            self.seen = self.seen.filter(|_| seen > cost).map(|(ends_at, _)| (ends_at, seen - cost));
            if seen < free {
                return;
            }
        }
        self.own_refund(now, cost);
    }

    /// The decision of this verdict, with the numbers of the counter at `now`.
    pub fn answer(&self, now: u64, verdict: Verdict) -> Decision {
        let (mut limit, mut remaining, mut reset) = self.own_numbers(now);
        if let Some((free, _)) = self.spec.after {
            let seen = self.seen_at(now);
            if seen < free {
                (limit, remaining) = (free, free - seen);
            }
            reset = reset.max(self.seen.map_or(0, |(ends_at, _)| ends_at.saturating_sub(now)));
        }
        let reset_after = Span::from_nanos(reset);
        Decision { verdict, limit: Some(limit), remaining: Some(remaining), reset_after }
    }

    fn seen_at(&self, now: u64) -> u64 {
        self.seen.filter(|&(ends_at, _)| now < ends_at).map_or(0, |(_, count)| count)
    }

    fn own_check(&self, now: u64, cost: u64) -> Verdict {
        let (n, p) = (self.spec.count(), self.spec.period);
        match self.spec.algorithm {
            Algorithm::Bucket { burst } => {
                let excess = self.debt(now) + self.units(cost) - self.units(burst);
                match () {
                    () if cost > burst => NEVER,
                    () if excess <= 0 => PASS,
                    () => after(self.nanos(excess)),
                }
            }
            Algorithm::Pace { burst, max_wait } => {
                let delay = (self.debt(now) + self.units(cost) - self.units(burst)).max(0);
                let longest = max_wait.map(|nanos| self.fraction(nanos));
                match longest {
                    Some(longest) if self.units(cost) - self.units(burst) > longest => NEVER,
                    // After this wait the delay is `longest`. If the debt is above its own maximum even then, no wait
                    // helps: see below.
                    Some(longest) if delay > longest && self.units(burst) + longest <= self.fraction(MAX_DEBT) => {
                        after(self.nanos(delay - longest))
                    }
                    _ if self.debt(now) + self.units(cost) > self.fraction(MAX_DEBT) => NEVER,
                    _ => Verdict::Allow { delay: Span::from_nanos(self.nanos(delay)) },
                }
            }
            Algorithm::Fixed(_) => match self.window.filter(|&(ends_at, _)| now < ends_at) {
                _ if cost > n => NEVER,
                Some((ends_at, count)) if count + cost > n => after(ends_at - now),
                _ => PASS,
            },
            Algorithm::Sliding => {
                let fits = |at: u64| self.used(at) + cost <= n;
                match () {
                    () if cost > n => NEVER,
                    () if fits(now) => PASS,
                    // Room comes only when an entry leaves the log.
                    () => {
                        let mut leaving = self.log.iter().map(|(counted, _)| counted + p);
                        after(leaving.find(|&at| at > now && fits(at)).unwrap() - now)
                    }
                }
            }
            Algorithm::Approx => {
                let fits = |at: u64| {
                    let (start, previous, current) = self.pair_at(at);
                    let rest = u128::from(start + p - at.max(start));
                    u128::from(previous) * rest + u128::from(current + cost) * u128::from(p)
                        <= u128::from(n) * u128::from(p)
                };
                match () {
                    () if cost > n => NEVER,
                    () if fits(now) => PASS,
                    // If a cost fits after some wait, it fits after every longer wait. So the wait is found by halving,
                    // in microseconds.
                    () => {
                        let ahead = self.pair.0.saturating_sub(now);
                        let (mut short, mut enough) = (0, (ahead + 2 * p).div_ceil(MICROS));
                        while enough - short > 1 {
                            let middle = (short + enough) / 2;
                            if fits(now + middle * MICROS) { enough = middle } else { short = middle }
                        }
                        after(enough * MICROS)
                    }
                }
            }
        }
    }

    fn own_charge(&mut self, now: u64, cost: u64, denied: bool) {
        let (n, p) = (self.spec.count(), self.spec.period);
        match &self.spec.algorithm {
            Algorithm::Bucket { burst } | Algorithm::Pace { burst, .. } => {
                let debt = self.debt(now);
                let raised = debt + self.units(cost);
                let most = if denied { self.units(*burst) } else { self.fraction(MAX_DEBT) };
                self.full_at = self.fraction(now) + raised.min(most).max(debt);
            }
            Algorithm::Fixed(window) => {
                let (ends_at, count) = self.window.filter(|w| now < w.0).unwrap_or_else(|| (end(window, now), 0));
                let counted = if denied { (count + cost).min(n).max(count) } else { (count + cost).min(MAX_COUNTED) };
                self.window = Some((ends_at, counted));
            }
            Algorithm::Sliding => {
                self.log.retain(|&(counted, _)| now < counted + p);
                let newest = self.log.last().map_or(0, |&(counted, _)| counted);
                self.log.push((self.stamp(now).max(newest), cost));
                // The log keeps the newest N units.
                while let Some(surplus) = self.total().checked_sub(n).filter(|&surplus| surplus > 0) {
                    let oldest = &mut self.log[0].1;
                    *oldest -= surplus.min(*oldest);
                    self.log.retain(|&(_, units)| units > 0);
                }
            }
            Algorithm::Approx => {
                let (start, previous, current) = self.pair_at(now);
                let cap = if denied { n.max(current) } else { u64::from(u32::MAX) };
                self.pair = (start, previous, (current + cost).min(cap));
            }
        }
    }

    fn own_refund(&mut self, now: u64, cost: u64) {
        let p = self.spec.period;
        match self.spec.algorithm {
            Algorithm::Bucket { .. } | Algorithm::Pace { .. } => {
                let debt = (self.debt(now) - self.units(cost)).max(0);
                self.full_at = if debt == 0 { 0 } else { self.fraction(now) + debt };
            }
            Algorithm::Fixed(_) => {
                self.window = match self.window {
                    Some((ends_at, count)) if now < ends_at && count > cost => Some((ends_at, count - cost)),
                    _ => None,
                };
            }
            Algorithm::Sliding => {
                self.log.retain(|&(counted, _)| now < counted + p);
                let mut rest = cost;
                while let Some((_, units)) = self.log.last_mut().filter(|_| rest > 0) {
                    let taken = rest.min(*units);
                    (*units, rest) = (*units - taken, rest - taken);
                    self.log.retain(|&(_, units)| units > 0);
                }
            }
            Algorithm::Approx => {
                let (start, previous, current) = self.pair_at(now);
                let current = current.saturating_sub(cost);
                // If no unit is left, the counter is as if never used, without a newest window.
                self.pair = if previous + current == 0 { (0, 0, 0) } else { (start, previous, current) };
            }
        }
    }

    /// `limit`, `remaining`, `reset_after`.
    fn own_numbers(&self, now: u64) -> (u64, u64, u64) {
        let (n, p) = (self.spec.count(), self.spec.period);
        match self.spec.algorithm {
            Algorithm::Bucket { burst } | Algorithm::Pace { burst, .. } => {
                let room = (self.units(burst) - self.debt(now)).max(0);
                (burst, (room / self.units(1)) as u64, self.nanos(self.debt(now)))
            }
            Algorithm::Fixed(_) => {
                let (ends_at, count) = self.window.filter(|w| now < w.0).unwrap_or((now, 0));
                (n, n.saturating_sub(count), ends_at - now)
            }
            Algorithm::Sliding => {
                let last = self.log.last().map_or(0, |(counted, _)| counted + p);
                (n, n.saturating_sub(self.used(now)), last.saturating_sub(now))
            }
            Algorithm::Approx => {
                let (start, previous, current) = self.pair_at(now);
                let weight = i128::from(previous) * i128::from(start + p - now.max(start));
                let room = (i128::from(n) - i128::from(current)) * i128::from(p) - weight;
                let reset_at = match (previous, current) {
                    (0, 0) => now,
                    (_, 0) => start + p,
                    _ => start + 2 * p,
                };
                (n, room.div_euclid(i128::from(p)).max(0) as u64, reset_at - now)
            }
        }
    }

    fn debt(&self, now: u64) -> i128 {
        (self.full_at - self.fraction(now)).max(0)
    }

    /// Nanoseconds in steps of one N-th of a nanosecond (N in millionths).
    fn fraction(&self, nanos: u64) -> i128 {
        i128::from(nanos) * i128::from(self.spec.micros)
    }

    /// The steps for `cost` units: P for each unit, in millionths.
    fn units(&self, cost: u64) -> i128 {
        i128::from(cost) * i128::from(self.spec.period) * 1_000_000
    }

    /// Steps in nanoseconds, rounded up.
    fn nanos(&self, fraction: i128) -> u64 {
        let n = i128::from(self.spec.micros);
        ((fraction + n - 1) / n) as u64
    }

    /// sliding: the instant that the log keeps for a unit.
    fn stamp(&self, now: u64) -> u64 {
        if self.spec.count() <= 1_024 {
            return now;
        }
        let w = (self.spec.period / MICROS).div_ceil(1_024) * MICROS;
        (now / w + 1) * w
    }

    fn used(&self, now: u64) -> u64 {
        let inside = self.log.iter().filter(|&&(counted, _)| now < counted + self.spec.period);
        inside.map(|(_, units)| units).sum()
    }

    fn total(&self) -> u64 {
        self.log.iter().map(|(_, units)| units).sum()
    }

    /// approx: the window that decides at `now`, the units of the one before it and its own.
    fn pair_at(&self, now: u64) -> (u64, u64, u64) {
        let p = self.spec.period;
        let (newest, previous, current) = self.pair;
        match now / p * p {
            start if start <= newest => (newest, previous, current),
            start if start == newest + p => (start, current, 0),
            start => (start, 0, 0),
        }
    }
}

/// The verdict of a request that is allowed at once.
pub const PASS: Verdict = Verdict::Allow { delay: Span::ZERO };
/// The verdict of a request that never passes.
pub const NEVER: Verdict = Verdict::Deny(Retry::Never);

fn after(nanos: u64) -> Verdict {
    Verdict::Deny(Retry::After(Span::from_nanos(nanos)))
}

fn end(window: &Window, now: u64) -> u64 {
    match window {
        Window::Plain(length) => now + length,
        Window::Calendar(unit, zone) => calendars::end(*unit, zone, now),
    }
}
