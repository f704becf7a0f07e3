//! One limit at many counts.
//!
//! State      A store with one counter per subject and count; for each subject the counts that denied it, as bits.
//! Invariant  Everything that is counted is counted by the *rank* of its subject, the number of zeros at the end of
//!            its hash, so that a sample can be halved later without having kept what every subject did.

use flowgate::{CounterId, Limit, Memory, MemoryConfig, Op, Rule, Seed, Subject, Time, WhenFull};
use flowgate_engine::{Request, RuleDef};
use hashbrown::{DefaultHashBuilder, HashMap};
use std::hash::BuildHasher;

use super::Bounds;
use super::variants;

/// Ranks that are told apart; the sample is never smaller than one in 2^31.
const RANKS: usize = 32;
/// The store's size is looked at once in so many bytes' worth of requests, each of which adds at most a few counters
/// per count: it grows by less than a tenth in between.
const LOOK_EVERY: usize = 32 << 10;
/// Subjects that a count is to spare, of 1000.
const SPARED: u64 = 999;

/// What one limit would have done at other counts.
#[derive(Debug)]
pub struct Curve {
    /// The position of the rule.
    pub rule: usize,
    /// The value of `limits_by` it belongs to.
    pub case: Option<String>,
    /// Which of the limits there, from 0.
    pub number: usize,
    /// The limit as it is configured.
    pub limit: Limit,
    by: Vec<String>,
    behaviour: Rule,
    memory: Memory,
    bounds: Bounds,
    hasher: DefaultHashBuilder,
    variants: Vec<Variant>,
    /// What each variant has denied.
    denied: Vec<Counts>,
    subjects: HashMap<Subject, u32>,
    seen: Counts,
    /// Subjects of a lower rank are no longer looked at.
    level: usize,
    ticks: u64,
    key: Vec<u8>,
}

#[derive(Debug)]
struct Variant {
    micros: u64,
    limit: Limit,
    id: CounterId,
}

/// Requests and subjects, by the rank of the subject.
#[derive(Clone, Debug, Default)]
struct Counts {
    requests: [u64; RANKS],
    subjects: [u64; RANKS],
}

/// What would have happened at one count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The count in millionths.
    pub micros: u64,
    /// The limit with that count.
    pub limit: Limit,
    /// Requests that would have been denied.
    pub requests: u64,
    /// Subjects of which a request would have been denied.
    pub subjects: u64,
}

/// The smallest count that spares 99.9 % of the subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spared {
    /// The index of its point.
    At(usize),
    /// Not even the largest that was tried.
    Beyond,
}

impl Curve {
    pub(super) fn new(
        def: &RuleDef,
        rule: usize,
        case: Option<String>,
        number: usize,
        limit: &Limit,
        bounds: Bounds,
    ) -> Curve {
        let config = MemoryConfig { max_bytes: bounds.bytes, when_full: WhenFull::Evict, seed: Seed::random() };
        let memory = Memory::new(config);
        let variant = |micros: u64| {
            // Every count that is tried makes a limit; a test goes through the algorithms.
            let limit = variants::with_count(limit, micros).ok()?;
            Some(Variant { micros, limit, id: memory.counter(&micros.to_le_bytes()) })
        };
        let variants: Vec<Variant> = variants::counts(limit).into_iter().filter_map(variant).collect();
        Curve {
            rule,
            case,
            number,
            limit: limit.clone(),
            by: def.by.clone(),
            behaviour: Rule { id: 0, count_denied: def.count_denied, shadow: false },
            denied: vec![Counts::default(); variants.len()],
            variants,
            memory,
            bounds,
            hasher: DefaultHashBuilder::default(),
            subjects: HashMap::new(),
            seen: Counts::default(),
            level: 0,
            ticks: 0,
            key: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, op: Option<Op>, request: &Request<'_>, now: Time) {
        let subject = self.subject(request);
        let rank = (self.hasher.hash_one(subject).trailing_zeros() as usize).min(RANKS - 1);
        if rank < self.level {
            return;
        }
        match op {
            None => self.variants.iter().for_each(|variant| _ = self.memory.reset(subject.counter(variant.id))),
            Some(Op::Take) => self.take(subject, rank, request.units(), now),
            Some(op @ (Op::Record | Op::Refund)) => {
                for variant in &self.variants {
                    self.memory.apply_one(op, request.units(), now, subject.counter(variant.id), &variant.limit);
                }
            }
            Some(_) => return,
        }
        self.keep_within_bounds(now);
    }

    fn take(&mut self, subject: Subject, rank: usize, cost: u64, now: Time) {
        let Curve { variants, denied, behaviour, memory, seen, subjects, .. } = self;
        seen.requests[rank] += 1;
        let known = subjects.entry(subject).or_insert_with(|| {
            seen.subjects[rank] += 1;
            0
        });
        let counters = variants.iter().map(|variant| (variant.id, &variant.limit, *behaviour));
        let mut counts = denied.iter_mut().enumerate();
        memory.take_each(subject, cost, now, counters, |decision| {
            let Some((bit, denied)) = counts.next().filter(|_| !decision.allowed()) else { return };
            denied.requests[rank] += 1;
            denied.subjects[rank] += u64::from(*known & 1 << bit == 0);
            *known |= 1 << bit;
        });
    }

    /// The subject of a request: the values of `by`, each with its length before it.
    fn subject(&mut self, request: &Request<'_>) -> Subject {
        self.key.clear();
        for field in &self.by {
            let value = request.get(field).unwrap_or_default();
            self.key.extend_from_slice(&(value.len() as u64).to_le_bytes());
            self.key.extend_from_slice(value.as_bytes());
        }
        self.memory.subject(&self.key)
    }

    fn keep_within_bounds(&mut self, now: Time) {
        self.ticks += 1;
        let look = self.ticks.is_multiple_of((self.bounds.bytes / LOOK_EVERY).max(1) as u64);
        let full = look && self.memory.stats().bytes > self.bounds.bytes / 5 * 4;
        if (full || self.subjects.len() > self.bounds.subjects) && self.level + 1 < RANKS {
            self.halve();
            self.memory.sweep(now);
        }
    }

    #[cold]
    fn halve(&mut self) {
        self.level += 1;
        let Curve { subjects, memory, variants, hasher, level, .. } = self;
        subjects.retain(|subject, _| {
            let stays = hasher.hash_one(*subject).trailing_zeros() as usize >= *level;
            if !stays {
                variants.iter().for_each(|variant| _ = memory.reset(subject.counter(variant.id)));
            }
            stays
        });
    }

    /// Requests that it has seen, of the sample.
    pub fn requests(&self) -> u64 {
        self.seen.requests[self.level..].iter().sum()
    }

    /// Subjects that it has seen, of the sample.
    pub fn subjects_seen(&self) -> u64 {
        self.seen.subjects[self.level..].iter().sum()
    }

    /// One subject in so many was looked at.
    pub fn one_in(&self) -> u64 {
        1 << self.level
    }

    /// Counters that were forgotten early all the same, because one request brought too many at once.
    pub fn evicted(&self) -> u64 {
        self.memory.stats().evicted
    }

    /// What would have happened at each count, ascending.
    pub fn points(&self) -> Vec<Point> {
        let sum = |counts: &[u64; RANKS]| counts[self.level..].iter().sum();
        let point = |(variant, denied): (&Variant, &Counts)| Point {
            micros: variant.micros,
            limit: variant.limit.clone(),
            requests: sum(&denied.requests),
            subjects: sum(&denied.subjects),
        };
        self.variants.iter().zip(&self.denied).map(point).collect()
    }

    /// Which of the points is the configured one.
    pub fn configured(&self) -> usize {
        let own = self.limit.rate().map_or(0, |rate| rate.micros());
        self.variants.iter().position(|variant| variant.micros == own).unwrap_or(0)
    }

    /// The smallest of the counts from which on 99.9 % of the subjects are spared.
    pub fn spared(&self) -> Spared {
        let all = self.subjects_seen();
        let spares = |point: &Point| (all - point.subjects.min(all)) * 1000 >= all * SPARED;
        let points = self.points();
        let sparing = points.iter().rev().take_while(|point| spares(point)).count();
        if sparing == 0 { Spared::Beyond } else { Spared::At(points.len() - sparing) }
    }
}
