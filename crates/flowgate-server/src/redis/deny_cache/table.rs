//! The table of denials that are remembered.
//!
//! State      For a question (the counters that a request meets, and its cost): the denial, and until when it holds.
//!            For each of [`EPOCH_COUNT`] groups of counters: how often something was given back to one of them.
//! Rule       A denial holds until the first of the limits that were exceeded lets go, and for at most `longest`: for
//!            so long a refund or a reset through another node may go unnoticed. Through this node it ends at once.
//! Rule       A denial holds only for the cost that was denied. A lower cost may pass; a higher one has a longer wait,
//!            and a client counts on the wait that it is told.
//! Invariant  A denial is kept only if nothing was given back to its counters since the question was sent.
//! Bound      At most [`MAX_DENIALS`]; a full shard forgets what has ended, and if that is not enough all of it.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use flowgate::{Span, Time};
use flowgate_engine::AdHocKey;
use hashbrown::HashMap;

use super::Denial;
use crate::lock::Lock;

const SHARD_COUNT: usize = 16;
/// The most denials: about 16 MB of the usual size.
const MAX_DENIALS: usize = 64 * 1024;
const EPOCH_COUNT: usize = 4096;

/// Denials by their questions.
#[derive(Debug)]
pub(crate) struct DenyTable<A = Denial> {
    shards: Box<[Lock<Denials<A>>]>,
    epochs: Box<[AtomicU32]>,
    longest: Span,
    hasher: RandomState,
}

type Denials<A> = HashMap<u128, Entry<A>>;

#[derive(Debug)]
struct Entry<A> {
    answer: A,
    at: Time,
    until: Time,
    epoch: Epoch,
}

/// A question as a key of the table: a hash of the counters and the cost, under a key that only this process knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableQuestion {
    pub(crate) hash: u128,
    pub(crate) epoch: Epoch,
}

/// The number of refunds and resets of the question's counters, when it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u32);

impl<A: Clone> DenyTable<A> {
    pub(crate) fn new(longest: Span) -> DenyTable<A> {
        DenyTable {
            shards: (0..SHARD_COUNT).map(|_| Lock::default()).collect(),
            epochs: (0..EPOCH_COUNT).map(|_| AtomicU32::new(0)).collect(),
            longest,
            hasher: RandomState::new(),
        }
    }

    /// A hash under a key that only this process knows.
    pub(crate) fn hash(&self, value: impl Hash) -> u64 {
        self.hasher.hash_one(value)
    }

    /// The counter of an ad hoc key.
    pub(crate) fn key_counter(&self, key: AdHocKey<'_>) -> u128 {
        u128::from(self.hash((1_u8, key))) << 64 | u128::from(self.hash((2_u8, key)))
    }

    /// A question about these counters. `asked` differs between different questions about the same counters.
    pub(crate) fn question(&self, counters: impl Iterator<Item = u128>, asked: u128) -> TableQuestion {
        // The counters are hashes already, so mixing them keeps different questions apart.
        let (mut hash, mut epoch) = (asked.wrapping_mul(ODD_FACTOR), 0_u32);
        for counter in counters {
            hash = (hash ^ counter).wrapping_mul(ODD_FACTOR).rotate_left(47);
            epoch = epoch.wrapping_add(self.epoch_of(counter).load(SeqCst));
        }
        TableQuestion { hash, epoch: Epoch(epoch) }
    }

    /// The denial of a question, if there is one that holds, and its age.
    pub(crate) fn get(&self, question: TableQuestion, now: impl FnOnce() -> Time) -> Option<(A, Span)> {
        let shard = self.shard(question);
        let denial = shard.get(&question.hash).filter(|denial| denial.epoch == question.epoch)?;
        let now = now();
        (now < denial.until).then(|| (denial.answer.clone(), now.since(denial.at)))
    }

    /// Keeps a denial that the store gave at `at` to a question that was asked before, for `wait` from then.
    pub(crate) fn put(&self, question: TableQuestion, answer: A, at: Time, wait: Span) {
        let until = at + wait.min(self.longest);
        let mut shard = self.shard(question);
        if shard.len() >= MAX_DENIALS / SHARD_COUNT && !shard.contains_key(&question.hash) {
            shard.retain(|_, denial| at < denial.until);
            if shard.len() >= MAX_DENIALS / SHARD_COUNT {
                shard.clear();
            }
        }
        shard.insert(question.hash, Entry { answer, at, until, epoch: question.epoch });
    }

    /// Notes that units were, or may have been, given back to these counters.
    pub(crate) fn end(&self, counters: impl Iterator<Item = u128>) {
        counters.for_each(|counter| _ = self.epoch_of(counter).fetch_add(1, SeqCst));
    }

    fn epoch_of(&self, counter: u128) -> &AtomicU32 {
        &self.epochs[(counter >> 64) as usize % EPOCH_COUNT]
    }

    fn shard(&self, question: TableQuestion) -> MutexGuard<'_, Denials<A>> {
        self.shards[question.hash as usize % SHARD_COUNT].lock()
    }
}

/// An odd factor: multiplying by it loses no information.
const ODD_FACTOR: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1_700_000_000);
    const A: u128 = 17 << 64;
    const B: u128 = 18 << 64;

    fn cache() -> DenyTable<&'static str> {
        DenyTable::new(Span::from_secs(1))
    }

    fn ask(cache: &DenyTable<&'static str>, counters: &[u128], cost: u128, after: Span) -> Option<&'static str> {
        cache.get(cache.question(counters.iter().copied(), cost), || NOW + after).map(|(answer, _)| answer)
    }

    #[test]
    fn a_denial_holds_until_it_ends() {
        let cache = cache();
        assert_eq!(ask(&cache, &[A], 1, Span::ZERO), None);
        cache.put(cache.question([A].into_iter(), 1), "denied", NOW, Span::from_millis(500));
        assert_eq!(ask(&cache, &[A], 1, Span::from_millis(499)), Some("denied"));
        assert_eq!(ask(&cache, &[A], 1, Span::from_millis(500)), None);
        cache.put(cache.question([A].into_iter(), 1), "denied", NOW, Span::from_secs(60));
        assert_eq!(ask(&cache, &[A], 1, Span::from_millis(999)), Some("denied"));
        assert_eq!(ask(&cache, &[A], 1, Span::from_secs(1)), None, "another node may have given back");
    }

    #[test]
    fn only_an_equal_question_is_answered_from_the_cache() {
        let cache = cache();
        cache.put(cache.question([A, B].into_iter(), 2), "denied", NOW, Span::from_secs(1));
        assert_eq!(ask(&cache, &[A, B], 2, Span::ZERO), Some("denied"));
        for (counters, cost) in [(&[A, B][..], 1), (&[A, B], 3), (&[B, A], 2), (&[A], 2), (&[B], 2), (&[], 2)] {
            assert_eq!(ask(&cache, counters, cost, Span::ZERO), None);
        }
    }

    #[test]
    fn what_is_given_back_ends_it() {
        let cache = cache();
        let question = cache.question([A, B].into_iter(), 1);
        cache.put(question, "denied", NOW, Span::from_secs(1));
        cache.end([B].into_iter());
        assert_eq!(ask(&cache, &[A, B], 1, Span::ZERO), None);
        // The answer arrives after the refund, to a question from before it.
        cache.put(question, "denied", NOW, Span::from_secs(1));
        assert_eq!(ask(&cache, &[A, B], 1, Span::ZERO), None);
    }

    #[test]
    fn the_cache_stays_within_its_bound() {
        let cache = cache();
        for number in 0..3 * MAX_DENIALS as u128 {
            cache.put(cache.question([number << 64 | number].into_iter(), 1), "denied", NOW, Span::from_secs(1));
        }
        let kept: usize = cache.shards.iter().map(|shard| shard.lock().len()).sum();
        assert!((1..=MAX_DENIALS).contains(&kept), "{kept}");
    }
}
