//! One limit at many counts.
//!
//! State      A store with one counter per subject and count; for each subject the counts that denied it, as bits.
//! Invariant  Requests and subjects are counted by the *rank* of the subject, the number of zero bits at the end of its
//!            hash. A sample is halved by dropping the lowest rank, without a record of each subject.

use flowgate::{
    Ask, CounterId, Hit, Limit, MemoryConfig, MemoryStore, Op, Plan, RuleFlags, Seed, Subject, Time, WhenFull,
};
use flowgate_api::Operation;
use flowgate_engine::{Request, RuleDef};
use hashbrown::{DefaultHashBuilder, HashMap};
use std::hash::BuildHasher;

use super::CurveBounds;
use super::variants;
use crate::format;
use crate::summary::Point;

/// The number of ranks that are counted apart. The smallest sample is one subject in 2^31.
const RANK_COUNT: usize = 32;
/// The bound of the store divided by this number is the number of requests between two checks of its size. A request
/// adds at most a few counters per count, so the store grows by less than a tenth in between.
const SIZE_CHECK_BYTES: usize = 32 << 10;
/// The number of subjects, or requests, in 1000 that a count must spare.
const SPARED_PER_MILLE: u64 = 999;

/// The results of one limit at other counts.
#[derive(Debug)]
pub struct Curve {
    /// The position of the rule.
    pub rule: usize,
    /// The value of `limits_by` of this curve.
    pub case: Option<String>,
    /// The index of the limit in its list.
    pub number: usize,
    /// The limit as configured.
    pub limit: Limit,
    /// The fields whose values are the rule's subject.
    pub by: Vec<String>,
    flags: RuleFlags,
    memory: MemoryStore,
    bounds: CurveBounds,
    hasher: DefaultHashBuilder,
    variants: Vec<Variant>,
    /// The denials of each variant.
    denied: Vec<Counts>,
    subjects: HashMap<Subject, u32>,
    seen: Counts,
    /// The lowest rank whose subjects are counted.
    min_rank: usize,
    requests_since_start: u64,
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
    requests: [u64; RANK_COUNT],
    subjects: [u64; RANK_COUNT],
}

impl Curve {
    pub(super) fn new(
        def: &RuleDef,
        rule: usize,
        case: Option<String>,
        number: usize,
        limit: &Limit,
        bounds: CurveBounds,
    ) -> Curve {
        let config = MemoryConfig { max_bytes: bounds.bytes, when_full: WhenFull::Evict, seed: Seed::random() };
        let memory = MemoryStore::new(config);
        let variant = |micros: u64| {
            // Every count makes a valid limit; a test tries all algorithms.
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
            flags: RuleFlags { count_denied: def.count_denied, shadow: false },
            denied: vec![Counts::default(); variants.len()],
            variants,
            memory,
            bounds,
            hasher: DefaultHashBuilder::default(),
            subjects: HashMap::new(),
            seen: Counts::default(),
            min_rank: 0,
            requests_since_start: 0,
            key: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, operation: Operation, request: &Request<'_>, now: Time) {
        let subject = self.subject(request);
        let rank = (self.hasher.hash_one(subject).trailing_zeros() as usize).min(RANK_COUNT - 1);
        if rank < self.min_rank {
            return;
        }
        match operation {
            Operation::Take => self.take(subject, rank, request.cost, now),
            Operation::Record => self.apply(Op::Record, subject, request.cost, now),
            Operation::Refund => self.apply(Op::Refund, subject, request.cost, now),
            Operation::Reset => {
                self.variants.iter().for_each(|variant| _ = self.memory.reset(subject.counter(variant.id)))
            }
            Operation::Peek => return,
        }
        self.keep_within_bounds(now);
    }

    fn apply(&self, op: Op, subject: Subject, cost: u64, now: Time) {
        for variant in &self.variants {
            self.memory.apply_one(Ask::new(op, cost, now), subject.counter(variant.id), &variant.limit);
        }
    }

    fn take(&mut self, subject: Subject, rank: usize, cost: u64, now: Time) {
        let Curve { variants, denied, flags, memory, seen, subjects, .. } = self;
        seen.requests[rank] += 1;
        let known = subjects.entry(subject).or_insert_with(|| {
            seen.subjects[rank] += 1;
            0
        });
        for (bit, (variant, denied)) in variants.iter().zip(denied).enumerate() {
            let mut hit = [Hit::new(subject.counter(variant.id), &variant.limit).in_rule(0, *flags)];
            memory.apply(&mut Plan::one(Ask::new(Op::Take, cost, now), &mut hit));
            if !hit[0].outcome().allowed() {
                denied.requests[rank] += 1;
                denied.subjects[rank] += u64::from(*known & 1 << bit == 0);
                *known |= 1 << bit;
            }
        }
    }

    /// The subject of a request: the values of `by`, each preceded by its length.
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
        self.requests_since_start += 1;
        let is_due = self.requests_since_start.is_multiple_of((self.bounds.bytes / SIZE_CHECK_BYTES).max(1) as u64);
        let is_full = is_due && self.memory.stats().bytes > self.bounds.bytes / 5 * 4;
        if (is_full || self.subjects.len() > self.bounds.subjects) && self.min_rank + 1 < RANK_COUNT {
            self.halve();
            self.memory.sweep(now);
        }
    }

    #[cold]
    fn halve(&mut self) {
        self.min_rank += 1;
        let Curve { subjects, memory, variants, hasher, min_rank, .. } = self;
        subjects.retain(|subject, _| {
            let stays = hasher.hash_one(*subject).trailing_zeros() as usize >= *min_rank;
            if !stays {
                variants.iter().for_each(|variant| _ = memory.reset(subject.counter(variant.id)));
            }
            stays
        });
    }

    /// The number of requests in the sample.
    pub fn requests(&self) -> u64 {
        self.seen.requests[self.min_rank..].iter().sum()
    }

    /// The number of subjects in the sample.
    pub fn subjects_seen(&self) -> u64 {
        self.seen.subjects[self.min_rank..].iter().sum()
    }

    /// The sample holds one subject in this many.
    pub fn one_in(&self) -> u64 {
        1 << self.min_rank
    }

    /// Counters that the store evicted between two checks of its size.
    pub fn evicted(&self) -> u64 {
        self.memory.stats().evicted
    }

    /// The results at each count, in ascending order.
    pub fn points(&self) -> Vec<Point> {
        let sum = |counts: &[u64; RANK_COUNT]| counts[self.min_rank..].iter().sum();
        let point = |(variant, denied): (&Variant, &Counts)| Point {
            count: format::count(variant.micros),
            millionths: variant.micros,
            limit: variant.limit.to_string(),
            requests: sum(&denied.requests),
            subjects: sum(&denied.subjects),
        };
        self.variants.iter().zip(&self.denied).map(point).collect()
    }

    /// The index of the configured count.
    pub fn configured(&self) -> usize {
        let own = self.limit.rate().map_or(0, |rate| rate.micros());
        self.variants.iter().position(|variant| variant.micros == own).unwrap_or(0)
    }

    /// The index of the smallest count from which on at least 99.9 % of the subjects are spared, or of the requests if
    /// the rule counts all of them together; `None` if the largest count denies more.
    pub fn sparing(&self) -> Option<usize> {
        let by_requests = self.by.is_empty();
        let all = if by_requests { self.requests() } else { self.subjects_seen() };
        let spares = |point: &Point| {
            let denied = if by_requests { point.requests } else { point.subjects };
            (all - denied.min(all)) * 1000 >= all * SPARED_PER_MILLE
        };
        let points = self.points();
        let sparing = points.iter().rev().take_while(|point| spares(point)).count();
        if sparing == 0 { None } else { Some(points.len() - sparing) }
    }
}
