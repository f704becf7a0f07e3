//! Bans: by hand, of a field's value, and those that rules have imposed.

use std::sync::Arc;

use flowgate::Reading;
use flowgate_engine::bans::{BanId, BanOrder, BanOrderError, ManualBan, RuleBan};

use super::{Answer, Service, StoreAway};
use crate::author::{Author, changed};
use crate::recent::{BanMark, MarkKind};

/// Why a ban cannot be imposed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BanError {
    /// The order is not valid.
    #[error(transparent)]
    Order(#[from] BanOrderError),
    /// The shared store does not answer, so other nodes would not learn of the ban.
    #[error(transparent)]
    Away(#[from] StoreAway),
}

impl Service {
    /// Bans a value of a field, in place of an earlier ban of the same value. The ban keeps its author.
    ///
    /// # Errors
    /// When the value is neither a text nor addresses, a text is too long, there are too many bans, or the shared store
    /// does not answer.
    pub fn ban(&self, order: BanOrder<'_>, author: &Author) -> Answer<Result<Arc<ManualBan>, BanError>> {
        let (author, of_ban, length) = (author.clone(), author.of_ban(), order.length);
        let order = BanOrder { author: Some(&of_ban), ..order };
        let answer = match &self.shared {
            None => match self.decider.ban(order, self.read()) {
                Ok(ban) => self.kept_for_sure(Ok(ban)),
                Err(error) => Answer::Now(Err(error.into())),
            },
            Some(shared) => shared.ban(order),
        };
        let service = self.clone();
        answer.map(move |imposed| {
            let ban = imposed?;
            let ManualBan { id, field, value, reason, .. } = &*ban;
            service.mark(MarkKind::Ban(BanMark::new(field, value, &author)));
            changed!(&author, "ban imposed", %id, field = &**field, value = &**value, %length, reason = &**reason);
            Ok(ban)
        })
    }

    /// Lifts a ban by its id, whether by hand or by a rule; false if there is none.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn unban(&self, id: BanId, author: &Author) -> Answer<Result<bool, StoreAway>> {
        let (service, author) = (self.clone(), author.clone());
        let by_hand = self.decider.manual_ban(id, self.ban_time(self.read()).now);
        let answer = match &self.shared {
            None => self.kept_for_sure(Ok(self.decider.unban(id, self.now()))),
            Some(shared) => shared.unban(id),
        };
        answer.map(move |lifted| {
            if lifted == Ok(true) {
                changed!(&author, "ban lifted", %id);
                if let Some(ban) = by_hand {
                    service.mark(MarkKind::Lift(BanMark::new(&ban.field, &ban.value, &author)));
                }
            }
            lifted
        })
    }

    /// Lifts the ban by hand of a field's value, in whatever way an address in it is written; false if there is none.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn unban_value(&self, field: &str, value: &str, author: &Author) -> Answer<Result<bool, StoreAway>> {
        let answer = match &self.shared {
            None => self.kept_for_sure(Ok(self.decider.unban_value(field, value, self.now()))),
            Some(shared) => shared.unban_value(field, value),
        };
        let (service, author) = (self.clone(), author.clone());
        let (field, value) = (Arc::from(field), Arc::from(value));
        answer.map(move |lifted| {
            if lifted == Ok(true) {
                changed!(&author, "ban lifted", field = &*field, value = &*value);
                service.mark(MarkKind::Lift(BanMark::new(&field, &value, &author)));
            }
            lifted
        })
    }

    /// The time by which bans end when this node's clock says `at`: the time of the store that keeps the bans.
    pub(crate) fn ban_time(&self, at: Reading) -> Reading {
        self.shared.as_ref().map_or(at, |shared| shared.redis_time().into())
    }

    /// The bans by hand that are in force, oldest first.
    pub fn bans(&self) -> Vec<Arc<ManualBan>> {
        self.decider.bans(self.ban_time(self.read()))
    }

    /// True if one of these values is banned by hand.
    pub(crate) fn is_banned_by_hand<'f>(&self, fields: impl Iterator<Item = (&'f str, &'f str)>) -> bool {
        self.decider.is_banned(&fields.collect(), self.ban_time(self.read()).now)
    }

    /// The number of bans by hand that are in force.
    pub fn number_of_bans(&self) -> usize {
        self.decider.number_of_bans(self.ban_time(self.read()).now)
    }

    /// The number of bans by rules that are in force, 10,000 at most.
    pub fn number_of_rule_bans(&self) -> usize {
        self.decider.number_of_rule_bans(self.ban_time(self.read()).now)
    }

    /// The fields that have a value banned by hand.
    pub fn ban_fields(&self) -> Vec<Arc<str>> {
        self.decider.ban_fields()
    }

    /// The bans by rules that are in force, oldest first.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn rule_bans(&self) -> Answer<Result<Vec<RuleBan>, StoreAway>> {
        Answer::Now(Ok(self.decider.rule_bans(self.ban_time(self.read()))))
    }
}

#[cfg(test)]
mod tests {
    use flowgate::Span;
    use flowgate_engine::Request;

    use super::super::Operation;
    use super::super::tests::{now, service};
    use super::*;

    #[test]
    fn bans_come_and_go() {
        let (service, clock) = service("");
        let order = |field| BanOrder { field, value: "7", length: Span::from_secs(60), reason: "spam", author: None };
        let banned = |field| !now(service.decide(Operation::Peek, &Request::new().field(field, "7"))).allowed();
        let ban = now(service.ban(order("user"), &Author::PROGRAM)).unwrap();
        now(service.ban(order("name"), &Author::PROGRAM)).unwrap();
        assert!(banned("user") && banned("name"));
        assert_eq!(service.bans().len(), 2);
        let unban = |id| now(service.unban(id, &Author::PROGRAM)).unwrap();
        let unban_value = |field| now(service.unban_value(field, "7", &Author::PROGRAM)).unwrap();
        assert!(unban(ban.id) && !unban(ban.id));
        assert!(unban_value("name") && !unban_value("name"));
        assert!(!banned("user") && !banned("name"));
        now(service.ban(order("user"), &Author::PROGRAM)).unwrap();
        clock.advance(Span::from_secs(60));
        assert!(!banned("user") && service.bans().is_empty() && now(service.rule_bans()).unwrap().is_empty());
    }
}
