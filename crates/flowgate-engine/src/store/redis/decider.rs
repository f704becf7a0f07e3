//! What decides where the counters live in Redis.

use std::sync::Arc;

use flowgate::{Op, Time};

use super::keys;
use super::prepared::{Conclusion, Prepared, tag};
use crate::bans::{BanId, BanKind, RuleBan, RuleBanPlace};
use crate::decider::Decider;
use crate::engine::Engine;
use crate::request::Request;
use crate::rules::RuleSet;

impl Decider {
    /// What a request asks of Redis: the counterpart of [`Decider::decide_by`], which asks its own memory.
    pub fn prepare_by(&self, rules: &Arc<RuleSet>, op: Op, request: &Request<'_>, now: Time) -> Prepared {
        let values = rules.read(request);
        let mut prepared = Prepared::new(rules, op, request.units());
        self.evaluate(rules, request, &values, now, |found| prepared.note(found, &values));
        prepared
    }

    /// The keys of all that matching rules have counted for the request's subjects, bans included, those of each
    /// subject together: what to delete for a `reset`. Afterwards, a `peek` of 0 tells how things stand.
    pub fn reset_keys_by(&self, rules: &RuleSet, prefix: &str, request: &Request<'_>) -> Vec<Vec<Vec<u8>>> {
        let values = rules.read(request);
        let mut groups: Vec<(Vec<u8>, Vec<Vec<u8>>)> = Vec::new();
        for (rule, _) in rules.matching(&values) {
            let tag = tag(rules, rule, &values);
            let mut found: Vec<Vec<u8>> = Vec::new();
            let mut name = |counter: &str| {
                let mut key = Vec::new();
                keys::write(&mut key, prefix, &tag, counter);
                if !found.contains(&key) {
                    found.push(key);
                }
            };
            rules.all_limits(rule).for_each(|named| name(&named.tail));
            if rule.ban().is_some() {
                name(&keys::ban_counter(rule.name()));
            }
            match groups.iter_mut().find(|(known, _)| *known == tag) {
                Some((_, keys)) => keys.append(&mut found),
                None => groups.push((tag, found)),
            }
        }
        groups.into_iter().map(|(_, keys)| keys).filter(|keys| !keys.is_empty()).collect()
    }

    /// Remembers by name whom a conclusion has got banned.
    pub fn note_conclusion(&self, conclusion: &Conclusion) {
        for ban in &conclusion.new_bans {
            let (id, rule, subject) = (self.next_ban_id(BanKind::Rule), Arc::clone(&ban.rule), ban.subject.clone());
            let place = RuleBanPlace::Redis(ban.key.clone());
            self.imposed().note(RuleBan { id, rule, subject, until: ban.until, place });
        }
    }

    /// What follows the prefix in the key that is to be deleted for a ban to be lifted that a rule has imposed. `None`
    /// when there is no such ban.
    pub fn rule_ban_key(&self, id: BanId, now: Time) -> Option<Box<[u8]>> {
        match self.imposed().find(id, now)?.place {
            RuleBanPlace::Redis(key) => Some(key),
            RuleBanPlace::Memory(_) => None,
        }
    }

    /// Strikes a ban that a rule has imposed from the list: its key was deleted.
    pub fn strike_rule_ban(&self, id: BanId, now: Time) {
        self.imposed().take(id, now);
    }

    /// The id of the next ban by hand that this node imposes in the shared store.
    pub fn next_manual_ban_id(&self) -> BanId {
        self.next_ban_id(BanKind::Hand)
    }
}

impl Engine {
    /// What a request asks of Redis by the rules in force.
    pub fn prepare(&self, op: Op, request: &Request<'_>, now: Time) -> Prepared {
        self.prepare_by(&self.rules(), op, request, now)
    }

    /// As [`Decider::reset_keys_by`], by the rules in force.
    pub fn reset_keys(&self, prefix: &str, request: &Request<'_>) -> Vec<Vec<Vec<u8>>> {
        self.reset_keys_by(&self.rules(), prefix, request)
    }
}
