//! Charges of one bucket that are rolled back late and in any order: the rollback of one moves those behind it forward.

use std::cell::RefCell;

use flowgate::{Limit, Op, Span, Throttle, Time};
use flowgate_engine::AdHoc;
use flowgate_engine::redis::{PreparedLimit, PreparedThrottle, RedisQuestion, ScriptTime, ad_hoc_key};
use flowgate_testkit::redis::Redis;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::agree::config;
use crate::redis_engine::{PREFIX, numbers, numbers_and_unreadable};
use crate::script::at;

const KEY: &[u8] = b"k";

/// One counter that leaks, and the unit in which Redis keeps what it owes.
struct Leaking {
    connection: redis::Connection,
    kind: Kind,
}

enum Kind {
    /// A limit, and how many ticks a microsecond has.
    Limit(Limit, u64),
    /// So many units at once, one a second.
    Throttle(i64),
}

/// What is needed to roll a charge back.
enum Charge {
    Limit(PreparedLimit, Vec<i64>),
    Throttle(PreparedThrottle, Vec<i64>),
}

impl Leaking {
    fn limit(connection: redis::Connection, limit: &str, ticks: u64) -> Leaking {
        Leaking { connection, kind: Kind::Limit(limit.parse().unwrap(), ticks) }
    }

    fn throttle(connection: redis::Connection, burst: i64) -> Leaking {
        Leaking { connection, kind: Kind::Throttle(burst) }
    }

    /// Charges `cost`; `None`: it was denied.
    fn charge(&mut self, cost: u64, now: Time) -> Option<Charge> {
        match &self.kind {
            Kind::Limit(limit, _) => {
                let prepared = PreparedLimit::new(Op::Take, AdHoc { key: KEY.into(), limit, cost });
                let reply = numbers(&mut self.connection, &prepared.call(None, PREFIX, ScriptTime::Injected(now), now));
                let allowed = prepared.conclude(&reply).unwrap().unwrap().allowed();
                allowed.then_some(Charge::Limit(prepared, reply))
            }
            Kind::Throttle(burst) => {
                let throttle = Throttle::new(burst - 1, 1, 1).unwrap().quantity(i64::try_from(cost).unwrap()).unwrap();
                let prepared = PreparedThrottle::new(KEY, throttle);
                let reply = numbers(&mut self.connection, &prepared.call(None, PREFIX, ScriptTime::Injected(now), now));
                let limited = prepared.conclude(&reply).unwrap().unwrap().limited;
                (!limited).then_some(Charge::Throttle(prepared, reply))
            }
        }
    }

    fn take(&mut self, now: Time) -> Charge {
        self.charge(1, now).unwrap()
    }

    /// Rolls a charge back: how many values could not be read.
    fn roll_back(&mut self, charge: &Charge, now: Time) -> usize {
        let time = ScriptTime::Injected(now);
        let calls = match charge {
            Charge::Limit(prepared, reply) => prepared.undo_calls(PREFIX, time, &[Some(reply)]),
            Charge::Throttle(prepared, reply) => prepared.undo_calls(PREFIX, time, &[Some(reply)]),
        };
        assert_eq!(calls.len(), 1);
        numbers_and_unreadable(&mut self.connection, &calls[0]).1
    }

    /// What is owed, in ticks.
    fn owed(&mut self, now: Time) -> u64 {
        let value: Vec<u8> = redis::cmd("GET")
            .arg(ad_hoc_key(PREFIX, KEY))
            .query::<Option<_>>(&mut self.connection)
            .unwrap()
            .unwrap_or_default();
        if value.is_empty() {
            return 0;
        }
        // The version of the layout, and entries: name, letter, size, end, state. The rollbacks that matter may be
        // beside it.
        let Some(entry) = value.windows(8).position(|name| name == b"--------") else { return 0 };
        let value = &value[entry + 18..];
        let number = |at: usize| f64::from_le_bytes(value[at..at + 8].try_into().unwrap()) as u64;
        let per_micro = self.ticks();
        let until = match self.kind {
            Kind::Limit(..) => number(1) * per_micro + number(9),
            Kind::Throttle(_) => number(1) * 1_000_000_000 + number(9),
        };
        until.saturating_sub(now.as_nanos() / 1000 * per_micro)
    }

    fn units_owed(&mut self, now: Time) -> u64 {
        self.owed(now) / (1_000_000 * self.ticks())
    }

    fn ticks(&self) -> u64 {
        match self.kind {
            Kind::Limit(_, ticks) => ticks,
            Kind::Throttle(_) => 1000,
        }
    }

    /// Deletes all keys of the server.
    fn flush(&mut self) {
        redis::cmd("FLUSHALL").query::<()>(&mut self.connection).unwrap();
    }

    /// How many counters there are, and how many lists of rollbacks.
    fn counters(&mut self) -> (usize, usize) {
        let value: Option<Vec<u8>> =
            redis::cmd("GET").arg(ad_hoc_key(PREFIX, KEY)).query(&mut self.connection).unwrap();
        let value = value.unwrap_or_default();
        let count = |name: &[u8; 8]| value.windows(8).filter(|window| window == name).count();
        (count(b"--------"), count(b"!-------"))
    }
}

/// Runs a scenario on each counter that leaks a unit a second and holds ten.
#[track_caller]
fn on_each_kind(scenario: impl Fn(&mut Leaking)) {
    let server = Redis::start();
    for mut leaking in [
        Leaking::limit(server.connect(), "bucket 1/s burst=10", 1),
        Leaking::limit(server.connect(), "pace 1/s burst=10 max_wait=9s", 1),
        Leaking::throttle(server.connect(), 10),
    ] {
        scenario(&mut leaking);
        leaking.flush();
    }
}

#[test]
fn a_charge_that_leaked_out_early_takes_nothing_from_others() {
    on_each_kind(|leaking| {
        let [_, second, third] = [(); 3].map(|()| leaking.take(at(0)));
        leaking.roll_back(&second, at(0));
        assert_eq!(leaking.units_owed(at(0)), 2);
        // The first and the third have leaked out.
        assert_eq!(leaking.units_owed(at(2)), 0);
        leaking.take(at(2));
        leaking.roll_back(&third, at(2));
        assert_eq!(leaking.units_owed(at(2)), 1, "the charge of another request is gone");
    });
}

#[test]
fn the_rollbacks_of_charges_behind_move_nothing() {
    on_each_kind(|leaking| {
        let [first, second, third] = [0, 1, 2].map(|micros| leaking.take(at(0) + Span::from_micros(micros)));
        let later = at(0) + Span::from_micros(10);
        for (charge, left) in [(&third, 2), (&second, 1), (&first, 0)] {
            leaking.roll_back(charge, later);
            assert_eq!(leaking.owed(later).div_ceil(1_000_000 * leaking.ticks()), left);
        }
    });
}

#[test]
fn only_a_rollback_that_moves_other_charges_is_remembered() {
    on_each_kind(|leaking| {
        let first = leaking.take(at(0));
        leaking.roll_back(&first, at(0));
        assert_eq!(leaking.counters(), (0, 0));
        let [first, second] = [(); 2].map(|()| leaking.take(at(0)));
        leaking.roll_back(&first, at(0));
        assert_eq!(leaking.counters(), (1, 1));
        leaking.roll_back(&second, at(0));
        assert_eq!(leaking.counters(), (0, 1));
    });
}

/// What was undone before is unknown, so no charge that is there may be given back.
#[test]
fn a_memory_that_cannot_be_read_gives_nothing_back() {
    on_each_kind(|leaking| {
        for spoilt in [&b"x"[..], b"u12345678", &[b'u'; 57]] {
            let [first, second] = [(); 2].map(|()| leaking.take(at(0)));
            // As if it were beside the counter.
            let mut entry = b"!-------".to_vec();
            entry.push(spoilt[0]);
            entry.extend_from_slice(&(spoilt.len() as u16 - 1).to_le_bytes());
            entry.extend_from_slice(&(at(9).as_nanos() as f64 / 1000.0).to_le_bytes());
            entry.extend_from_slice(&spoilt[1..]);
            let key = ad_hoc_key(PREFIX, KEY);
            redis::cmd("APPEND").arg(&key).arg(entry).query::<()>(&mut leaking.connection).unwrap();
            assert_eq!(leaking.roll_back(&first, at(0)), 1, "{spoilt:?}");
            assert_eq!(leaking.roll_back(&second, at(0)), 0, "it was overwritten");
            assert_eq!(leaking.units_owed(at(0)), 2);
            // Charges that are made later are not concerned.
            let later = at(1);
            let third = leaking.take(later);
            leaking.roll_back(&third, later);
            assert_eq!(leaking.units_owed(later), 1);
            leaking.flush();
        }
    });
}

/// A step of a random history, after some microseconds.
#[derive(Clone, Debug)]
enum Step {
    Charge(u64),
    ChargeAndRollBack(u64),
    /// Rolls back one of the charges that were not rolled back yet, long since leaked out or not.
    RollBack(prop::sample::Index),
}

/// What a bucket is, told naively: the charges in the order in which they leak out, in ticks.
#[derive(Default)]
struct Queue {
    /// What is left of each charge.
    left: Vec<u64>,
}

impl Queue {
    fn leak(&mut self, mut ticks: u64) {
        for left in &mut self.left {
            let out = ticks.min(*left);
            (*left, ticks) = (*left - out, ticks - out);
        }
    }

    fn owed(&self) -> u64 {
        self.left.iter().sum()
    }
}

/// A charge that was admitted.
struct Admitted {
    charge: Charge,
    at: Time,
    cost: u64,
    is_kept: bool,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        3 => (1..4_u64).prop_map(Step::Charge),
        1 => (1..4_u64).prop_map(Step::ChargeAndRollBack),
        2 => any::<prop::sample::Index>().prop_map(Step::RollBack),
    ];
    let gap = prop_oneof![Just(0_u64), 1..1000_u64, 100_000..900_000_u64];
    prop::collection::vec((gap, step), 1..most)
}

/// Runs a history. Where no two steps share a microsecond, and few enough rollbacks are remembered at once, Redis owes
/// exactly what the queue does; otherwise it may owe more, and never owes less.
fn run(leaking: &mut Leaking, burst: u64, steps: Vec<(u64, Step)>, is_exact: bool) -> Result<(), TestCaseError> {
    leaking.flush();
    let (ticks, mut now) = (leaking.ticks(), at(0));
    let (mut queue, mut admitted): (Queue, Vec<Admitted>) = (Queue::default(), Vec::new());
    for (gap, step) in steps {
        let gap = if is_exact { gap + 1 } else { gap };
        now = now + Span::from_micros(gap);
        queue.leak(gap * ticks);
        match step {
            Step::Charge(cost) => {
                if let Some(charge) = leaking.charge(cost, now) {
                    queue.left.push(cost * 1_000_000 * scale(leaking));
                    admitted.push(Admitted { charge, at: now, cost, is_kept: true });
                }
            }
            Step::ChargeAndRollBack(cost) => {
                let before = leaking.owed(now);
                if let Some(charge) = leaking.charge(cost, now) {
                    leaking.roll_back(&charge, now);
                    prop_assert!(!is_exact || leaking.owed(now) == before, "something of it is left");
                }
            }
            Step::RollBack(which) => {
                let kept: Vec<usize> = (0..admitted.len()).filter(|nth| admitted[*nth].is_kept).collect();
                if !kept.is_empty() {
                    let nth = kept[which.index(kept.len())];
                    leaking.roll_back(&admitted[nth].charge, now);
                    (admitted[nth].is_kept, queue.left[nth]) = (false, 0);
                }
            }
        }
        let (owed, due) = (leaking.owed(now), queue.owed());
        prop_assert!(owed >= due, "{} ticks are owed, and {} were given back to others", owed, due - owed);
        prop_assert!(!is_exact || owed == due, "{} ticks are owed, and {} were not given back", owed, owed - due);
    }
    let kept: Vec<&Admitted> = admitted.iter().filter(|admitted| admitted.is_kept).collect();
    for (first, from) in kept.iter().enumerate() {
        let mut units = 0;
        for to in &kept[first..] {
            units += to.cost;
            let leaked = to.at.since(from.at).as_nanos() / 1000 * ticks / (1_000_000 * scale(leaking));
            prop_assert!(units <= burst + leaked, "{} units from {:?} to {:?}", units, from.at, to.at);
        }
    }
    Ok(())
}

/// How many ticks of a microsecond a unit takes to leak out, by the million.
fn scale(leaking: &Leaking) -> u64 {
    match leaking.kind {
        // Seven a second, and seven ticks a microsecond.
        Kind::Limit(..) => 1,
        Kind::Throttle(_) => 1000,
    }
}

#[track_caller]
fn check_histories(cases: u32, most_steps: usize, is_exact: bool) {
    let server = Redis::start();
    // A pace admits beforehand what leaks out within its longest wait.
    for (leaking, burst) in [
        (Leaking::limit(server.connect(), "bucket 7/s burst=10", 7), 10),
        (Leaking::limit(server.connect(), "pace 7/s burst=10 max_wait=1s", 7), 17),
        (Leaking::throttle(server.connect(), 10), 10),
    ] {
        let leaking = RefCell::new(leaking);
        let run = |steps| run(&mut leaking.borrow_mut(), burst, steps, is_exact);
        let result = TestRunner::new(config(cases)).run(&steps(most_steps), run);
        result.unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn random_histories_are_exact() {
    check_histories(50, 40, true);
}

#[test]
fn random_histories_in_shared_microseconds_give_nothing_of_others_back() {
    check_histories(50, 40, false);
}

#[test]
fn long_histories_give_nothing_of_others_back() {
    check_histories(3, 400, false);
}

/// More rollbacks than are remembered one by one.
#[test]
fn a_flood_of_rollbacks_in_order_gives_all_back() {
    let server = Redis::start();
    for mut leaking in
        [Leaking::limit(server.connect(), "bucket 7/s burst=200", 7), Leaking::throttle(server.connect(), 200)]
    {
        leaking.flush();
        let micros = |micros: u64| at(0) + Span::from_micros(micros);
        let charges: Vec<Charge> = (0..150).map(|nth| leaking.take(micros(nth))).collect();
        for (nth, charge) in (1000..).zip(&charges) {
            leaking.roll_back(charge, micros(nth));
        }
        assert_eq!(leaking.owed(micros(1150)), 0);
    }
}
