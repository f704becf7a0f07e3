//! Bans in plans of several parts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use flowgate::{Ask, Ban, BanHit, Hit, Limit, MemoryStore, Op, Plan, PlanPart, RuleFlags, Span, Standing, Time};

const START: u64 = 1_700_000_000;
const COUNT_DENIED: RuleFlags = RuleFlags { count_denied: true, shadow: false };

/// A store with a rule that bans and one that does not.
struct Store {
    memory: MemoryStore,
    banning: Limit,
    other: Limit,
    ban: Ban,
}

impl Store {
    /// `strikes` denials start a ban of a minute.
    fn new(strikes: u64) -> Store {
        let [banning, other] = ["fixed 1/1h", "fixed 5/1h"].map(|limit| limit.parse().unwrap());
        let (day, minute) = (Span::from_secs(86_400), Span::from_secs(60));
        let ban = Ban::new(strikes, day, &[minute], day).unwrap();
        Store { memory: MemoryStore::default(), banning, other, ban }
    }

    /// A hit of the rule that bans, and its ban.
    fn banning(&self, user: &str) -> ([Hit<'_>; 1], [BanHit<'_>; 1]) {
        let subject = self.memory.subject(user.as_bytes());
        let hit = Hit::new(subject.counter(self.memory.counter(b"banning")), &self.banning);
        ([hit], [BanHit::new(subject.counter(self.memory.counter(b"ban")), &self.ban, 0)])
    }

    fn other(&self, user: &str, flags: RuleFlags) -> [Hit<'_>; 1] {
        let key = self.memory.subject(user.as_bytes()).counter(self.memory.counter(b"other"));
        [Hit::new(key, &self.other).in_rule(1, flags)]
    }

    fn used(&self, mut hits: [Hit<'_>; 1]) -> u64 {
        self.memory.apply(&mut Plan::one(Ask::new(Op::Peek, 0, Time::from_secs(START)), &mut hits));
        hits[0].used()
    }

    /// Takes one unit of the rule that bans in each of three parts; where each part stands.
    fn take_three(&self, user: &str) -> (bool, [Standing; 3]) {
        let mut parts = [(); 3].map(|()| self.banning(user));
        let mut plan = Plan::new(Time::from_secs(START));
        for (hits, bans) in &mut parts {
            plan.push(PlanPart { op: Op::Take, cost: 1, hits, bans });
        }
        self.memory.apply(&mut plan);
        let allowed = plan.allowed();
        drop(plan);
        (allowed, parts.map(|(_, bans)| bans[0].standing()))
    }
}

#[test]
fn a_step_strikes_a_subject_once_however_many_parts_are_denied() {
    let (store, until) = (Store::new(2), Time::from_secs(START + 60));
    let (clear, banned) = (Standing::Clear, Standing::Banned { until });
    assert_eq!(store.take_three("ann"), (false, [clear; 3]), "two parts are denied, and that is one strike");
    let (allowed, standings) = store.take_three("ann");
    assert!(!allowed);
    assert_eq!(standings, [banned, Standing::JustBanned { until }, banned], "the first part that is denied strikes");
    assert_eq!(store.take_three("ann"), (false, [banned; 3]));
    assert_eq!(store.take_three("bob").1, [clear; 3], "another subject");
}

#[test]
fn a_ban_in_force_denies_the_step_and_its_part_charges_nothing() {
    let store = Store::new(1);
    store.take_three("ann");
    let used = store.used(store.banning("ann").0);
    for denied_by_others in [5, 6] {
        let (mut banned, mut bans) = store.banning("ann");
        let (mut beside, mut counting) = (store.other("bob", RuleFlags::default()), store.other("cat", COUNT_DENIED));
        let mut plan = Plan::new(Time::from_secs(START + 1));
        plan.push(PlanPart { op: Op::Take, cost: 1, hits: &mut banned, bans: &mut bans });
        plan.push(PlanPart::new(Op::Take, 1, &mut beside));
        plan.push(PlanPart::new(Op::Take, denied_by_others, &mut counting));
        store.memory.apply(&mut plan);
        assert!(!plan.allowed());
        assert!(!plan.verdict().allowed());
        drop(plan);
        assert!(beside[0].outcome().allowed(), "its own verdict");
        assert_eq!(bans[0].standing(), Standing::Banned { until: Time::from_secs(START + 60) });
    }
    assert_eq!(store.used(store.banning("ann").0), used);
    assert_eq!(store.used(store.other("bob", RuleFlags::default())), 0);
}

/// The other parts of a step that a ban denies are treated as any denied request: a rule that counts those is charged
/// where it is exceeded.
#[test]
fn beside_a_ban_in_force_exceeded_rules_count_the_denied_request() {
    let store = Store::new(1);
    store.take_three("ann");
    let mut first = store.other("cat", COUNT_DENIED);
    store.memory.apply(&mut Plan::one(Ask::new(Op::Take, 3, Time::from_secs(START)), &mut first));
    let (mut banned, mut bans) = store.banning("ann");
    let mut exceeded = store.other("cat", COUNT_DENIED);
    let mut plan = Plan::new(Time::from_secs(START + 1));
    plan.push(PlanPart { op: Op::Take, cost: 1, hits: &mut banned, bans: &mut bans });
    plan.push(PlanPart::new(Op::Take, 4, &mut exceeded));
    store.memory.apply(&mut plan);
    assert_eq!(store.used(store.other("cat", COUNT_DENIED)), 5, "up to the cap");
}

#[test]
fn a_record_counts_beside_a_ban_only_if_the_step_passes_and_a_refund_always() {
    let store = Store::new(1);
    store.take_three("ann");
    let mut spent = store.other("bob", RuleFlags::default());
    store.memory.apply(&mut Plan::one(Ask::new(Op::Take, 3, Time::from_secs(START)), &mut spent));
    let (mut banned, mut bans) = store.banning("ann");
    let (mut record, mut refund) = (store.other("cat", RuleFlags::default()), store.other("bob", RuleFlags::default()));
    let mut plan = Plan::new(Time::from_secs(START + 1));
    plan.push(PlanPart::new(Op::Record, 2, &mut record));
    plan.push(PlanPart { op: Op::Peek, cost: 1, hits: &mut banned, bans: &mut bans });
    plan.push(PlanPart::new(Op::Refund, 2, &mut refund));
    store.memory.apply(&mut plan);
    assert!(!plan.allowed());
    assert_eq!(store.used(store.other("cat", RuleFlags::default())), 0);
    assert_eq!(store.used(store.other("bob", RuleFlags::default())), 1);
}
