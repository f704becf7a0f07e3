//! The exceptions that the documentation allows. Each exceeds a bound by one allowance at most.

use std::time::Duration;

use crate::bounds::{Bound, Grant};
use crate::trace::NodeLife;

/// An event between `from` and `to` after which an allowance may be granted again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exception {
    pub(crate) whose: Whose,
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

/// The holders of the allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A replica that took over may lack the last writes: every subject in the store.
    Everybody,
    /// A counter could not be read: one subject in the store.
    Subject { kind: usize, subject: u32 },
    /// The clock of a node was put forward: the allowances that this node grants by itself.
    Node(NodeLife),
}

impl Exception {
    /// The extra units under `bound` of each exception whose holder `is` accepts.
    pub(crate) fn grants(exceptions: &[Exception], bound: &Bound, is: impl Fn(Whose) -> bool) -> Vec<Grant> {
        let touched = exceptions.iter().filter(|exception| is(exception.whose));
        touched.map(|Exception { from, to, .. }| Grant { from: *from, to: *to, extra: bound.allowance() }).collect()
    }
}
