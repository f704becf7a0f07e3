//! Marks: instants that a chart shows with a name.
//!
//! Bound      [`MAX_MARKS`] of bans by hand and as many of everything else; new ones replace the oldest. A
//!            program that bans thousands of values does not push out the marks of rules.

use std::collections::VecDeque;
use std::sync::Arc;

use flowgate::Time;
use flowgate_engine::bans::BanAuthor;

use crate::author::Author;

const MAX_MARKS: usize = 256;

/// An instant and what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: Time,
    pub(crate) kind: MarkKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MarkKind {
    /// The server has started: counts begin anew.
    Start,
    /// Other rules are in force.
    Rules {
        /// The version of the file in its history, if the admin API has written it.
        version: Option<u64>,
    },
    /// The shared store, or a part of it, is away.
    Away,
    /// The shared store is whole again.
    Back,
    /// The rules are paused.
    Pause,
    /// The pause has ended.
    Resume,
    /// A value was banned by hand, through this node.
    Ban(BanMark),
    /// A ban by hand was lifted, through this node.
    Lift(BanMark),
}

/// The target of a ban by hand, and who changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BanMark {
    pub(crate) field: Arc<str>,
    pub(crate) value: Arc<str>,
    pub(crate) author: BanAuthor,
}

impl BanMark {
    pub(crate) fn new(field: &Arc<str>, value: &Arc<str>, author: &Author) -> BanMark {
        BanMark { field: Arc::clone(field), value: Arc::clone(value), author: author.of_ban() }
    }
}

#[derive(Debug, Default)]
pub(in crate::recent) struct Marks {
    bans: VecDeque<Mark>,
    others: VecDeque<Mark>,
}

impl Marks {
    pub(in crate::recent) fn note(&mut self, at: Time, kind: MarkKind) {
        let marks = match kind {
            MarkKind::Ban(_) | MarkKind::Lift(_) => &mut self.bans,
            _ => &mut self.others,
        };
        if marks.len() == MAX_MARKS {
            marks.pop_front();
        }
        marks.push_back(Mark { at, kind });
    }

    /// The marks from `second` on, oldest first.
    pub(super) fn since(&self, second: u64) -> Vec<Mark> {
        let all = self.others.iter().chain(&self.bans);
        let mut marks: Vec<Mark> = all.filter(|mark| mark.at >= Time::from_secs(second)).cloned().collect();
        marks.sort_by_key(|mark| mark.at);
        marks
    }
}
