//! What may be answered from the deny cache, and what ends its answers: the questions behind [`DenyCache`].
//!
//! Rule       A `take` or `peek` that Redis has denied is denied to whoever asks the same, with the waits that are left.
//! Rule       A `refund`, a reset, and whatever may have been one ends the answers about its counters; so does a call
//!            that had no answer, since nobody knows what it has done.
//! Rule       Times are monotonic: the waits that Redis tells are real, so a node whose clock runs at half speed must not
//!            hold on to a denial for twice as long.

use std::hash::{BuildHasher, RandomState};

use flowgate::{Op, Retry, Span, Throttle, ThrottleReply, Time, Verdict};
use flowgate_engine::{AdHoc, DecidedBy, Decision, Plan};

use super::deny_cache::{DenyCache, Question};

/// Denials that are remembered.
#[derive(Debug)]
pub(crate) struct Memo {
    cache: DenyCache<Denied>,
    hash: RandomState,
}

#[derive(Clone, Debug)]
enum Denied {
    Request(Decision),
    Key(flowgate::Decision),
    Throttle(Throttle, ThrottleReply),
}

/// What was asked of Redis.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// `None`: a denial is not to be remembered.
    question: Option<Question>,
    counters: Vec<u128>,
    gives_back: bool,
}

impl Memo {
    /// Remembers a denial for at most so long.
    pub(crate) fn new(longest: Span) -> Memo {
        Memo { cache: DenyCache::new(longest), hash: RandomState::new() }
    }

    /// What a request asks; `None`: nothing of any counter.
    pub(crate) fn ask(&self, plan: &Plan<'_>) -> Option<Asked> {
        if plan.hits().is_empty() {
            return None;
        }
        let op = plan.op();
        let remembered = matches!(op, Op::Take | Op::TakeWithin(_) | Op::Peek) && plan.is_idle_when_denied();
        let question = remembered.then(|| {
            // A caller may wait longer than another.
            let patience = if let Op::TakeWithin(longest) = op { longest.as_nanos().saturating_add(1) } else { 0 };
            // One counter may be under different limits: by the value of a field, or after a reload.
            let limits = plan.limits_id() ^ patience.rotate_left(48);
            let asked = u128::from(limits) << 64 | u128::from(plan.cost());
            self.cache.question(plan.hits().iter().map(|hit| hit.key().bits()), asked)
        });
        let gives_back = op == Op::Refund;
        // Who only looks up an answer needs no list.
        Some(Asked { question, counters: if gives_back { counters(plan) } else { Vec::new() }, gives_back })
    }

    /// The counters of a request.
    pub(crate) fn counters(&self, plan: &Plan<'_>) -> Vec<u128> {
        counters(plan)
    }

    /// Before something is given back: who asks behind it in the same pipeline must not be told what was before. What
    /// Redis answered in between ends with the note that follows the reply.
    pub(crate) fn begin(&self, asked: &Asked) {
        if asked.gives_back {
            self.end(&asked.counters);
        }
    }

    /// The answer, if it is known that Redis would deny.
    pub(crate) fn denied(&self, asked: &Asked, now: Time) -> Option<Decision> {
        match self.cache.get(asked.question?, now)? {
            (Denied::Request(mut decision), at) => {
                let passed = now.since(at);
                shorten(&mut decision.verdict, &mut decision.reset_after, passed);
                decision.exceeded.iter_mut().for_each(|exceeded| shorten_retry(&mut exceeded.retry, passed));
                Some(decision)
            }
            _ => None,
        }
    }

    /// Takes note of what Redis has answered; `None`: nothing.
    pub(crate) fn note(&self, asked: &Asked, decision: Option<&Decision>, now: Time) {
        if asked.gives_back {
            self.end(&asked.counters);
        }
        let (Some(question), Some(decision)) = (asked.question, decision) else { return };
        if decision.allowed() || decision.decided_by != DecidedBy::Limits || decision.banned_until.is_some() {
            return;
        }
        let waits = decision.exceeded.iter().map(|exceeded| wait(exceeded.retry));
        if let Some(wait) = waits.min() {
            self.cache.put(question, Denied::Request(decision.clone()), now, wait);
        }
    }

    /// The counter of a key of the caller's.
    pub(crate) fn key_counter(&self, key: &[u8]) -> u128 {
        u128::from(self.hash.hash_one((1_u8, key))) << 64 | u128::from(self.hash.hash_one((2_u8, key)))
    }

    /// What a limit that the caller brings asks.
    pub(crate) fn ask_key(&self, op: Op, call: &AdHoc<'_>) -> Asked {
        let counter = self.key_counter(call.key);
        let question = matches!(op, Op::Take | Op::Peek).then(|| {
            let asked = u128::from(self.hash.hash_one((3_u8, call.limit))) << 64 | u128::from(call.cost);
            self.cache.question([counter].into_iter(), asked)
        });
        Asked { question, counters: vec![counter], gives_back: op == Op::Refund }
    }

    pub(crate) fn key_denied(&self, asked: &Asked, now: Time) -> Option<flowgate::Decision> {
        match self.cache.get(asked.question?, now)? {
            (Denied::Key(mut decision), at) => {
                shorten(&mut decision.verdict, &mut decision.reset_after, now.since(at));
                Some(decision)
            }
            _ => None,
        }
    }

    pub(crate) fn note_key(&self, asked: &Asked, decision: Option<&flowgate::Decision>, now: Time) {
        if asked.gives_back {
            self.end(&asked.counters);
        }
        if let (Some(question), Some(decision)) = (asked.question, decision)
            && let Verdict::Deny(retry) = decision.verdict
        {
            self.cache.put(question, Denied::Key(*decision), now, wait(retry));
        }
    }

    /// What a call of `CL.THROTTLE` asks.
    pub(crate) fn ask_throttle(&self, key: &[u8], throttle: &Throttle) -> Asked {
        let counter = self.key_counter(key);
        let (increment, tolerance) = throttle.nanos();
        let question = (increment > 0).then(|| {
            let asked = u128::from(self.hash.hash_one((4_u8, increment, tolerance)));
            self.cache.question([counter].into_iter(), asked)
        });
        Asked { question, counters: vec![counter], gives_back: increment < 0 }
    }

    pub(crate) fn throttle_denied(&self, asked: &Asked, throttle: &Throttle, now: Time) -> Option<ThrottleReply> {
        match self.cache.get(asked.question?, now)? {
            (Denied::Throttle(of, mut reply), at) if of == *throttle => {
                let passed = now.since(at);
                reply.retry_after = reply.retry_after.map(|wait| less(wait, passed));
                reply.reset_after = less(reply.reset_after, passed);
                Some(reply)
            }
            _ => None,
        }
    }

    pub(crate) fn note_throttle(&self, asked: &Asked, throttle: &Throttle, reply: Option<&ThrottleReply>, now: Time) {
        if asked.gives_back {
            self.end(&asked.counters);
        }
        if let (Some(question), Some(reply)) = (asked.question, reply)
            && reply.limited
        {
            let wait = reply.retry_after.unwrap_or(FOREVER);
            self.cache.put(question, Denied::Throttle(*throttle, *reply), now, wait);
        }
    }

    /// Something was, or may have been, given back to these counters.
    pub(crate) fn end(&self, counters: &[u128]) {
        self.cache.end(counters.iter().copied());
    }
}

/// What no wait helps is remembered as long as anything is.
const FOREVER: Span = Span::from_secs(u32::MAX as u64);

fn counters(plan: &Plan<'_>) -> Vec<u128> {
    plan.hits().iter().map(|hit| hit.key().bits()).collect()
}

fn wait(retry: Retry) -> Span {
    match retry {
        Retry::After(wait) => wait,
        Retry::Never => FOREVER,
    }
}

fn shorten(verdict: &mut Verdict, reset_after: &mut Span, passed: Span) {
    if let Verdict::Deny(retry) = verdict {
        shorten_retry(retry, passed);
    }
    *reset_after = less(*reset_after, passed);
}

fn shorten_retry(retry: &mut Retry, passed: Span) {
    if let Retry::After(wait) = retry {
        *wait = less(*wait, passed);
    }
}

fn less(span: Span, passed: Span) -> Span {
    Span::from_nanos(span.as_nanos().saturating_sub(passed.as_nanos()))
}
