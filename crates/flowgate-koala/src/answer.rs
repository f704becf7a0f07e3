//! What a caller asks by Koala's rules, and the answer.
//!
//! Rule       The rules that match are met top to bottom. A direct rule is always *exceeded*. Another rule is exceeded
//!            if one more request would be too many. The first exceeded rule decides; without one, the request passes.

use flowgate::{Hit, Op};
use smallvec::SmallVec;

use super::rules::KoalaRules;

/// What a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KoalaAsk {
    /// Which rule decides? Counts nothing.
    Browse,
    /// Like [`KoalaAsk::Browse`], and counts.
    BrowseAndCount,
    /// Which rules are exceeded? Counts nothing.
    Complete,
    /// Like [`KoalaAsk::Complete`], and counts.
    CompleteAndCount,
    /// Counts.
    Update,
}

/// The rules that matched a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KoalaAnswer {
    /// The positions of the rules, top to bottom, and whether each was exceeded.
    pub(crate) rules: SmallVec<[(u32, bool); 4]>,
    /// The positions of the rules that would have denied if they were not paused.
    pub(crate) shadow: SmallVec<[u32; 2]>,
    /// Whether a ban by hand denies, before any rule.
    pub banned: bool,
    /// Whether the store was away, and this node alone decided.
    pub degraded: bool,
}

impl KoalaAsk {
    pub(crate) fn op(self) -> Op {
        match self {
            KoalaAsk::Browse | KoalaAsk::Complete => Op::Peek,
            KoalaAsk::BrowseAndCount | KoalaAsk::CompleteAndCount => Op::CheckAndRecord,
            KoalaAsk::Update => Op::Record,
        }
    }
}

impl KoalaAnswer {
    /// The answer that follows from the outcomes of the hits, and from the direct rules that match.
    pub(crate) fn from_hits(rules: &KoalaRules, ask: KoalaAsk, hits: &[Hit<'_>], direct: &[u32]) -> KoalaAnswer {
        KoalaAnswer::new(rules, ask, hits.iter().map(|hit| (hit.rule_id(), !hit.outcome().allowed())), direct)
    }

    /// The answer to a request that matched these rules with counters, each exceeded or not, and these direct rules. A
    /// paused rule that denies counts as not exceeded.
    pub(crate) fn new(
        set: &KoalaRules,
        ask: KoalaAsk,
        counted: impl Iterator<Item = (u32, bool)>,
        direct: &[u32],
    ) -> KoalaAnswer {
        let mut rules: SmallVec<[(u32, bool); 4]> = counted.chain(direct.iter().map(|&rule| (rule, true))).collect();
        rules.sort_unstable_by_key(|(rule, _)| *rule);
        let mut shadow = SmallVec::new();
        for (rule, exceeded) in rules.iter_mut().filter(|(rule, exceeded)| *exceeded && set.is_paused(*rule as usize)) {
            shadow.push(*rule);
            *exceeded = false;
        }
        if matches!(ask, KoalaAsk::Browse | KoalaAsk::BrowseAndCount)
            && let Some(last) = rules.iter().position(|(_, exceeded)| *exceeded)
        {
            // A browse ends at the first exceeded rule.
            rules.truncate(last + 1);
        }
        KoalaAnswer { rules, shadow, ..KoalaAnswer::default() }
    }

    /// Marks the answer as one that this node gave while the store was away.
    #[must_use]
    pub fn as_stopgap(self) -> KoalaAnswer {
        KoalaAnswer { degraded: true, ..self }
    }

    /// Whether any rule matched.
    pub fn matched(&self) -> bool {
        !self.rules.is_empty()
    }

    /// The position of the rule that decided; if none decided, of the first rule that matched.
    pub fn ranked(&self) -> Option<usize> {
        self.decided().or_else(|| self.rules.first().map(|(rule, _)| *rule as usize))
    }

    /// The positions of the rules that would have denied if they were not paused.
    pub fn shadow(&self) -> impl Iterator<Item = usize> {
        self.shadow.iter().map(|rule| *rule as usize)
    }

    /// The position of the first exceeded rule, which decides.
    pub fn decided(&self) -> Option<usize> {
        self.exceeded().next()
    }

    /// The positions of all exceeded rules, top to bottom.
    pub fn exceeded(&self) -> impl Iterator<Item = usize> {
        self.rules.iter().filter(|(_, exceeded)| *exceeded).map(|(rule, _)| *rule as usize)
    }
}
