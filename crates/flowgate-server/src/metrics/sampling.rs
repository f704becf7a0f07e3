//! A few of many: what is too dear to note of every request is noted of some, each standing for several.
//!
//! Rule       Each thread notes the first [`EXACT`] of a slice of time (about an eighth of a second), each for itself, and
//!            of the rest one in [`ONE_IN`], at random distances, which then stands for so many. So a quiet server is
//!            exact and a busy one pays a decrement.

use std::cell::Cell;

use flowgate::Time;

/// So many of a slice of time are all noted.
const EXACT: u32 = 64;

/// Of those beyond, one in so many.
const ONE_IN: u32 = 64;

/// A slice of time has 2^27 nanoseconds.
const SLICE_BITS: u32 = 27;

/// What is sampled: each kind by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Who asks.
    Asked,
    /// Who is denied.
    Denied,
    /// How long an answer takes.
    Latency,
}

/// The samples of one kind on one thread.
struct Sampler {
    /// The next one to be noted, counted from here.
    distance: Cell<u32>,
    /// For how many that one stands.
    weight: Cell<u32>,
    slice: Cell<u64>,
    noted: Cell<u32>,
    random: Cell<u32>,
}

impl Sampler {
    const fn new(seed: u32) -> Sampler {
        Sampler {
            distance: Cell::new(1),
            weight: Cell::new(1),
            slice: Cell::new(0),
            noted: Cell::new(0),
            random: Cell::new(seed),
        }
    }

    #[inline]
    fn next(&self, now: impl FnOnce() -> Time) -> Option<u32> {
        let distance = self.distance.get() - 1;
        self.distance.set(distance);
        if distance == 0 { Some(self.note(now())) } else { None }
    }

    /// Chooses the one after this.
    #[cold]
    fn note(&self, now: Time) -> u32 {
        let weight = self.weight.get();
        let slice = now.as_nanos() >> SLICE_BITS;
        let noted = if self.slice.replace(slice) == slice { self.noted.get() + 1 } else { 1 };
        self.noted.set(noted.min(EXACT));
        if noted < EXACT {
            self.distance.set(1);
            self.weight.set(1);
        } else {
            // From 1 to twice the mean less one: the mean is as said. (Marsaglia's generator, never zero.)
            let mut random = self.random.get();
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            self.random.set(random);
            self.distance.set(1 + random % (2 * ONE_IN - 1));
            self.weight.set(ONE_IN);
        }
        weight
    }
}

/// Whether to note this one, and then for how many it stands. Mostly the time is not asked for.
#[inline]
pub(crate) fn weight(kind: Kind, now: impl FnOnce() -> Time) -> Option<u32> {
    thread_local! {
        static SAMPLERS: [Sampler; 3] = const { [Sampler::new(0x9e37_79b9), Sampler::new(0x85eb_ca6b), Sampler::new(0xc2b2_ae35)] };
    }
    SAMPLERS.with(|samplers| samplers[kind as usize].next(now))
}

#[cfg(test)]
mod tests {
    use flowgate::Span;

    use super::*;

    const START: Time = Time::from_secs(1_700_000_000);

    #[test]
    fn few_are_all_noted_and_many_stand_for_all() {
        let sampler = Sampler::new(1);
        let few: Vec<_> = (0..50).map(|_| sampler.next(|| START)).collect();
        assert_eq!(few, vec![Some(1); 50]);
        let (mut noted, mut stands_for) = (0, 0);
        for _ in 0..1_000_000 {
            if let Some(weight) = sampler.next(|| START + Span::from_secs(1)) {
                (noted, stands_for) = (noted + 1, stands_for + u64::from(weight));
            }
        }
        assert!((12_000..20_000).contains(&noted), "{noted}");
        assert!((950_000..1_050_000).contains(&stands_for), "{stands_for}");
    }

    #[test]
    fn it_is_exact_again_after_a_rush() {
        let sampler = Sampler::new(1);
        assert!((0..10_000).filter_map(|_| sampler.next(|| START)).count() < 1000);
        let later = START + Span::from_secs(1);
        let skipped = (0..2 * ONE_IN).take_while(|_| sampler.next(|| later).is_none()).count();
        assert!(skipped < 2 * ONE_IN as usize);
        assert_eq!((0..50).filter_map(|_| sampler.next(|| later)).sum::<u32>(), 50);
    }

    #[test]
    fn kinds_do_not_disturb_each_other() {
        assert!((0..1000).filter_map(|_| weight(Kind::Asked, || START)).count() < 1000);
        assert_eq!(weight(Kind::Denied, || START), Some(1));
        assert_eq!(weight(Kind::Latency, || START), Some(1));
    }
}
