//! Takes for several keys at once: their counters are prefetched together, so that their cache misses overlap.

use smallvec::SmallVec;

use super::Limiter;
use crate::key_bytes::KeyBytes;
use crate::limit::Algorithm;
use crate::memory::{CounterId, PrefetchGroup, Subject};

/// The number of keys that are prefetched together. More keys gain nothing, because their cache lines evict each other.
const GROUP_KEYS: usize = 16;

impl Limiter {
    /// Takes one unit for each of several keys, one after the other, at one reading of the clock. Calls `answer` with each
    /// decision, in the order of the keys.
    ///
    /// The decisions are those of one [`take`](Limiter::take) for each key: some may pass and others not. With many keys this is
    /// faster, because the processor fetches the counters of later keys while earlier ones are decided.
    ///
    /// ```
    /// use flowgate::Limiter;
    ///
    /// let limiter = Limiter::new("2/60s")?;
    /// let mut passed = Vec::new();
    /// limiter.take_each(["ada", "bob", "ada", "ada"], |decision| passed.push(decision.allowed()));
    /// assert_eq!(passed, [true, true, true, false]);
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    pub fn take_each<K: KeyBytes>(
        &self,
        keys: impl IntoIterator<Item = K>,
        mut answer: impl FnMut(crate::decision::Decision),
    ) {
        let at = self.inner.clock.read();
        let mut keys = keys.into_iter();
        loop {
            let group: SmallVec<[Subject; GROUP_KEYS]> =
                keys.by_ref().take(GROUP_KEYS).map(|key| self.subject(key)).collect();
            if group.is_empty() {
                return;
            }
            self.prefetch(&group);
            group.into_iter().for_each(|subject| answer(self.take_subject(subject, 1, at)));
        }
    }

    fn prefetch(&self, group: &[Subject]) {
        let memory = &self.inner.memory;
        let keys = group.iter().map(|subject| subject.counter(CounterId::default()));
        let slides =
            |limits: &[super::NamedLimit]| limits.iter().any(|named| named.limit.algorithm() == Algorithm::Sliding);
        if self.inner.limits.read(slides) {
            let mut group = PrefetchGroup::new();
            keys.for_each(|key| group.push(key, 1));
            memory.prefetch_group(&mut group);
        } else {
            keys.for_each(|key| memory.prefetch(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::decision::Decision;
    use crate::time::{Span, Time};

    #[test]
    fn many_keys_are_answered_as_one_by_one() {
        for limits in [&["3/60s"][..], &["bucket 2/60s"], &["4/60s", "2/5s", "fixed 3/30s"]] {
            let limiter = || {
                let clock = ManualClock::new(Time::from_secs(1_700_000_000));
                (Limiter::builder(limits).clock(clock.clone()).build().unwrap(), clock)
            };
            let ((together, first), (alone, second)) = (limiter(), limiter());
            for round in 0..8 {
                let keys: Vec<String> = (0..50).map(|number| format!("user {}", number * round % 23)).collect();
                let mut decisions = Vec::new();
                together.take_each(&keys, |decision| decisions.push(decision));
                let expected: Vec<Decision> = keys.iter().map(|key| alone.take(key)).collect();
                assert_eq!(decisions, expected, "{limits:?}, round {round}");
                first.advance(Span::from_secs(7));
                second.advance(Span::from_secs(7));
            }
        }
        Limiter::new("1/s").unwrap().take_each::<&str>([], |_| unreachable!("there are no keys"));
    }
}
