//! Marks: instants that a chart names.

use std::collections::VecDeque;

use flowgate::Time;

/// The oldest give way.
const MAX_MARKS: usize = 256;

/// An instant and what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: Time,
    pub(crate) kind: MarkKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

#[derive(Debug, Default)]
pub(in crate::recent) struct Marks(VecDeque<Mark>);

impl Marks {
    pub(in crate::recent) fn note(&mut self, at: Time, kind: MarkKind) {
        if self.0.len() == MAX_MARKS {
            self.0.pop_front();
        }
        self.0.push_back(Mark { at, kind });
    }

    /// The marks from `second` on, oldest first.
    pub(super) fn since(&self, second: u64) -> Vec<Mark> {
        self.0.iter().filter(|mark| mark.at >= Time::from_secs(second)).cloned().collect()
    }
}
