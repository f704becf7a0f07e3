//! Koala's counters in a Redis of the test's own.

use flowgate_engine::redis::{Conclusion, Prepared, ReplyError, ScriptCall, ScriptTime};

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

    fn conclude(&mut self, prepared: &Prepared, now: Time) -> Conclusion {
        let mut around = now;
        loop {
            let reply = self.numbers(&prepared.call("k:", ScriptTime::Injected(now), around));
            match prepared.conclude(&reply) {
                Err(ReplyError::Around(other)) if other != around => around = other,
                concluded => return concluded.unwrap(),
            }
        }
    }

    fn numbers(&mut self, call: &ScriptCall) -> Vec<i64> {
        let mut command = redis::cmd("EVAL");
        command.arg(call.script.source).arg(call.keys().len());
        call.keys().chain(call.args()).for_each(|part| _ = command.arg(part));
        command.query(&mut self.connection).unwrap()
    }
}

impl Counters for Shared {
    fn ask(&mut self, rules: &KoalaRules, ask: KoalaAsk, request: &Request<'_>, now: Time) -> KoalaAnswer {
        let prepared = rules.prepare(ask, request);
        prepared.at_once().unwrap_or_else(|| prepared.conclude(&self.conclude(&prepared.prepared, now)))
    }

    fn erase(&mut self, rules: &KoalaRules, erase: KoalaErase, request: &Request<'_>, now: Time) {
        for prepared in rules.prepare_feedback(erase, request) {
            self.conclude(&prepared, now);
        }
    }

    fn value(&mut self, rules: &KoalaRules, number: u32, request: &Request<'_>, now: Time) -> Option<u64> {
        let prepared = rules.prepare_value(number, request)?;
        if prepared.groups() == 0 {
            return Some(0);
        }
        Some(KoalaRules::concluded_value(&self.conclude(&prepared, now)))
    }
}
