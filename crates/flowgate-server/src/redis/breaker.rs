//! The breaker: keeps requests away from a Redis server that does not answer, and finds out when it answers again.
//!
//! State      Closed, with a score of failures; or open, with the time of the next probe.
//! Rule       Closed, every failure (an error, or no answer in time) raises the score by one and every success lowers
//!            it by one; at [`OPENS_AT`] it opens. So a Redis that fails more often than it answers is left alone soon,
//!            one hiccup is not enough, and a server that no link has a connection to opens it at once.
//! Rule       Open, only a probe asks Redis: one at a time, [`FIRST_PAUSE`] after it opened and then ever less
//!            often, at least every [`LONGEST_PAUSE`]. The first that succeeds closes it.
//! Invariant  Only a probe closes it. An answer that was on its way when it opened does not.

use flowgate::{Span, Time};

/// The score at which the breaker opens: failures minus successes.
const OPENS_AT: u32 = 5;
const FIRST_PAUSE: Span = Span::from_millis(50);
/// The longest pause between two probes. Recovery takes at most two seconds, with room for a probe that fails and for a
/// new connection.
const LONGEST_PAUSE: Span = Span::from_millis(400);

/// Whether Redis is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Breaker {
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed { score: u32 },
    Open { probing: bool, next_probe: Time, pause: Span },
}

/// A change of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Opened,
    Closed,
}

impl Default for Breaker {
    fn default() -> Breaker {
        Breaker { state: State::Closed { score: 0 } }
    }
}

impl Breaker {
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// Notes that a request was answered.
    pub(crate) fn succeeded(&mut self) {
        if let State::Closed { score } = &mut self.state {
            *score = score.saturating_sub(1);
        }
    }

    /// Notes that a request failed.
    pub(crate) fn failed(&mut self, now: Time) -> Option<Change> {
        match &mut self.state {
            State::Closed { score } if *score + 1 < OPENS_AT => {
                *score += 1;
                None
            }
            State::Closed { .. } => self.trip(now),
            State::Open { .. } => None,
        }
    }

    /// Opens at once: the score has reached [`OPENS_AT`], or no link has a connection.
    pub(crate) fn trip(&mut self, now: Time) -> Option<Change> {
        if self.is_open() {
            return None;
        }
        self.state = State::Open { probing: false, next_probe: now + FIRST_PAUSE, pause: FIRST_PAUSE };
        Some(Change::Opened)
    }

    /// True if a probe is to be sent now. The caller then reports how the probe went.
    pub(crate) fn probe(&mut self, now: Time) -> bool {
        match &mut self.state {
            State::Open { probing, next_probe, .. } if !*probing && now >= *next_probe => {
                *probing = true;
                true
            }
            _ => false,
        }
    }

    /// Notes how a probe went.
    pub(crate) fn probed(&mut self, succeeded: bool, now: Time) -> Option<Change> {
        let State::Open { pause, .. } = self.state else { return None };
        if succeeded {
            self.state = State::Closed { score: 0 };
            return Some(Change::Closed);
        }
        let pause = Span::from_nanos(pause.as_nanos() * 2).min(LONGEST_PAUSE);
        self.state = State::Open { probing: false, next_probe: now + pause, pause };
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1_700_000_000);

    fn after(millis: u64) -> Time {
        NOW + Span::from_millis(millis)
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        assert_eq!(breaker.trip(NOW), Some(Change::Opened));
        breaker
    }

    #[test]
    fn opens_when_failures_outweigh() {
        let mut breaker = Breaker::default();
        for _ in 0..OPENS_AT - 1 {
            assert_eq!(breaker.failed(NOW), None);
        }
        breaker.succeeded();
        assert_eq!(breaker.failed(NOW), None);
        assert!(!breaker.is_open());
        assert_eq!(breaker.failed(NOW), Some(Change::Opened));
        assert_eq!(breaker.failed(NOW), None, "it is open already");
        assert_eq!(breaker.trip(NOW), None);
    }

    #[test]
    fn hiccups_between_successes_do_no_harm() {
        let mut breaker = Breaker::default();
        for _ in 0..1000 {
            assert_eq!(breaker.failed(NOW), None);
            breaker.succeeded();
        }
        assert!(!breaker.is_open());
    }

    #[test]
    fn probes_one_at_a_time_and_less_often() {
        let mut breaker = opened();
        assert!(!breaker.probe(after(49)));
        assert!(breaker.probe(after(50)));
        assert!(!breaker.probe(after(1000)), "one is on its way");
        assert_eq!(breaker.probed(false, after(100)), None);
        assert!(!breaker.probe(after(199)) && breaker.probe(after(200)));
        for _ in 0..10 {
            breaker.probed(false, after(300));
        }
        assert!(!breaker.probe(after(699)) && breaker.probe(after(700)), "at least every 400 ms");
    }

    #[test]
    fn only_a_probe_closes_the_breaker() {
        let mut breaker = opened();
        breaker.succeeded();
        assert!(breaker.is_open());
        assert!(breaker.probe(after(50)));
        assert_eq!(breaker.probed(true, after(60)), Some(Change::Closed));
        assert_eq!(breaker, Breaker::default());
        assert_eq!(breaker.probed(true, after(60)), None);
        assert!(!breaker.probe(after(1000)));
    }
}
