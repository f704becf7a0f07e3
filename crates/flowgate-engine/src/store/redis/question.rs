//! The calls of a question to Redis: those that ask (in a cluster one for each group of counters), and those that undo
//! charges.

use flowgate::Time;

use super::decode::ReplyError;
use super::encode::ScriptTime;
use super::script::ScriptCall;

/// A question that waits for its reply.
pub trait RedisQuestion: Send + Sync {
    /// The number of groups, which is the number of calls that a cluster needs.
    fn groups(&self) -> usize {
        1
    }

    /// The call of one group, or on a single server of the whole question; keys start with `prefix`. `around` is about
    /// what Redis's clock says: at first this node's time, then what [`ReplyError::Around`] says.
    fn call(&self, group: Option<usize>, prefix: &str, time: ScriptTime, around: Time) -> ScriptCall;

    /// The calls that undo the charges of a request that is denied in the end. `replies` are the reply to the whole
    /// question or those to all groups; `None` stands for a reply that is missing or cannot be read. Empty if all
    /// groups have passed.
    fn undo_calls(&self, prefix: &str, time: ScriptTime, replies: &[Option<&[i64]>]) -> Vec<ScriptCall>;
}

/// The groups whose charges [`RedisQuestion::undo_calls`] undoes, each as `decide` decides it by its reply; the group of
/// the whole question is `None`.
pub(super) fn groups_to_undo<D>(
    groups: usize,
    replies: &[Option<&[i64]>],
    decide: impl Fn(Option<usize>, &[i64]) -> Result<D, ReplyError>,
    is_denied: impl Fn(&D) -> bool,
) -> Vec<(Option<usize>, D)> {
    let is_whole = replies.len() == 1;
    let groups = if is_whole { 1 } else { groups };
    let decided = |at: usize| {
        let group = (!is_whole).then_some(at);
        let decided = decide(group, replies.get(at).copied().flatten()?).ok()?;
        (!is_denied(&decided)).then_some((group, decided))
    };
    let passed: Vec<_> = (0..groups).filter_map(decided).collect();
    if !is_whole && passed.len() == groups { Vec::new() } else { passed }
}

/// Decides each group by its reply, and whether one of them denies. A group that passes by itself is then decided
/// again, as denied by another: it is rolled back.
pub(super) fn decide_groups<D>(
    groups: usize,
    replies: &[&[i64]],
    decide: impl Fn(usize, bool, &[i64]) -> Result<D, ReplyError>,
    is_denied: impl Fn(&D) -> bool,
) -> Result<(Vec<D>, bool), ReplyError> {
    if replies.len() != groups {
        return Err(ReplyError::Malformed);
    }
    let each = replies.iter().enumerate().map(|(group, reply)| decide(group, false, reply));
    let mut decided: Vec<D> = each.collect::<Result<_, _>>()?;
    let denied = decided.iter().any(&is_denied);
    for (group, by_itself) in decided.iter_mut().enumerate() {
        if denied && !is_denied(by_itself) {
            *by_itself = decide(group, true, replies[group])?;
        }
    }
    Ok((decided, denied))
}
