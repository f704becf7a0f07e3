//! Bans as records of the journal. A ban by hand is kept whole. Of a ban by a rule, the list entry with the names of
//! its subject is kept here; the ban itself is a counter and is kept with the counters.
//!
//! ```text
//! hand    id, until (8), since (8, zero if unknown), field, value, reason, author's right and address (empty if unknown)
//! lifted  id
//! noted   id, until (8), key (16), rule, number of fields (2), names and values
//! text    length (2), bytes
//! ```
//!
//! Rule       A reader takes a record that ends after the reason: earlier versions note no author. Earlier versions ignore
//!            what follows the reason.

use std::sync::Arc;

use flowgate::{Key, Time};
use hashbrown::HashSet;

use super::{BanAuthor, BanId, ManualBan, RuleBan, RuleBanPlace, target_name};
use crate::decider::Decider;
use crate::rules::RuleSet;

/// What a kept ban is. The numbers are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum KeptKind {
    /// A ban by hand.
    Hand = 1,
    /// A ban by hand that was lifted.
    Lifted = 2,
    /// A ban by a rule, with its subject.
    Noted = 3,
}

/// A cursor: which bans were written already.
#[derive(Debug, Default)]
pub struct BanCursor {
    version: u64,
    by_hand: HashSet<BanId>,
    /// The number of the last ban by a rule that was written.
    noted: u64,
}

impl Decider {
    /// Calls `write` with each ban that was imposed or lifted since the last call with this cursor.
    pub fn changed_bans(&self, cursor: &mut BanCursor, now: Time, mut write: impl FnMut(KeptKind, &[u8])) {
        let version = self.bans.version();
        if version != cursor.version {
            cursor.version = version;
            let bans = self.bans.list(now);
            let in_force: HashSet<BanId> = bans.iter().map(|ban| ban.id).collect();
            for id in cursor.by_hand.difference(&in_force) {
                write(KeptKind::Lifted, &Text::default().text(&id.to_string()).0);
            }
            for ban in bans.iter().filter(|ban| !cursor.by_hand.contains(&ban.id)) {
                write(KeptKind::Hand, &hand(ban));
            }
            cursor.by_hand = in_force;
        }
        for (number, ban) in self.imposed.noted_after(cursor.noted) {
            cursor.noted = number;
            noted(&ban).into_iter().for_each(|body| write(KeptKind::Noted, &body));
        }
    }

    /// Calls `write` with every ban in force.
    pub fn all_bans(&self, now: Time, mut write: impl FnMut(KeptKind, &[u8])) {
        self.bans.list(now).iter().for_each(|ban| write(KeptKind::Hand, &hand(ban)));
        for ban in self.imposed.list(self.memory(), now) {
            noted(&ban).into_iter().for_each(|body| write(KeptKind::Noted, &body));
        }
    }

    /// Restores a ban from a record of an earlier process, with all its times moved `back` by that span. Returns false
    /// if the record cannot be read or the rule no longer exists. Records are passed in the order in which they were
    /// written, after all counters were loaded.
    pub fn restore_ban(&self, kind: u8, body: &[u8], rules: &RuleSet, back: flowgate::Span, now: Time) -> bool {
        self.try_restore(kind, &mut Reader(body), rules, back, now).is_some()
    }

    fn try_restore(
        &self,
        kind: u8,
        body: &mut Reader<'_>,
        rules: &RuleSet,
        back: flowgate::Span,
        now: Time,
    ) -> Option<()> {
        let id: BanId = body.text()?.parse().ok()?;
        if kind == KeptKind::Lifted as u8 {
            self.bans.lift(id, now);
            return Some(());
        }
        let until = Time::from_nanos(body.word()?.saturating_sub(back.as_nanos()));
        if kind == KeptKind::Hand as u8 {
            let since = body.word()?.saturating_sub(back.as_nanos());
            let since = (since > 0).then(|| Time::from_nanos(since));
            let [field, value, reason] = [body.text()?, body.text()?, body.text()?];
            let author = BanAuthor::from_texts([body.text().unwrap_or_default(), body.text().unwrap_or_default()]);
            let name = target_name(field, value).ok()?;
            let [field, value, reason] = [field, value, reason].map(Arc::from);
            let ban = Arc::new(ManualBan { id, field, value, since, until, reason, author });
            self.bans.edit(now, |edit| edit.put(name.into(), ban));
            return Some(());
        }
        if kind != KeptKind::Noted as u8 {
            return None;
        }
        let key = u128::from(body.word()?) << 64 | u128::from(body.word()?);
        let rule = body.text()?;
        let rule = Arc::clone(rules.rules.iter().find(|known| known.name() == rule)?);
        let mut subject = Vec::new();
        for _ in 0..body.half()? {
            subject.push((body.text()?.to_owned(), body.text()?.to_owned()));
        }
        let place = RuleBanPlace::Memory(Key::from_bits(key));
        self.imposed.restore(RuleBan { id, rule, subject, until, place });
        Some(())
    }
}

fn hand(ban: &ManualBan) -> Vec<u8> {
    let text =
        Text::default().text(&ban.id.to_string()).word(ban.until.as_nanos()).word(ban.since.map_or(0, Time::as_nanos));
    let [by, from] = BanAuthor::texts(ban.author.as_ref());
    text.text(&ban.field).text(&ban.value).text(&ban.reason).text(by).text(from).0
}

/// `None` if the counter that records the ban is not in memory.
fn noted(ban: &RuleBan) -> Option<Vec<u8>> {
    let bits = match &ban.place {
        RuleBanPlace::Memory(key) => key.bits(),
        #[cfg(feature = "redis")]
        RuleBanPlace::Redis(_) => return None,
    };
    let text = Text::default().text(&ban.id.to_string()).word(ban.until.as_nanos());
    let text = text.word((bits >> 64) as u64).word(bits as u64).text(ban.rule.name()).half(ban.subject.len());
    Some(ban.subject.iter().fold(text, |text, (name, value)| text.text(name).text(value)).0)
}

#[derive(Default)]
struct Text(Vec<u8>);

impl Text {
    /// Texts of bans are far shorter than 64 KiB.
    fn text(self, text: &str) -> Text {
        let mut all = self.half(text.len());
        all.0.extend_from_slice(text.as_bytes());
        all
    }

    fn half(mut self, number: usize) -> Text {
        self.0.extend_from_slice(&u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes());
        self
    }

    fn word(mut self, word: u64) -> Text {
        self.0.extend_from_slice(&word.to_le_bytes());
        self
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn half(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn word(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.half()?;
        let (text, rest) = self.0.split_at_checked(length.into())?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use flowgate::{MemoryStore, Reading, Span};

    use super::*;
    use crate::Policy;
    use crate::bans::BanOrder;

    const NOW: Time = Time::from_secs(1000);

    /// The answers of a second process that has read these records.
    fn restored(body: &[u8]) -> Arc<ManualBan> {
        let decider = Decider::new(MemoryStore::default());
        let rules = RuleSet::compile(&Policy::default(), &MemoryStore::default()).unwrap();
        assert!(decider.restore_ban(KeptKind::Hand as u8, body, &rules, Span::ZERO, NOW));
        Arc::clone(&decider.bans(Reading::from(NOW))[0])
    }

    #[test]
    fn a_ban_keeps_its_author_and_one_of_an_earlier_version_has_none() {
        let decider = Decider::new(MemoryStore::default());
        let author = BanAuthor { by: "admin token".into(), from: Some("192.0.2.1".into()) };
        let order =
            BanOrder { field: "user", value: "7", length: Span::from_secs(60), reason: "spam", author: Some(&author) };
        let ban = decider.ban(order, Reading::from(NOW)).unwrap();
        let mut written = Vec::new();
        decider.all_bans(NOW, |_, body| written.push(body.to_vec()));
        let [body] = written.as_slice() else { panic!("one record") };
        assert_eq!((restored(body), ban.author.as_ref()), (Arc::clone(&ban), Some(&author)));
        let without = body.len() - (2 + author.by.len() + 2 + "192.0.2.1".len());
        assert_eq!(*restored(&body[..without]), ManualBan { author: None, ..(*ban).clone() });
    }
}
