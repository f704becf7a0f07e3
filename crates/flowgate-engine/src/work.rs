//! Counts how often a thread has evaluated rules and made plans. A test checks that a question does each once.

use std::cell::Cell;

thread_local! {
    static DONE: Cell<Work> = const { Cell::new(Work { evaluations: 0, plans: 0 }) };
}

/// What a thread has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The number of evaluations of the rules.
    pub evaluations: u64,
    /// The number of plans.
    pub plans: u64,
}

impl Work {
    /// What this thread has done so far.
    pub fn done() -> Work {
        DONE.get()
    }

    pub(crate) fn count_evaluation() {
        DONE.set(Work { evaluations: DONE.get().evaluations + 1, ..DONE.get() });
    }

    pub(crate) fn count_plan() {
        DONE.set(Work { plans: DONE.get().plans + 1, ..DONE.get() });
    }
}
