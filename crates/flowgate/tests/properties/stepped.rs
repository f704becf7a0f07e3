//! While the clock is ahead of the wall clock, waits are given in real time: exactly as long as they take.

use flowgate::{Decision, Limit, Limiter, ManualClock, Op, Retry, Seed, Span, Time, Verdict};
use flowgate_testkit::properties::specs::{Algorithm, MICROS, SECONDS, Spec, Step, any_spec, pace, start, takes};
use proptest::prelude::*;

/// Requests in real time, and steps of the wall clock between them.
struct Trace {
    limits: Vec<Spec>,
    start: u64,
    events: Vec<Event>,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    /// By how much the wall clock is put back before the rest of the event.
    put_back: u64,
    /// The real time that passes then.
    passes: u64,
    cost: u64,
}

/// A limiter after some of the events.
struct World {
    clock: ManualClock,
    limiter: Limiter,
    last: Option<Decision>,
}

impl World {
    fn take(&mut self, Event { put_back, passes, cost }: Event) {
        self.pass(put_back, passes);
        self.last = Some(self.limiter.take_n("subject", cost));
    }

    fn pass(&self, put_back: u64, passes: u64) {
        if put_back > 0 {
            self.clock.put_back(Span::from_nanos(put_back));
        }
        self.clock.advance(Span::from_nanos(passes));
    }

    /// What is answered after so much more real time. Asks once: a look ahead would age the counters.
    fn peek_after(self, nanos: u64, cost: u64) -> Decision {
        self.clock.advance(Span::from_nanos(nanos));
        self.limiter.peek("subject", cost)
    }
}

impl Trace {
    fn new(limits: Vec<Spec>, start: u64, steps: &[(u64, Step)]) -> Trace {
        let mut trace = Trace { limits, start, events: Vec::new() };
        let mut world = trace.world(0);
        for (index, (put_back, step)) in steps.iter().enumerate() {
            let spec = &trace.limits[index % trace.limits.len()];
            let cost = step.cost(spec, world.last.as_ref());
            let passes = step.time(spec, start, world.last.as_ref()) - start;
            let event = Event { put_back: *put_back, passes, cost };
            world.take(event);
            trace.events.push(event);
        }
        trace
    }

    fn world(&self, events: usize) -> World {
        let clock = ManualClock::new(Time::from_nanos(self.start));
        let limits: Vec<Limit> = self.limits.iter().map(|spec| spec.limit.clone()).collect();
        let seed = Seed([7, 7]);
        let limiter = Limiter::builder(limits).clock(clock.clone()).max_bytes(1 << 20).seed(seed).build().unwrap();
        let mut world = World { clock, limiter, last: None };
        self.events[..events].iter().for_each(|event| world.take(*event));
        world
    }

    fn end(&self) -> World {
        self.world(self.events.len())
    }

    fn last(&self) -> (Event, Decision) {
        (*self.events.last().unwrap(), self.end().last.unwrap())
    }

    /// By how much less a wait is too short. The clock counts whole nanoseconds, so at half speed it stands still for
    /// one of two: if it is read when it has moved on since, the wait is rounded up.
    fn tick(&self) -> u64 {
        let since_step = self.events.iter().rposition(|event| event.put_back > 0).unwrap_or(0);
        let elapsed: u64 = self.events[since_step..].iter().map(|event| event.passes).sum();
        1 + elapsed % 2
    }

    /// Waits of `approx` are exact to a microsecond on the clock.
    fn tick_of_waits(&self) -> u64 {
        let approx = self.limits.iter().any(|spec| spec.algorithm == Algorithm::Approx);
        if approx { 2 * MICROS + self.tick() } else { self.tick() }
    }

    /// Whether so much more can pass (time ends in 2262).
    fn comes(&self, nanos: u64) -> bool {
        self.end().limiter.clock().monotonic() + Span::from_nanos(nanos) < Time::MAX
    }
}

fn step_back() -> impl Strategy<Value = u64> {
    prop_oneof![6 => Just(0), 1 => 1..10_u64, 2 => 1..5 * SECONDS, 2 => 1..10_000 * SECONDS]
}

/// At least one step of the wall clock, and takes.
fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    (1..10_000 * SECONDS, prop::collection::vec((step_back(), takes()), 1..20)).prop_map(|(first, mut steps)| {
        steps[0].0 = first;
        steps
    })
}

/// Limits whose waits pass before the end of time.
fn limits() -> impl Strategy<Value = Vec<Spec>> {
    let unbounded = |spec: &Spec| matches!(spec.algorithm, Algorithm::Pace { max_wait: None, .. });
    prop::collection::vec(any_spec().prop_filter("a debt without end", move |spec| !unbounded(spec)), 1..3)
}

proptest! {
    #![proptest_config(crate::cases(150))]

    #[test]
    fn a_denied_request_passes_after_its_wait_and_not_before(limits in limits(), start in start(), steps in steps()) {
        let trace = Trace::new(limits, start, &steps);
        let (event, decision) = trace.last();
        if let Verdict::Deny(Retry::After(wait)) = decision.verdict
            && trace.comes(wait.as_nanos())
        {
            let wait = wait.as_nanos();
            let early = trace.end().peek_after(wait.saturating_sub(trace.tick_of_waits()), event.cost);
            prop_assert!(!early.allowed(), "passes early: {:?} {:?}", trace.limits, trace.events);
            let found = trace.end().peek_after(wait, event.cost);
            prop_assert!(found.allowed(), "is denied again: {:?} {:?}", trace.limits, trace.events);
        }
    }

    #[test]
    fn a_caller_is_not_held_longer_than_it_accepts(
        longest in prop_oneof![Just(0), 0..100 * SECONDS],
        limits in prop::collection::vec(pace(), 1..3),
        start in start(),
        steps in steps(),
    ) {
        let trace = Trace::new(limits, start, &steps);
        let cost = trace.last().0.cost;
        let take = |after: u64| {
            let world = trace.end();
            world.clock.advance(Span::from_nanos(after));
            world.limiter.apply_at(Op::TakeWithin(Span::from_nanos(longest)), "subject", cost, world.limiter.clock().read())
        };
        match take(0).verdict {
            Verdict::Allow { delay } => prop_assert!(delay.as_nanos() <= longest),
            // When this passes, the clock may have caught up, and with it what passes on it in `longest`.
            Verdict::Deny(Retry::After(wait)) if trace.comes(wait.as_nanos()) => {
                prop_assert!(take(wait.as_nanos()).allowed(), "is denied again: {:?} {:?}", trace.limits, trace.events);
            }
            Verdict::Deny(_) => {}
        }
    }

    #[test]
    fn a_delay_is_the_time_until_there_is_none(spec in pace(), start in start(), steps in steps()) {
        let most = spec.most();
        let trace = Trace::new(vec![spec], start, &steps);
        let (Event { put_back, passes, cost }, decision) = trace.last();
        let delay = decision.delay().as_nanos();
        if cost <= most && delay > 0 && trace.comes(delay) {
            let peek_after = |nanos| {
                let world = trace.world(trace.events.len() - 1);
                world.pass(put_back, passes);
                world.peek_after(nanos, cost)
            };
            let early = peek_after(delay - delay.min(trace.tick()));
            prop_assert!(!early.delay().is_zero(), "{:?} {:?}", trace.limits, trace.events);
            prop_assert!(peek_after(delay).delay().is_zero(), "{:?} {:?}", trace.limits, trace.events);
        }
    }

    #[test]
    fn after_its_reset_a_state_is_as_if_never_used(limits in limits(), start in start(), steps in steps()) {
        let trace = Trace::new(limits, start, &steps);
        for one in &trace.limits {
            let alone = Trace::new(vec![one.clone()], start, &steps);
            let reset = alone.last().1.reset_after.as_nanos();
            if reset > 0 && alone.comes(reset) {
                let early = alone.end().peek_after(reset - reset.min(alone.tick()), 0);
                prop_assert!(!early.reset_after.is_zero(), "{:?} {:?}", alone.limits, alone.events);
                let found = alone.end().peek_after(reset, 0);
                prop_assert!(found.reset_after.is_zero(), "{:?} {:?}", alone.limits, alone.events);
            }
        }
    }
}
