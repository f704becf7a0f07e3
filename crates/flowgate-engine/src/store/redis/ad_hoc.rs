//! Keys of the caller's own: a limit that is in no rule, and `CL.THROTTLE`.

use flowgate::remote;
use flowgate::{Decision, Hit, Limit, Op, OtherAlgorithm, Rule, Span, Throttle, ThrottleError, ThrottleReply, Time};

use super::decode::{Reply, ReplyError};
use super::encode::{self, Ask, RuleTerms, ScriptTime};
use super::keys;
use super::script::{DECIDE, Parts, ScriptCall, THROTTLE};
use crate::engine::AdHoc;

/// The key under which Redis keeps what the caller names: for `DEL`, `EXISTS`, `PTTL`.
pub fn ad_hoc_key(prefix: &str, key: &[u8]) -> Vec<u8> {
    let mut name = Vec::new();
    keys::write(&mut name, prefix, &keys::ad_hoc(key), "");
    name
}

/// What the reply to `PTTL` says of how long a key lives on; `None` when it is as if never used.
pub fn lifetime(pttl: i64) -> Option<Span> {
    u64::try_from(pttl).ok().filter(|millis| *millis > 0).map(Span::from_millis)
}

/// A limit without a rule that awaits its reply.
#[derive(Clone, Debug)]
pub struct PreparedLimit {
    op: Op,
    cost: u64,
    limit: Limit,
    tag: Vec<u8>,
}

impl PreparedLimit {
    /// What is to be asked.
    pub fn new(op: Op, call: AdHoc<'_>) -> PreparedLimit {
        PreparedLimit { op, cost: call.cost, limit: call.limit.clone(), tag: keys::ad_hoc(call.key) }
    }

    /// The call that decides; see [`Prepared::call`](super::Prepared::call).
    pub fn call(&self, prefix: &str, time: ScriptTime, around: Time) -> ScriptCall {
        let mut call = ScriptCall::new(&DECIDE);
        call.keys.write(|key| keys::write(key, prefix, &self.tag, ""));
        let limits = vec![(self.limit.algorithm(), self.limit.terms(self.op, self.cost, around))];
        let rule = RuleTerms { rule: Rule::default(), limits, ban: None };
        encode::call(&mut call.args, Ask { op: self.op, cost: self.cost, time }, &[rule]);
        call
    }

    /// The decision that follows from the reply, or that the key belongs to another algorithm.
    ///
    /// # Errors
    /// When there is none in it.
    pub fn conclude(&self, reply: &[i64]) -> Result<Result<Decision, OtherAlgorithm>, ReplyError> {
        let (mut reply, now) = match Reply::open(reply) {
            Err(ReplyError::OtherAlgorithm) => return Ok(Err(OtherAlgorithm)),
            opened => opened?,
        };
        let mut hit = Hit::remote(&self.limit, Rule::default());
        let (own, seen) = reply.counter(&self.limit)?;
        reply.close()?;
        hit.restore(own, seen);
        remote::decide(self.op, self.cost, now, std::slice::from_mut(&mut hit), &mut []);
        Ok(Ok(*hit.outcome()))
    }
}

/// A call of `CL.THROTTLE` that awaits its reply.
#[derive(Clone, Debug)]
pub struct PreparedThrottle {
    throttle: Throttle,
    tag: Vec<u8>,
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;

impl PreparedThrottle {
    /// What is to be asked.
    pub fn new(key: &[u8], throttle: Throttle) -> PreparedThrottle {
        PreparedThrottle { throttle, tag: keys::ad_hoc(key) }
    }

    /// The call that decides. An injected time may have nanoseconds.
    pub fn call(&self, prefix: &str, time: ScriptTime) -> ScriptCall {
        let mut call = ScriptCall::new(&THROTTLE);
        call.keys.write(|key| keys::write(key, prefix, &self.tag, ""));
        let (increment, tolerance) = self.throttle.nanos();
        split(&mut call.args, increment);
        split(&mut call.args, tolerance);
        if let ScriptTime::Injected(now) = time {
            split(&mut call.args, now.as_nanos() as i64);
        }
        call
    }

    /// What follows from the reply.
    ///
    /// # Errors
    /// When it is not the script's.
    pub fn conclude(&self, reply: &[i64]) -> Result<Result<ThrottleReply, ThrottleError>, ReplyError> {
        if let [-2] = reply {
            return Ok(Err(OtherAlgorithm.into()));
        }
        let [seconds, nanos, tat_seconds, tat_nanos] = *reply else { return Err(ReplyError::Malformed) };
        let time = |seconds: i64, nanos: i64| {
            let nanos = seconds.checked_mul(NANOS_PER_SECOND).and_then(|whole| whole.checked_add(nanos));
            nanos.and_then(|nanos| u64::try_from(nanos).ok()).map(Time::from_nanos).ok_or(ReplyError::Malformed)
        };
        let now = time(seconds, nanos)?;
        let tat = time(tat_seconds, tat_nanos)?;
        Ok(self.throttle.answer((tat > now).then_some(tat), now))
    }
}

/// Seconds, rounded down, and nanoseconds.
fn split(args: &mut Parts, nanos: i64) {
    let seconds = nanos.div_euclid(NANOS_PER_SECOND);
    args.write(|arg| arg.extend_from_slice(seconds.to_string().as_bytes()));
    args.number(nanos.rem_euclid(NANOS_PER_SECOND).unsigned_abs());
}
