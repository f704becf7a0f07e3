//! Samples: figures that are too costly for every request are noted for some, each of which stands for several.
//!
//! Rule       In each slice of time (about an eighth of a second) a thread notes the first [`SAMPLES_PER_SLICE`]
//!            requests, then as many that stand for 8 requests each, then for 64 each, and from there on one in 512.
//!            A quiet server is thus exact, and a busy one pays two comparisons and a decrement.
//! Invariant  The next request to be noted is chosen at random, independently of earlier requests. Samples are
//!            therefore unbiased, also across the end of a slice.

use std::cell::Cell;

use flowgate::Time;

/// The samples in a slice of time with each of [`WEIGHTS`] except the last.
const SAMPLES_PER_SLICE: u32 = 64;

/// The number of requests that a sample stands for, in this order.
const WEIGHTS: [u32; 4] = [1, 8, 64, 512];

/// A slice of time has 2^27 nanoseconds.
const SLICE_BITS: u32 = 27;

/// The kinds of samples, which are independent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// The subject of a request.
    Asked,
    /// The subject of a denied request.
    Denied,
    /// The duration of an answer.
    Latency,
    /// The subject of a request that a shadow rule would have denied.
    Shadow,
}

/// The samples of one kind on one thread.
struct Sampler {
    /// The number of requests until the next sample.
    distance: Cell<u32>,
    slice: Cell<u64>,
    /// The samples of this slice.
    noted: Cell<u32>,
    random: Cell<u64>,
}

impl Sampler {
    const fn new(seed: u64) -> Sampler {
        Sampler { distance: Cell::new(1), slice: Cell::new(0), noted: Cell::new(0), random: Cell::new(seed) }
    }

    #[inline]
    fn next(&self, now: Time) -> Option<u32> {
        let slice = now.as_nanos() >> SLICE_BITS;
        if self.slice.replace(slice) != slice {
            self.noted.set(0);
            self.distance.set(1);
        }
        let distance = self.distance.get() - 1;
        self.distance.set(distance);
        if distance == 0 { Some(self.note()) } else { None }
    }

    /// Takes this request as a sample and chooses the next one.
    #[cold]
    fn note(&self) -> u32 {
        let noted = self.noted.get();
        self.noted.set(noted.saturating_add(1));
        let next = weight_of(noted.saturating_add(1));
        self.distance.set(if next == 1 { 1 } else { self.random_distance(next) });
        weight_of(noted)
    }

    /// The distance to the next sample if each request is a sample with a probability of one in `mean`.
    fn random_distance(&self, mean: u32) -> u32 {
        // Marsaglia's generator, never zero.
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        // A number above zero and up to one, whose logarithm gives the distance.
        let chance = ((random >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        1 + (chance.ln() / (-1.0 / f64::from(mean)).ln_1p()) as u32
    }
}

/// The weight of the next sample in a slice with `noted` samples.
fn weight_of(noted: u32) -> u32 {
    WEIGHTS[WEIGHTS.len().min(1 + (noted / SAMPLES_PER_SLICE) as usize) - 1]
}

/// The weight of this request, if it is a sample.
#[inline]
pub(crate) fn weight(kind: Kind, now: Time) -> Option<u32> {
    thread_local! {
        static SAMPLERS: [Sampler; 4] = const {
            [
                Sampler::new(0x9e37_79b9_7f4a_7c15),
                Sampler::new(0xbf58_476d_1ce4_e5b9),
                Sampler::new(0x94d0_49bb_1331_11eb),
                Sampler::new(0xd6e8_feb8_6659_fd93),
            ]
        };
    }
    SAMPLERS.with(|samplers| samplers[kind as usize].next(now))
}

#[cfg(test)]
mod tests {
    use flowgate::Span;

    use super::*;

    const START: Time = Time::from_secs(1_700_000_000);
    const SLICE: Span = Span::from_nanos(1 << SLICE_BITS);

    fn rush(sampler: &Sampler, requests: usize, now: Time) -> (usize, u32) {
        let noted: Vec<u32> = (0..requests).filter_map(|_| sampler.next(now)).collect();
        (noted.len(), noted.iter().sum())
    }

    #[test]
    fn few_are_all_noted_and_many_stand_for_all() {
        let sampler = Sampler::new(1);
        assert_eq!(rush(&sampler, 50, START), (50, 50));
        let (noted, stands_for) = rush(&sampler, 1_000_000, START + SLICE);
        assert!((1_500..3_000).contains(&noted), "{noted}");
        assert!((900_000..1_100_000).contains(&stands_for), "{stands_for}");
    }

    #[test]
    fn slices_of_any_length_stand_for_all() {
        for requests in [100, 500, 3_000, 20_000] {
            let sampler = Sampler::new(1);
            let mut now = START;
            let mut sum = 0;
            for _ in 0..1_000 {
                now = now + SLICE;
                sum += rush(&sampler, requests, now).1;
            }
            let mean = sum as usize / 1_000;
            assert!(mean.abs_diff(requests) <= requests / 50, "{mean} for {requests}");
        }
    }

    #[test]
    fn sampling_is_exact_again_after_a_rush() {
        let sampler = Sampler::new(1);
        rush(&sampler, 1_000_000, START);
        assert_eq!(rush(&sampler, 50, START + SLICE), (50, 50));
    }

    #[test]
    fn kinds_do_not_disturb_each_other() {
        assert!((0..1000).filter_map(|_| weight(Kind::Asked, START)).count() < 1000);
        assert_eq!(weight(Kind::Denied, START), Some(1));
        assert_eq!(weight(Kind::Latency, START), Some(1));
    }
}
