//! An engine whose counters are in Redis, asked as one whose counters are in memory is.

use flowgate::{MemoryStore, Op, OtherAlgorithm, Reading, Throttle, ThrottleError, ThrottleReply, Time};
use flowgate_engine::redis::{
    OwnedJointPlan, OwnedPlan, PreparedLimit, PreparedThrottle, RedisQuestion, ReplyError, ScriptCall, ScriptTime,
    take_unreadable, unpacked,
};
use flowgate_engine::{AdHoc, Decision, Engine, JointDecision, Policy, Request, RuleDef};

pub(crate) const PREFIX: &str = "fg:";

/// An engine whose counters are in Redis: the calls of requests by the rules in force.
pub(crate) trait Prepare {
    fn prepare(&self, op: Op, request: &Request<'_>, now: Time) -> OwnedPlan;
    fn prepare_joint(&self, requests: &[(Op, Request<'_>)], at: Reading) -> OwnedJointPlan;
}

impl Prepare for Engine {
    fn prepare(&self, op: Op, request: &Request<'_>, now: Time) -> OwnedPlan {
        let rules = self.rules();
        OwnedPlan::new(&rules, &self.plan(&rules, op, request, now), request)
    }

    fn prepare_joint(&self, requests: &[(Op, Request<'_>)], at: Reading) -> OwnedJointPlan {
        let rules = self.rules();
        let plan = self.plan_joint(&rules, requests, at);
        OwnedJointPlan::new(&plan, requests.iter().map(|(_, request)| (&rules, request)))
    }
}

/// An engine, a connection, and whose clock decides.
pub(crate) struct RedisEngine {
    pub(crate) engine: Engine,
    pub(crate) connection: redis::Connection,
    pub(crate) prefix: String,
    /// Redis's clock instead of the time that a call brings.
    pub(crate) own_time: bool,
}

impl RedisEngine {
    pub(crate) fn new(rules: &[RuleDef], connection: redis::Connection) -> RedisEngine {
        let policy = Policy { rules: rules.to_vec(), ..Policy::default() };
        let engine = Engine::new(&policy, MemoryStore::default()).unwrap();
        RedisEngine { engine, connection, prefix: PREFIX.to_owned(), own_time: false }
    }

    pub(crate) fn time(&self, now: Time) -> ScriptTime {
        if self.own_time { ScriptTime::Redis } else { ScriptTime::Injected(now) }
    }

    pub(crate) fn decide(&mut self, op: Op, request: &Request<'_>, now: Time) -> Decision {
        let prepared = self.engine.prepare(op, request, now);
        if let Some(decision) = prepared.at_once(now) {
            return decision;
        }
        let time = self.time(now);
        let mut around = now;
        loop {
            let reply = numbers(&mut self.connection, &prepared.call(None, &self.prefix, time, around));
            match prepared.conclude(&[&reply]) {
                Ok(conclusion) => {
                    self.engine.note_conclusion(&conclusion, || request.clone());
                    return conclusion.decision;
                }
                Err(ReplyError::Around(other)) if other != around => around = other,
                Err(error) => panic!("{error}: {reply:?}"),
            }
        }
    }

    /// Decides as in a cluster: each group by itself, and rolls back.
    pub(crate) fn decide_in_groups(&mut self, op: Op, request: &Request<'_>, now: Time) -> Decision {
        let prepared = self.engine.prepare(op, request, now);
        if let Some(decision) = prepared.at_once(now) {
            return decision;
        }
        let replies = self.ask_groups(&prepared, now);
        let replies: Vec<&[i64]> = replies.iter().map(Vec::as_slice).collect();
        prepared.conclude(&replies).unwrap().decision
    }

    /// Decides several requests in one step.
    pub(crate) fn decide_joint(&mut self, requests: &[(Op, Request<'_>)], now: Time) -> JointDecision {
        let prepared = self.engine.prepare_joint(requests, now.into());
        if prepared.groups() == 0 {
            return self.engine.decide_joint(requests, now);
        }
        let time = self.time(now);
        let mut around = now;
        loop {
            let reply = numbers(&mut self.connection, &prepared.call(None, &self.prefix, time, around));
            match prepared.conclude(&[&reply]) {
                Ok(conclusion) => {
                    self.engine.note_joint_conclusion(&conclusion, |part| requests[part].1.clone());
                    return conclusion.decision;
                }
                Err(ReplyError::Around(other)) if other != around => around = other,
                Err(error) => panic!("{error}: {reply:?}"),
            }
        }
    }

    /// Decides several requests as in a cluster: each group by itself, and rolls back.
    pub(crate) fn decide_joint_in_groups(&mut self, requests: &[(Op, Request<'_>)], now: Time) -> JointDecision {
        let prepared = self.engine.prepare_joint(requests, now.into());
        if prepared.groups() == 0 {
            return self.engine.decide_joint(requests, now);
        }
        let replies = self.ask_groups(&prepared, now);
        let replies: Vec<&[i64]> = replies.iter().map(Vec::as_slice).collect();
        prepared.conclude(&replies).unwrap().decision
    }

    /// Asks each group by itself, and rolls back if one denies.
    fn ask_groups(&mut self, question: &dyn RedisQuestion, now: Time) -> Vec<Vec<i64>> {
        let time = self.time(now);
        let replies: Vec<Vec<i64>> = (0..question.groups())
            .map(|group| numbers(&mut self.connection, &question.call(Some(group), &self.prefix, time, now)))
            .collect();
        if replies.len() > 1 {
            let some: Vec<Option<&[i64]>> = replies.iter().map(|reply| Some(reply.as_slice())).collect();
            for call in question.undo_calls(&self.prefix, time, &some) {
                numbers(&mut self.connection, &call);
            }
        }
        replies
    }

    pub(crate) fn reset(&mut self, request: &Request<'_>, now: Time) -> Decision {
        for call in self.engine.reset_calls_by(&self.engine.rules(), &self.prefix, self.time(now), request) {
            eval::<i64>(&mut self.connection, &call);
        }
        self.decide(Op::Peek, &request.clone().cost(0), now)
    }

    pub(crate) fn limit(&mut self, op: Op, call: AdHoc<'_>, now: Time) -> Result<flowgate::Decision, OtherAlgorithm> {
        let prepared = PreparedLimit::new(op, call);
        let call = prepared.call(None, &self.prefix, self.time(now), now);
        let reply = numbers(&mut self.connection, &call);
        prepared.conclude(&reply).unwrap()
    }

    pub(crate) fn throttle(
        &mut self,
        key: &[u8],
        throttle: Throttle,
        now: Time,
    ) -> Result<ThrottleReply, ThrottleError> {
        let prepared = PreparedThrottle::new(key, throttle);
        let call = prepared.call(None, &self.prefix, self.time(now), now);
        let reply = numbers(&mut self.connection, &call);
        prepared.conclude(&reply).unwrap()
    }
}

/// Calls a script that answers with numbers.
pub(crate) fn numbers(connection: &mut redis::Connection, call: &ScriptCall) -> Vec<i64> {
    numbers_and_unreadable(connection, call).0
}

/// Like [`numbers`], and how many values could not be read.
pub(crate) fn numbers_and_unreadable(connection: &mut redis::Connection, call: &ScriptCall) -> (Vec<i64>, usize) {
    let mut reply = match eval(connection, call) {
        redis::Value::BulkString(packed) => unpacked(&packed).unwrap().into_vec(),
        list => redis::from_redis_value(list).unwrap(),
    };
    let unreadable = take_unreadable(&mut reply);
    (reply, unreadable)
}

/// Calls a script by its name, and by its text where Redis does not know it.
pub(crate) fn eval<T: redis::FromRedisValue>(connection: &mut redis::Connection, call: &ScriptCall) -> T {
    let command = |name: &str, script: &str| {
        let mut command = redis::cmd(name);
        command.arg(script).arg(call.keys().len());
        call.keys().chain(call.args()).for_each(|part| _ = command.arg(part));
        command
    };
    match command("EVALSHA", &call.script.sha1).query(connection) {
        Err(error) if error.code() == Some("NOSCRIPT") => {
            command("EVAL", call.script.source).query(connection).unwrap_or_else(|error| panic!("{error}\n{call:?}"))
        }
        result => result.unwrap_or_else(|error| panic!("{error}\n{call:?}")),
    }
}
