//! Ticks: fractions of a nanosecond, as wide as a bucket needs them.
//!
//! Sums of ticks fit 128 bits for every limit that can be written. For most they fit 64, where they cost half as
//! much; a bucket of such a limit is made of narrow ticks. Narrow sums saturate, far beyond the longest debt.

pub(crate) trait Ticks: Copy + Ord + Default + From<u64> + Into<u128> {
    fn from_nanos(nanos: u64, ticks_per_nano: u64) -> Self;
    fn times(self, count: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    /// No less than nothing.
    fn minus(self, other: Self) -> Self;
    /// The quotient, rounded down. The caller knows that it fits 64 bits.
    fn over(self, other: Self) -> u64;
    /// Whole nanoseconds and the ticks that are left. The caller knows that they fit.
    fn split(self, ticks_per_nano: u64) -> (u64, u64);

    fn wide(self) -> u128 {
        self.into()
    }
}

impl Ticks for u64 {
    #[inline(always)]
    fn from_nanos(nanos: u64, ticks_per_nano: u64) -> u64 {
        nanos.saturating_mul(ticks_per_nano)
    }

    #[inline(always)]
    fn times(self, count: u64) -> u64 {
        self.saturating_mul(count)
    }

    #[inline(always)]
    fn plus(self, other: u64) -> u64 {
        self.saturating_add(other)
    }

    #[inline(always)]
    fn minus(self, other: u64) -> u64 {
        self.saturating_sub(other)
    }

    #[inline(always)]
    fn over(self, other: u64) -> u64 {
        self / other
    }

    #[inline(always)]
    fn split(self, ticks_per_nano: u64) -> (u64, u64) {
        // A division costs as much as all the rest.
        if ticks_per_nano == 1 { (self, 0) } else { (self / ticks_per_nano, self % ticks_per_nano) }
    }
}

impl Ticks for u128 {
    #[inline]
    fn from_nanos(nanos: u64, ticks_per_nano: u64) -> u128 {
        u128::from(nanos) * u128::from(ticks_per_nano)
    }

    #[inline]
    fn times(self, count: u64) -> u128 {
        self * u128::from(count)
    }

    #[inline]
    fn plus(self, other: u128) -> u128 {
        self + other
    }

    #[inline]
    fn minus(self, other: u128) -> u128 {
        self.saturating_sub(other)
    }

    #[inline]
    fn over(self, other: u128) -> u64 {
        (self / other) as u64
    }

    #[inline]
    fn split(self, ticks_per_nano: u64) -> (u64, u64) {
        let divisor = u128::from(ticks_per_nano);
        ((self / divisor) as u64, (self % divisor) as u64)
    }
}
