//! Ad hoc keys: a limit that is in no rule, and `CL.THROTTLE`.

use flowgate::portable;
use flowgate::{
    Database, Decision, Hit, Limit, Op, OtherAlgorithm, RuleFlags, Span, Throttle, ThrottleError, ThrottleReply, Time,
};

use super::decode::{Reply, ReplyError};
use super::encode::{Ask, Bans, Cells, NANOS_PER_SECOND, ScriptTime};
use super::keys;
use super::owned_plan::takes;
use super::question::RedisQuestion;
use super::script::{DECIDE, ScriptCall, THROTTLE};
use super::undo::UndoCall;
use crate::decider::{AdHoc, AdHocKey};

/// The key in Redis of an ad hoc key: for `DEL`, `EXISTS`, `PTTL`.
pub fn ad_hoc_key<'k>(prefix: &str, key: impl Into<AdHocKey<'k>>) -> Vec<u8> {
    let mut name = Vec::new();
    keys::write_ad_hoc(&mut name, prefix, key.into());
    name
}

/// The lifetime of a key by the reply to `PTTL`; `None` if the key is as if never used.
pub fn lifetime(pttl: i64) -> Option<Span> {
    u64::try_from(pttl).ok().filter(|millis| *millis > 0).map(Span::from_millis)
}

/// An ad hoc key that awaits its reply.
#[derive(Clone, Debug)]
struct OwnedKey {
    bytes: Box<[u8]>,
    database: Database,
}

impl OwnedKey {
    fn new(AdHocKey { bytes, database }: AdHocKey<'_>) -> OwnedKey {
        OwnedKey { bytes: bytes.into(), database }
    }

    fn get(&self) -> AdHocKey<'_> {
        AdHocKey { bytes: &self.bytes, database: self.database }
    }

    fn tag(&self) -> Vec<u8> {
        let mut tag = Vec::new();
        keys::ad_hoc(&mut tag, self.get());
        tag
    }
}

/// A question about a limit without a rule that waits for its reply.
#[derive(Clone, Debug)]
pub struct PreparedLimit {
    /// The question.
    pub op: Op,
    cost: u64,
    limit: Limit,
    key: OwnedKey,
}

impl PreparedLimit {
    /// What is to be asked.
    pub fn new(op: Op, call: AdHoc<'_>) -> PreparedLimit {
        PreparedLimit { op, cost: call.cost, limit: call.limit.clone(), key: OwnedKey::new(call.key) }
    }

    /// The same question for another store.
    pub fn ad_hoc(&self) -> AdHoc<'_> {
        AdHoc { key: self.key.get(), limit: &self.limit, cost: self.cost }
    }

    /// The decision that follows from the reply, or that the key belongs to another algorithm.
    ///
    /// # Errors
    /// If the reply has no decision in it.
    pub fn conclude(&self, reply: &[i64]) -> Result<Result<Decision, OtherAlgorithm>, ReplyError> {
        let (reply, now) = match Reply::open(reply) {
            Err(ReplyError::OtherAlgorithm) => return Ok(Err(OtherAlgorithm)),
            opened => opened?,
        };
        Ok(Ok(*self.decided(reply, now)?.outcome()))
    }

    fn decided(&self, mut reply: Reply<'_>, now: Time) -> Result<Hit<'_>, ReplyError> {
        let mut hit = Hit::portable(&self.limit);
        reply.restore(&mut hit)?;
        reply.close()?;
        portable::decide(&mut flowgate::Plan::one(
            flowgate::Ask::new(self.op, self.cost, now),
            std::slice::from_mut(&mut hit),
        ));
        Ok(hit)
    }
}

impl RedisQuestion for PreparedLimit {
    fn call(&self, _: Option<usize>, prefix: &str, time: ScriptTime, around: Time) -> ScriptCall {
        let mut call = ScriptCall::new(&DECIDE);
        call.keys.write(|key| keys::write_ad_hoc(key, prefix, self.key.get()));
        let ask = Ask { op: self.op, cost: self.cost, time };
        Cells::write(&mut call.args, |cells| {
            cells.head(ask, 1);
            cells.rule(RuleFlags::default(), 1, Bans::No, 1);
            cells.limit(&keys::AD_HOC, &self.limit, ask, around);
            cells.padding();
        });
        call
    }

    fn undo_calls(&self, prefix: &str, time: ScriptTime, replies: &[Option<&[i64]>]) -> Vec<ScriptCall> {
        if !takes(self.op) || self.cost == 0 {
            return Vec::new();
        }
        let tag = self.key.tag();
        let undo = |reply: &[i64]| {
            let (reply, now) = Reply::open(reply).ok()?;
            let hit = self.decided(reply, now).ok().filter(|hit| hit.outcome().allowed())?;
            let mut undo = UndoCall::new(prefix, time, self.cost, now);
            undo.add(&hit, &tag, &keys::AD_HOC);
            undo.finish()
        };
        replies.iter().flatten().filter_map(|reply| undo(reply)).collect()
    }
}

/// A question of `CL.THROTTLE` that waits for its reply.
#[derive(Clone, Debug)]
pub struct PreparedThrottle {
    /// The call.
    pub throttle: Throttle,
    key: OwnedKey,
}

impl PreparedThrottle {
    /// What is to be asked.
    pub fn new<'k>(key: impl Into<AdHocKey<'k>>, throttle: Throttle) -> PreparedThrottle {
        PreparedThrottle { throttle, key: OwnedKey::new(key.into()) }
    }

    /// The key that is asked about.
    pub fn key(&self) -> AdHocKey<'_> {
        self.key.get()
    }

    /// What follows from the reply.
    ///
    /// # Errors
    /// If the reply is not the script's.
    pub fn conclude(&self, reply: &[i64]) -> Result<Result<ThrottleReply, ThrottleError>, ReplyError> {
        if let [-2] = reply {
            return Ok(Err(OtherAlgorithm.into()));
        }
        let (now, tat) = times(reply)?;
        Ok(self.throttle.answer((tat > now).then_some(tat), now))
    }
}

impl RedisQuestion for PreparedThrottle {
    /// An injected time may have nanoseconds.
    fn call(&self, _: Option<usize>, prefix: &str, time: ScriptTime, _: Time) -> ScriptCall {
        let mut call = ScriptCall::new(&THROTTLE);
        call.keys.write(|key| keys::write_ad_hoc(key, prefix, self.key.get()));
        let (increment, tolerance) = self.throttle.nanos();
        Cells::write(&mut call.args, |cells| {
            cells.nanos(increment);
            cells.nanos(tolerance);
            match time {
                ScriptTime::Injected(now) => cells.nanos(now.as_nanos() as i64),
                ScriptTime::Redis => cells.nanos(-NANOS_PER_SECOND),
            }
        });
        call
    }

    fn undo_calls(&self, prefix: &str, time: ScriptTime, replies: &[Option<&[i64]>]) -> Vec<ScriptCall> {
        let tag = self.key.tag();
        let undo = |reply: &[i64]| {
            let (now, tat) = times(reply).ok()?;
            let (increment, _) = self.throttle.nanos();
            let passed = self.throttle.answer((tat > now).then_some(tat), now).is_ok_and(|reply| !reply.limited);
            if increment <= 0 || !passed {
                return None;
            }
            let tat = i64::try_from(tat.max(now).as_nanos()).ok()?.checked_add(increment)?;
            let mut undo = UndoCall::new(prefix, time, 0, now);
            undo.add_throttle(tat, increment, &tag);
            undo.finish()
        };
        replies.iter().flatten().filter_map(|reply| undo(reply)).collect()
    }
}

/// Redis's time and the instant until which the key was in debt, from the reply of `throttle.lua`.
fn times(reply: &[i64]) -> Result<(Time, Time), ReplyError> {
    let [seconds, nanos, tat_seconds, tat_nanos] = *reply else { return Err(ReplyError::Malformed) };
    let time = |seconds: i64, nanos: i64| {
        let nanos = seconds.checked_mul(NANOS_PER_SECOND).and_then(|whole| whole.checked_add(nanos));
        nanos.and_then(|nanos| u64::try_from(nanos).ok()).map(Time::from_nanos).ok_or(ReplyError::Malformed)
    };
    Ok((time(seconds, nanos)?, time(tat_seconds, tat_nanos)?))
}
