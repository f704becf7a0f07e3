//! The portable form of bans.

use super::Arguments;
use crate::algorithm::{Entry, Log};
use crate::ban::{Ban, BanHit, LastBan, Record, Standing};
use crate::memory::Key;
use crate::time::{NANOS_PER_MICRO, Time};

impl Ban {
    /// Writes what a script needs to know of the ban: the strikes that start it, within how long, how long it is
    /// remembered, the number of lengths and the lengths.
    pub fn write_terms(&self, args: &mut impl Arguments) {
        let micros = |nanos: u64| nanos.div_ceil(NANOS_PER_MICRO);
        for number in [self.strikes.count, micros(self.strikes.period), micros(self.forget), self.lengths.len() as u64]
        {
            args.number(number);
        }
        self.lengths.iter().for_each(|length| args.number(micros(*length)));
    }
}

impl<'a> BanHit<'a> {
    /// A ban whose record another store keeps.
    pub fn portable(ban: &'a Ban, rule_id: u32) -> BanHit<'a> {
        BanHit::new(Key::NOWHERE, ban, rule_id)
    }

    /// Reads what the script found at `now`: the end of the last ban (0: there was none), until when it is remembered,
    /// the number of bans in a row, and the strikes within the window. `None` if a number is missing.
    pub fn restore(&mut self, reply: &mut impl Iterator<Item = u64>, now: Time) -> Option<()> {
        let [until, forget_at, level, strikes] = [reply.next()?, reply.next()?, reply.next()?, reply.next()?];
        let nanos = |micros: u64| micros * NANOS_PER_MICRO;
        let level = u8::try_from(level).unwrap_or(u8::MAX);
        let last = (until > 0).then(|| LastBan { until: nanos(until), forget_at: nanos(forget_at), level });
        // The times at which the strikes leave do not matter for a strike now.
        let inside = Entry { leaves_at: now.as_nanos() + 1, units: strikes };
        self.record = Record { last, strikes: (strikes > 0).then_some(Log::One(inside)) };
        Some(())
    }

    /// Sets a standing that was decided elsewhere.
    pub fn settle(&mut self, standing: Standing) {
        self.standing = standing;
    }
}
