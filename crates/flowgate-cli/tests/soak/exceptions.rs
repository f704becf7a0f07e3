//! What the documentation says may exceed a bound: each time by one allowance at most.

use std::time::Duration;

use crate::bounds::{Bound, Grant};
use crate::trace::NodeLife;

/// Something happened between `from` and `to` after which an allowance may be granted anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exception {
    pub(crate) whose: Whose,
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

/// Whose allowance it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A replica took over that may lack the last writes: any subject's in the store.
    Everybody,
    /// A counter could not be read: one subject's in the store.
    Subject { kind: usize, subject: u32 },
    /// The clock of a node was put forward: what that node grants by itself.
    Node(NodeLife),
}

impl Exception {
    /// The extra units under `bound` of each exception whose holder `is` accepts.
    pub(crate) fn grants(exceptions: &[Exception], bound: &Bound, is: impl Fn(Whose) -> bool) -> Vec<Grant> {
        let touched = exceptions.iter().filter(|exception| is(exception.whose));
        touched.map(|Exception { from, to, .. }| Grant { from: *from, to: *to, extra: bound.allowance() }).collect()
    }
}
