//! `GET /v1/stats`: how the server is doing, and who is behind it. Subjects are named here, so it is for administrators.

use super::json::Object;
use super::reply::{self, Reply};
use crate::metrics::{Top, TopSubject};
use crate::service::Service;

/// `{"started":..,"rules":..,"memory":{..},"hottest":{..},"most_denied":{..}}`.
pub(super) fn stats(service: &Service) -> Reply {
    let mut out = Vec::with_capacity(1024);
    let mut object = Object::new(&mut out);
    object.text("version", env!("CARGO_PKG_VERSION"));
    object.time("started", service.started());
    object.seconds("uptime", service.now().since(service.started()));
    object.number("rules", service.rules().rules().len() as u64);
    object.value("memory", |out| write_memory(out, service));
    object.value("hottest", |out| write_top(out, &service.hottest()));
    object.value("most_denied", |out| write_top(out, &service.most_denied()));
    object.end();
    reply::json(out)
}

fn write_memory(out: &mut Vec<u8>, service: &Service) {
    let memory = service.stats();
    let mut object = Object::new(out);
    object.number("keys", memory.counters as u64);
    object.number("bytes", memory.bytes as u64);
    object.number("max_bytes", memory.max_bytes as u64);
    object.number("evicted", memory.evicted);
    object.number("evicted_in_use", memory.evicted_in_use);
    object.number("refused", memory.refused);
    object.number("bans_refused", memory.bans_refused);
    object.end();
}

fn write_top(out: &mut Vec<u8>, top: &Top) {
    let mut object = Object::new(out);
    object.time("since", top.since);
    object.list("subjects", &top.subjects, |out, TopSubject { rule, subject, count, error }| {
        let mut object = Object::new(out);
        object.optional_text("rule", rule.as_deref());
        object.text("subject", subject);
        object.number("count", *count);
        object.number("error", *error);
        object.end();
    });
    object.end();
}
