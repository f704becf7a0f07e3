//! The portable form of `bucket` and `pace`: exact instants in whole microseconds and ticks of a microsecond.

use super::{Bucket, FullAt, Pace, Ticks};
use crate::algorithm::{MAX_DEBT_NANOS, MAX_EXACT_INTEGER};
use crate::ask::{Ask, Op};
use crate::limit::MAX_COUNT;
use crate::portable::{Arguments, Portable};
use crate::time::NANOS_PER_MICRO;

const MAX_DEBT_MICROS: u64 = MAX_DEBT_NANOS / NANOS_PER_MICRO;

/// The terms of a bucket. `room` is the debt at which a request still passes; without room no request passes.
struct BucketTerms {
    ticks: u64,
    want: Exact,
    room: Option<Exact>,
    capacity: Exact,
}

impl<T: Ticks> Bucket<T> {
    /// The terms of a bucket that lets a request beyond its capacity wait for up to `max_wait` ticks.
    fn terms(&self, ask: Ask, max_wait: u128) -> BucketTerms {
        let (scale, cost) = (Scale::new(self), ask.cost);
        let asked = self.ticks_per_unit.wide() * u128::from(cost.min(MAX_COUNT));
        let (capacity, longest) = (self.capacity.wide(), self.longest.wide());
        // No request may raise the debt above `longest`.
        let most = (capacity + max_wait).min(longest);
        let too_much = asked > capacity + max_wait || cost > MAX_COUNT;
        let room = most.checked_sub(asked).filter(|_| !too_much);
        let at_most = if ask.op == Op::Refund { MAX_EXACT_INTEGER } else { MAX_DEBT_MICROS };
        BucketTerms {
            ticks: scale.per_micro(),
            want: scale.exact(asked, at_most),
            room: room.map(|room| scale.exact(room, MAX_DEBT_MICROS)),
            capacity: scale.exact(capacity, MAX_DEBT_MICROS),
        }
    }
}

impl BucketTerms {
    fn write(self, args: &mut impl Arguments) {
        self.want.write(args);
        match self.room {
            Some(room) => room.write(args),
            None => {
                // A room of -1 denies every request: no debt is that small.
                args.minus_one();
                args.number(0);
            }
        }
        self.capacity.write(args);
        args.number(self.ticks);
    }
}

impl<T: Ticks> Portable for Bucket<T> {
    const LETTER: u8 = b'b';

    fn write_terms(&self, ask: Ask, args: &mut impl Arguments) {
        self.terms(ask, 0).write(args);
    }

    fn read(&self, reply: &mut impl Iterator<Item = u64>) -> Option<Option<FullAt>> {
        let full_at = Exact { micros: reply.next()?, ticks: reply.next()? };
        Some((full_at != Exact::default()).then(|| Scale::new(self).full_at(full_at)))
    }

    fn write_undo(&self, full_at: &FullAt, ask: Ask, args: &mut impl Arguments) {
        let BucketTerms { want, ticks, .. } = self.terms(ask, 0);
        args.letter(b'b');
        Scale::new(self).exact_full_at(*full_at).write(args);
        want.write(args);
        args.number(ticks);
    }
}

impl Portable for Pace {
    const LETTER: u8 = b'p';

    fn write_terms(&self, ask: Ask, args: &mut impl Arguments) {
        self.bucket.terms(ask, self.max_wait(ask.op)).write(args);
    }

    fn read(&self, reply: &mut impl Iterator<Item = u64>) -> Option<Option<FullAt>> {
        self.bucket.read(reply)
    }

    fn write_undo(&self, full_at: &FullAt, ask: Ask, args: &mut impl Arguments) {
        self.bucket.write_undo(full_at, ask, args);
    }
}

/// Whole microseconds, and ticks of the next microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Exact {
    micros: u64,
    ticks: u64,
}

impl Exact {
    fn write(self, args: &mut impl Arguments) {
        args.number(self.micros);
        args.number(self.ticks);
    }
}

/// The conversion from ticks that divide a nanosecond to coarser ticks that divide a microsecond.
#[derive(Clone, Copy)]
struct Scale {
    per_nano: u64,
    /// The number of nanosecond ticks in one microsecond tick; divides 1000.
    coarser: u64,
}

impl Scale {
    /// The coarsest ticks of which both a microsecond and the interval are whole numbers.
    fn new<T: Ticks>(bucket: &Bucket<T>) -> Scale {
        let mut coarser = NANOS_PER_MICRO;
        let mut rest = (bucket.ticks_per_unit.wide() % u128::from(coarser)) as u64;
        while rest > 0 {
            (coarser, rest) = (rest, coarser % rest);
        }
        Scale { per_nano: bucket.ticks_per_nano, coarser }
    }

    /// The ticks of a microsecond. Below 10^15: for whole counts at most 10^12, and decimals have at most 15 digits.
    fn per_micro(self) -> u64 {
        // `coarser` divides 1000. The product fits, since a nanosecond has less than 10^15 ticks.
        self.per_nano * (NANOS_PER_MICRO / self.coarser)
    }

    /// Converts from ticks of a nanosecond. Rounded down, which loses nothing for a whole number of ticks of a
    /// microsecond.
    fn exact(self, ticks: u128, at_most: u64) -> Exact {
        let (ticks, per_micro) = (ticks / u128::from(self.coarser), u128::from(self.per_micro()));
        match u64::try_from(ticks / per_micro) {
            Ok(micros) if micros < at_most => Exact { micros, ticks: (ticks % per_micro) as u64 },
            _ => Exact { micros: at_most, ticks: 0 },
        }
    }

    fn full_at(self, Exact { micros, ticks }: Exact) -> FullAt {
        // A limit with finer ticks may have left the state; its ticks are less than a microsecond, too.
        let ticks = u128::from(ticks.min(self.per_micro() - 1)) * u128::from(self.coarser);
        let (nanos, ticks) = Ticks::split(ticks, self.per_nano);
        FullAt { nanos: micros * NANOS_PER_MICRO + nanos, ticks }
    }

    fn exact_full_at(self, FullAt { nanos, ticks }: FullAt) -> Exact {
        let (micros, nanos) = (nanos / NANOS_PER_MICRO, nanos % NANOS_PER_MICRO);
        let ticks = u128::from(nanos) * u128::from(self.per_nano) + u128::from(ticks);
        Exact { micros, ticks: (ticks / u128::from(self.coarser)) as u64 }
    }
}
