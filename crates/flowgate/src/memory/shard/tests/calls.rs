//! Random calls of a store.

use super::*;

/// Any operation on any of some keys under any of these limits.
#[derive(Clone, Debug)]
pub(super) struct Call {
    op: Op,
    cost: u64,
    /// Subjects, each with the limit it meets.
    hits: Vec<(u32, usize)>,
    /// Whether the first subject may be banned.
    bans: bool,
    /// Whether the call takes the fast path for one limit.
    short: bool,
    pub(super) later: u64,
}

/// Limits of every algorithm.
pub(super) const MIXED: [&str; 7] = [
    "sliding 50/60s",
    "sliding 5000/20s",
    "bucket 5/s",
    "fixed 10/5s",
    "approx 10/30s",
    "sliding 20/10s after=5/40s",
    "pace 5/s after=3/5s",
];

pub(super) fn call(keys: u32) -> impl Strategy<Value = Call> {
    let op = prop_oneof![8 => Just(Op::Take), 2 => Just(Op::Record), 1 => Just(Op::Refund), 2 => Just(Op::Peek)];
    let several = prop::collection::vec((0..keys, 0..MIXED.len()), 1..4);
    let of_one = (0..keys, prop::sample::subsequence((0..MIXED.len()).collect::<Vec<_>>(), 1..=MIXED.len()));
    let of_one = of_one.prop_map(|(subject, limits)| limits.into_iter().map(|limit| (subject, limit)).collect());
    let later = prop_oneof![6 => 0..SECOND / 50, 1 => 0..10 * SECOND];
    (op, 1..4u64, prop_oneof![several, of_one], any::<bool>(), any::<bool>(), later)
        .prop_map(|(op, cost, hits, bans, short, later)| Call { op, cost, hits, bans, short, later })
}

pub(super) fn apply(memory: &MemoryStore, limits: &[Limit], ban: &Ban, call: &Call, now: u64) {
    let &Call { op, cost, ref hits, bans, short, .. } = call;
    let key = |subject: u32, name: &[u8]| memory.subject(&subject.to_le_bytes()).counter(memory.counter(name));
    let counter = |&(subject, limit): &(u32, usize)| key(subject, &limit.to_le_bytes());
    let now = Time::from_nanos(now);
    if short {
        memory.apply_one(Ask::new(op, cost, now), counter(&hits[0]), &limits[hits[0].1]);
        return;
    }
    let mut bans = if bans { vec![BanHit::new(key(hits[0].0, b"ban"), ban, 0)] } else { Vec::new() };
    let hit = |hit: &(u32, usize)| Hit::new(counter(hit), &limits[hit.1]);
    let mut hits: Vec<Hit<'_>> = hits.iter().map(hit).collect();
    memory.apply(&mut Plan::banning(Ask::new(op, cost, now), &mut hits, &mut bans));
}
