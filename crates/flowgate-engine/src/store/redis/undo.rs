//! Rolling back what one place of a cluster has charged when another has denied.
//!
//! Rule       A charge is named by its time or its window. The script takes it back while that is still there, and what
//!            of a bucket's charge has not leaked out yet; what others have taken since bears another name.

use flowgate::remote::{Exact, UndoOwn};

use super::encode::{self, ScriptTime};
use super::prepared::Prepared;
use super::script::{Parts, ScriptCall, UNDO};
use crate::plan::Plan;

/// The call that undoes what `plan`, a group that has passed, has charged. Shadow rules keep their charges: they count
/// whatever the others decide.
pub(super) fn call(
    prepared: &Prepared,
    plan: &Plan<'_>,
    group: usize,
    prefix: &str,
    time: ScriptTime,
) -> Option<ScriptCall> {
    let mut call = ScriptCall::new(&UNDO);
    encode::time(&mut call.args, time);
    call.args.number(plan.cost());
    for (hit, named) in plan.hits.iter().zip(prepared.named_limits(group)) {
        let undo = hit.undo(plan.cost());
        if hit.rule().shadow || (undo.own.is_none() && undo.seen.is_none()) {
            continue;
        }
        call.keys.write(|key| prepared.write_key(key, prefix, group, &named.tail));
        own(&mut call.args, undo.own);
        call.args.number(undo.seen.unwrap_or(0));
    }
    let charged = call.keys().len() > 0;
    charged.then_some(call)
}

fn own(args: &mut Parts, undo: Option<UndoOwn>) {
    match undo {
        None => args.push(b"n"),
        Some(UndoOwn::Bucket { full_at, want, ticks }) => {
            args.push(b"b");
            for Exact { micros, ticks } in [full_at, want] {
                args.number(micros);
                args.number(ticks);
            }
            args.number(ticks);
        }
        Some(UndoOwn::Fixed(ends_at)) => {
            args.push(b"f");
            args.number(ends_at);
        }
        Some(UndoOwn::Sliding(leaves_at)) => {
            args.push(b"s");
            args.number(leaves_at);
        }
        Some(UndoOwn::Approx { forget_at, period }) => {
            args.push(b"a");
            args.number(forget_at);
            args.number(period);
        }
    }
}
