//! Koala's counters in a Redis of the test's own.

use flowgate_engine::redis::{OwnedPlan, RedisQuestion, ReplyError, ScriptCall, ScriptTime, unpacked};
use flowgate_koala::OwnedKoalaPlan;
use flowgate_testkit::redis::Redis;

use super::*;

pub(crate) struct Shared {
    connection: redis::Connection,
    _server: Redis,
}

impl Shared {
    pub(crate) fn start() -> Shared {
        let server = Redis::start();
        Shared { connection: server.connect(), _server: server }
    }

    fn conclude<T>(&mut self, plan: &OwnedPlan, now: Time, read: impl Fn(&[&[i64]]) -> Result<T, ReplyError>) -> T {
        let mut around = now;
        loop {
            let reply = self.numbers(&plan.call(None, "k:", ScriptTime::Injected(now), around));
            match read(&[&reply]) {
                Err(ReplyError::Around(other)) if other != around => around = other,
                concluded => return concluded.unwrap(),
            }
        }
    }

    fn numbers(&mut self, call: &ScriptCall) -> Vec<i64> {
        let mut command = redis::cmd("EVAL");
        command.arg(call.script.source).arg(call.keys().len());
        call.keys().chain(call.args()).for_each(|part| _ = command.arg(part));
        match command.query(&mut self.connection).unwrap() {
            redis::Value::BulkString(packed) => unpacked(&packed).unwrap().into_vec(),
            list => redis::from_redis_value(list).unwrap(),
        }
    }
}

impl Counters for Shared {
    fn ask(&mut self, rules: &KoalaRules, ask: KoalaAsk, request: &Request<'_>, now: Time) -> KoalaAnswer {
        let plan = rules.plan(ask, request);
        if !plan.plan.asks_redis() {
            return rules.conclude(ask, &plan);
        }
        let plan = OwnedKoalaPlan::new(rules, ask, &plan, request);
        self.conclude(&plan.plan, now, |replies| plan.conclude(rules, replies))
    }

    fn erase(&mut self, rules: &KoalaRules, erase: KoalaErase, request: &Request<'_>, now: Time) {
        for plan in rules.owned_feedback(erase, request) {
            self.conclude(&plan, now, |replies| plan.conclude(replies));
        }
    }

    fn value(&mut self, rules: &KoalaRules, number: u32, request: &Request<'_>, now: Time) -> Option<u64> {
        let plan = rules.owned_value(number, request)?;
        if plan.groups() == 0 {
            return Some(0);
        }
        let read = |replies: &[&[i64]]| plan.read(replies, |outcomes, _| KoalaRules::concluded_value(outcomes));
        Some(self.conclude(&plan, now, read))
    }
}
