//! A crowd of new keys fills the table. It must not free a subject that is exhausted or banned, nor keep a subject from
//! being banned.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use flowgate::{
    Ask, Ban, BanHit, Decision, Hit, Limit, MemoryConfig, MemoryStore, Op, Plan, Seed, Span, Standing, Throttle, Time,
    WhenFull,
};

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;

const VICTIMS: u32 = 200;
/// 48 KiB hold some 1,150 counters, so the crowd is ten times the table.
const MAX_BYTES: usize = 48 << 10;
const CROWD: u32 = 12_000;

/// Nanoseconds between two takes.
const APART: u64 = 1_000;

fn store() -> MemoryStore {
    store_of(MAX_BYTES, WhenFull::Evict)
}

fn store_of(max_bytes: usize, when_full: WhenFull) -> MemoryStore {
    MemoryStore::new(MemoryConfig { max_bytes, when_full, seed: Seed([7, 11]) })
}

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

fn victim(number: u32) -> Vec<u8> {
    [b"victim".as_slice(), &number.to_le_bytes()].concat()
}

/// Applies `op` by way of a plan of one hit.
fn apply(memory: &MemoryStore, limit: &Limit, rule: &[u8], subject: &[u8], op: Op, now: u64) -> Decision {
    let mut hits = [Hit::new(memory.subject(subject).counter(memory.counter(rule)), limit)];
    memory.apply(&mut Plan::one(Ask::new(op, 1, Time::from_nanos(now)), &mut hits));
    *hits[0].outcome()
}

/// New keys from a second after `START` on, each taking `takes` times at different instants. Returns the time at which
/// the last one is done.
fn crowd(memory: &MemoryStore, text: &str, rule: &[u8], takes: u64) -> u64 {
    let (limit, mut now) = (limit(text), START + SECOND);
    for key in 0..CROWD {
        for _ in 0..takes {
            apply(memory, &limit, rule, &key.to_le_bytes(), Op::Take, now);
            now += APART;
        }
    }
    now
}

/// All victims are still denied, though the crowd went through the table ten times.
#[track_caller]
fn check_held(memory: &MemoryStore, case: &str, denied: impl Fn(u32) -> bool) {
    let (held, stats) = ((0..VICTIMS).filter(|&number| denied(number)).count(), memory.stats());
    assert_eq!(held, VICTIMS as usize, "{case}: {stats:?}");
    assert!(stats.evicted > u64::from(CROWD) * 8 / 10, "{case}: the table is not full: {stats:?}");
    assert_eq!(stats.evicted_in_use, 0, "{case}");
}

/// A crowd of new keys, and the store that they fill.
#[derive(Clone, Copy)]
struct Crowd<'a> {
    max_bytes: usize,
    limit: &'a str,
    rule: &'a [u8],
}

/// A crowd under a rule of its own.
const STRANGERS: Crowd<'_> = Crowd { max_bytes: MAX_BYTES, limit: "fixed 100/day tz=UTC", rule: OTHER };

impl Crowd<'_> {
    /// Exhausts the victims, lets crowds of one take and of two come, and expects every victim to be denied.
    #[track_caller]
    fn check(self, case: &str, exhaust: impl Fn(&MemoryStore, u32), denied: impl Fn(&MemoryStore, u32, u64) -> bool) {
        for takes in [1, 2] {
            let memory = store_of(self.max_bytes, WhenFull::Evict);
            (0..VICTIMS).for_each(|number| exhaust(&memory, number));
            let now = crowd(&memory, self.limit, self.rule, takes);
            let case = format!("{case} against {takes} takes of {}", self.limit);
            check_held(&memory, &case, |number| denied(&memory, number, now));
        }
    }
}

/// How a limit is met: in a plan, or by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Plan,
    One,
}

/// Exhausts the victims under a limit, `apart` nanoseconds between two takes.
#[track_caller]
fn check_by(way: Way, exhausted: &str, apart: u64, crowd_limit: &str, rule: &[u8]) {
    // The logs of the victims need 64 KiB of their own.
    let logs = if apart > 0 && exhausted.starts_with("sliding") { 64 << 10 } else { 0 };
    let limit = limit(exhausted);
    let apply = |memory: &MemoryStore, number: u32, op: Op, now: u64| match way {
        Way::Plan => apply(memory, &limit, b"victims", &victim(number), op, now),
        Way::One => {
            let key = memory.subject(&victim(number)).counter(memory.counter(b"victims"));
            memory.apply_one(Ask::new(op, 1, Time::from_nanos(now)), key, &limit)
        }
    };
    let exhaust = |memory: &MemoryStore, number: u32| {
        let mut now = START;
        while apply(memory, number, Op::Take, now).allowed() {
            now += apart;
        }
    };
    let crowd = Crowd { max_bytes: MAX_BYTES + logs, limit: crowd_limit, rule };
    crowd.check(&format!("{exhausted} by {way:?}"), exhaust, |memory, number, now| {
        !apply(memory, number, Op::Peek, now).allowed()
    });
}

#[track_caller]
fn check(exhausted: &str, crowd_limit: &str, rule: &[u8]) {
    check_by(Way::Plan, exhausted, 0, crowd_limit, rule);
}

const SAME: &[u8] = b"victims";
const OTHER: &[u8] = b"others";

#[test]
fn a_crowd_does_not_reset_fixed_windows() {
    check("fixed 10/60s", "fixed 10/60s", SAME);
    check_by(Way::One, "fixed 10/60s", APART, "fixed 10/60s", SAME);
}

#[test]
fn a_crowd_does_not_reset_sliding_windows() {
    check("sliding 10/60s", "sliding 10/60s", SAME);
}

/// The units came at different times, so each victim has a log beside the table, and so has a crowd of two takes.
#[test]
fn a_crowd_does_not_reset_sliding_logs() {
    check_by(Way::Plan, "sliding 10/60s", APART, "sliding 10/60s", SAME);
    check_by(Way::One, "sliding 10/60s", APART, "sliding 10/60s", SAME);
}

/// All windows end at once.
#[test]
fn a_crowd_does_not_reset_calendar_windows() {
    check("fixed 10/day tz=UTC", "fixed 10/day tz=UTC", SAME);
}

#[test]
fn a_crowd_does_not_reset_approximate_windows() {
    check("approx 10/60s", "approx 10/60s", SAME);
}

#[test]
fn a_crowd_does_not_reset_buckets() {
    check("bucket 10/60s", "bucket 10/60s", SAME);
    check("bucket 10/60s", "fixed 100/day tz=UTC", OTHER);
}

#[test]
fn a_crowd_does_not_reset_a_limit_that_expires_earlier() {
    check("fixed 10/60s", "bucket 10/day", OTHER);
}

#[test]
fn a_crowd_does_not_reset_queues() {
    check("pace 5/60s burst=5 max_wait=1m", "fixed 100/day tz=UTC", OTHER);
}

#[test]
fn a_crowd_does_not_reset_limits_that_are_free_at_first() {
    check("fixed 5/60s after=10/60s", "fixed 100/day tz=UTC", OTHER);
    check_by(Way::Plan, "sliding 5/60s after=10/60s", APART, "fixed 100/day tz=UTC", OTHER);
}

/// A rule of two limits: the counter that denies is kept, even if the other one is evicted.
#[test]
fn a_crowd_does_not_reset_the_stricter_of_two_limits() {
    let limits = [limit("bucket 10/60s"), limit("fixed 100/60s")];
    let denied = |memory: &MemoryStore, number: u32, op: Op, now: u64| {
        let subject = memory.subject(&victim(number));
        let hit = |name: &[u8], limit| Hit::new(subject.counter(memory.counter(name)), limit);
        let mut hits = [hit(b"strict", &limits[0]), hit(b"lax", &limits[1])];
        memory.apply(&mut Plan::one(Ask::new(op, 1, Time::from_nanos(now)), &mut hits));
        !Decision::from_hits(&hits).allowed()
    };
    let exhaust = |memory: &MemoryStore, number: u32| while !denied(memory, number, Op::Take, START) {};
    STRANGERS.check("two limits", exhaust, |memory, number, now| denied(memory, number, Op::Peek, now));
}

#[test]
fn a_crowd_does_not_reset_cells() {
    let throttle = Throttle::new(9, 10, 60).unwrap();
    let reply = |memory: &MemoryStore, number: u32, quantity: i64, now: u64| {
        let key = memory.subject(&victim(number)).counter(memory.counter(b"cells"));
        memory.throttle(key, &throttle.quantity(quantity).unwrap(), Time::from_nanos(now)).unwrap()
    };
    let exhaust = |memory: &MemoryStore, number: u32| while !reply(memory, number, 1, START).limited {};
    STRANGERS.check("cells", exhaust, |memory, number, now| reply(memory, number, 0, now).remaining == 0);
}

/// Half of the crowd has used half of its limit.
#[test]
fn a_crowd_at_half_of_its_limit_does_not_reset_what_is_exhausted() {
    let (memory, limit) = (store(), limit("fixed 10/60s"));
    let apply = |subject: &[u8], op: Op, now: u64| apply(&memory, &limit, b"victims", subject, op, now);
    (0..VICTIMS).for_each(|number| while apply(&victim(number), Op::Take, START).allowed() {});
    for key in 0..CROWD {
        let takes = if key % 2 == 0 { 1 } else { 5 };
        (0..takes).for_each(|_| _ = apply(&key.to_le_bytes(), Op::Take, START + SECOND));
    }
    let held = (0..VICTIMS).filter(|&number| !apply(&victim(number), Op::Peek, START + SECOND).allowed());
    assert_eq!(held.count(), VICTIMS as usize);
}

/// A subject that a rule of `5/60s` bans for an hour after three denials.
struct Banning<'a> {
    memory: &'a MemoryStore,
    limit: Limit,
    ban: Ban,
}

impl<'a> Banning<'a> {
    fn new(memory: &'a MemoryStore) -> Banning<'a> {
        let hour = Span::from_secs(3600);
        let ban = Ban::new(3, Span::from_secs(600), &[hour], hour).unwrap();
        Banning { memory, limit: limit("5/60s"), ban }
    }

    fn ask(&self, subject: &[u8], op: Op, now: u64) -> (bool, Standing) {
        let subject = self.memory.subject(subject);
        let mut hits = [Hit::new(subject.counter(self.memory.counter(b"rule")), &self.limit)];
        let mut bans = [BanHit::new(subject.counter(self.memory.counter(b"ban")), &self.ban, 0)];
        self.memory.apply(&mut Plan::banning(Ask::new(op, 1, Time::from_nanos(now)), &mut hits, &mut bans));
        (hits[0].outcome().allowed(), bans[0].standing())
    }

    /// Takes until a ban begins; false if none does within 50 takes, `apart` nanoseconds apart.
    fn is_banned_in_time(&self, subject: &[u8], now: u64, apart: u64) -> bool {
        (0..50).any(|take| self.ask(subject, Op::Take, now + take * apart).1 != Standing::Clear)
    }
}

#[test]
fn a_crowd_does_not_lift_bans() {
    for limit in ["fixed 100/day tz=UTC", "fixed 100/month tz=UTC"] {
        let ban = |memory: &MemoryStore, number: u32| {
            assert!(Banning::new(memory).is_banned_in_time(&victim(number), START, 0));
        };
        Crowd { limit, ..STRANGERS }.check("banned", ban, |memory, number, now| {
            Banning::new(memory).ask(&victim(number), Op::Peek, now).1 != Standing::Clear
        });
    }
}

/// One denial before a ban begins.
#[test]
fn a_crowd_does_not_wipe_out_strikes() {
    let memory = store();
    let banning = Banning::new(&memory);
    for number in 0..VICTIMS {
        (0..7).for_each(|_| _ = banning.ask(&victim(number), Op::Take, START));
    }
    let now = crowd(&memory, "fixed 100/month tz=UTC", OTHER, 1);
    let banned = |number: u32| banning.ask(&victim(number), Op::Take, now).1 != Standing::Clear;
    check_held(&memory, "one strike before a ban", banned);
}

#[test]
fn a_known_subject_is_banned_in_a_full_store_that_denies() {
    let memory = store_of(4 * MAX_BYTES, WhenFull::Deny);
    let banning = Banning::new(&memory);
    let known: Vec<Vec<u8>> = (0..20).map(victim).collect();
    assert!(known.iter().all(|subject| banning.ask(subject, Op::Take, START).0));
    let now = crowd(&memory, "fixed 100/day tz=UTC", OTHER, 1);
    let full = memory.stats();
    assert!(full.refused > u64::from(CROWD) / 2, "{full:?}");
    assert!(known.iter().all(|subject| banning.is_banned_in_time(subject, now, APART)), "{:?}", memory.stats());
    let stays = |subject: &Vec<u8>| banning.ask(subject, Op::Take, now + 3000 * SECOND).1 != Standing::Clear;
    assert!(known.iter().all(stays), "a ban that is announced is remembered");
    let banned = memory.stats();
    assert_eq!((banned.bans_refused, banned.evicted), (0, 0));
    assert!(banned.bytes <= banned.max_bytes);
}

/// Some 16 of the 1,150 places are kept for bans. Those that find none are counted, and not announced.
#[test]
fn a_strike_without_room_is_counted() {
    let memory = store_of(MAX_BYTES, WhenFull::Deny);
    let banning = Banning::new(&memory);
    let subjects: Vec<Vec<u8>> = (0..CROWD).map(victim).collect();
    let known: Vec<&Vec<u8>> = subjects.iter().filter(|subject| banning.ask(subject, Op::Take, START).0).collect();
    let full = memory.stats();
    assert_eq!((full.counters, full.bans_refused), (known.len(), 0));
    let banned = known.iter().filter(|subject| banning.is_banned_in_time(subject, START, APART)).count();
    let stats = memory.stats();
    assert!((10..known.len() / 10).contains(&banned), "{banned} of {}", known.len());
    assert_eq!(stats.counters, full.counters + banned);
    // Each of the other subjects has made 50 takes, of which four passed.
    assert_eq!(stats.bans_refused as usize, 46 * (known.len() - banned));
}
