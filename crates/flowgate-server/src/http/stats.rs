//! `GET /v1/stats`: how the server is doing. It names subjects, so only administrators may read it.

use flowgate_api::Stats;

use super::reply::{self, Reply};
use crate::metrics::{Top, TopSubject};
use crate::service::Service;

pub(super) fn stats(service: &Service) -> Reply {
    let (hottest, most_denied) = (service.hottest(), service.most_denied());
    reply::json(&Stats {
        version: env!("CARGO_PKG_VERSION").into(),
        started: service.started().into(),
        uptime: service.now().since(service.started()).into(),
        rules: service.rules().rules().len() as u64,
        paused_until: service.paused().map(|pause| pause.until.into()),
        memory: service.stats().into(),
        hottest: top(&hottest),
        most_denied: top(&most_denied),
    })
}

fn top(top: &Top) -> flowgate_api::Top<'_> {
    flowgate_api::Top { since: top.since.into(), subjects: top.subjects.iter().map(subject).collect() }
}

fn subject(TopSubject { rule, subject, count, error }: &TopSubject) -> flowgate_api::TopSubject<'_> {
    let rule = rule.as_deref().map(Into::into);
    flowgate_api::TopSubject { rule, subject: subject.into(), count: *count, error: *error }
}
