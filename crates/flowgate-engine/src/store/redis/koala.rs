//! Koala's rules where counters live in Redis: the counterparts of what the engine asks its own memory.

use flowgate::Op;
use smallvec::SmallVec;

use super::prepared::{Conclusion, Prepared};
use crate::koala::{KoalaAnswer, KoalaAsk, KoalaErase, KoalaRules};
use crate::request::Request;
use crate::rules::Found;

/// A request to Koala that awaits its reply.
#[derive(Clone, Debug)]
pub struct PreparedKoala {
    /// What is to be asked.
    pub prepared: Prepared,
    ask: KoalaAsk,
    /// The direct rules that match, by position.
    direct: SmallVec<[u32; 2]>,
}

impl PreparedKoala {
    /// What is asked.
    pub fn ask(&self) -> KoalaAsk {
        self.ask
    }

    /// The answer, where Redis has no say in it.
    pub fn at_once(&self) -> Option<KoalaAnswer> {
        let untouched = || self.prepared.limited_by().map(|rule| (rule.id(), false));
        (self.prepared.groups() == 0).then(|| KoalaAnswer::of(self.ask, untouched(), &self.direct))
    }

    /// The answer that follows from the conclusion.
    pub fn conclude(&self, conclusion: &Conclusion) -> KoalaAnswer {
        let hits = conclusion.outcomes.iter().map(|(rule, outcome)| (*rule, !outcome.allowed()));
        KoalaAnswer::of(self.ask, hits, &self.direct)
    }

    /// The answer where each limit counts as exceeded: of a store that is away and denies.
    pub fn denied(&self) -> KoalaAnswer {
        KoalaAnswer::of(self.ask, self.prepared.limited_by().map(|rule| (rule.id(), true)), &self.direct)
    }
}

impl KoalaRules {
    /// What a request asks of Redis.
    pub fn prepare(&self, ask: KoalaAsk, request: &Request<'_>) -> PreparedKoala {
        let set = self.set();
        let values = set.read(request);
        let mut prepared = Prepared::new(set, ask.op(), 1);
        let mut direct = SmallVec::new();
        for (rule, limits) in set.matching(&values) {
            if !limits.limits.is_empty() {
                prepared.note(Found::Limits(rule, limits), &values);
                continue;
            }
            direct.push(rule.id());
            if ask == KoalaAsk::Browse {
                break;
            }
        }
        PreparedKoala { prepared: prepared.watched(), ask, direct }
    }

    /// What feedback asks of Redis, rule by rule.
    pub fn prepare_feedback(&self, erase: KoalaErase, request: &Request<'_>) -> Vec<Prepared> {
        let set = self.set();
        let values = set.read(request);
        let given = set.matching(&values).filter_map(|(rule, limits)| {
            let units = self.erased(rule, erase)?;
            let mut prepared = Prepared::new(set, Op::Refund, units);
            prepared.note(Found::Limits(rule, limits), &values);
            Some(prepared)
        });
        given.collect()
    }

    /// What asks Redis how much the rule of a number has counted for a request; `None`: there is no such rule.
    pub fn prepare_value(&self, number: u32, request: &Request<'_>) -> Option<Prepared> {
        let gauges = self.gauges();
        let rule = gauges.rule(self.position(number)?);
        let values = gauges.read(request);
        let mut prepared = Prepared::new(gauges, Op::Peek, 0);
        if let Ok(limits) = gauges.check(rule, &values).map(|limits| Found::Limits(rule, limits)) {
            prepared.note(limits, &values);
        }
        Some(prepared.watched())
    }

    /// How much is in the counter, by the conclusion of [`KoalaRules::prepare_value`].
    pub fn concluded_value(conclusion: &Conclusion) -> u64 {
        KoalaRules::counted(conclusion.outcomes.first().map(|(_, outcome)| outcome))
    }
}
