//! The audit: every subject that only one request had tells how often that request was charged.
//!
//! Rule       A request that was allowed by the store was charged once. A request that was denied by the store was not
//!            charged in the end. A request that was decided without the store, or not answered, was charged once at
//!            most: such a charge is a leak, which holds until its window ends.

use crate::trace::{Outcome, Record};
use crate::workload::{Asked, FRESH_ALLOWANCE, KINDS, Subjects};
use crate::world::{World, peek};

/// The reply to a request, and how often the store charged it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charged {
    pub(crate) record: Record,
    pub(crate) times: u64,
}

impl Charged {
    /// Whether the store charged the request more than once.
    pub(crate) fn is_double(&self) -> bool {
        self.times > 1
    }

    /// Whether the store allowed the request and did not charge it.
    pub(crate) fn is_lost(&self) -> bool {
        self.record.outcome == Outcome::Allowed && self.times == 0
    }

    /// Whether the store charged the request although it was not allowed.
    pub(crate) fn is_leak(&self) -> bool {
        self.record.outcome != Outcome::Allowed && self.times == 1
    }
}

/// The subjects looked up at a time, and the attempts while the store does not answer.
const BATCH: usize = 100;
const TRIES: usize = 100;

/// Asks a node how often each subject with a single request was charged. The store must be reachable.
pub(crate) async fn audit(world: &World, records: &[Record]) -> Vec<Charged> {
    let fresh: Vec<&Record> = records.iter().filter(|record| record.asked.fresh.is_some()).collect();
    let mut audited = Vec::with_capacity(fresh.len());
    for records in fresh.chunks(BATCH) {
        let peeks: Vec<_> = records.iter().map(|record| peek_of_user(&record.asked)).collect();
        let remaining = remaining(world, &peeks).await;
        audited.extend(
            records.iter().zip(remaining).map(|(record, remaining)| Charged {
                record: **record,
                times: FRESH_ALLOWANCE.saturating_sub(remaining),
            }),
        );
    }
    audited
}

/// A look at the user alone, without the address that may deny it.
fn peek_of_user(asked: &Asked) -> serde_json::Value {
    let mut peek = peek(asked);
    if let (Subjects::FreshWithAddress(_), Some(fields)) = (KINDS[asked.kind].subjects, peek["fields"].as_object_mut())
    {
        fields.remove("ip");
    }
    peek
}

/// The units that are left of each subject. A node on a busy machine may miss a deadline; then the test asks again.
async fn remaining(world: &World, peeks: &[serde_json::Value]) -> Vec<u64> {
    let mut known: Vec<Option<u64>> = vec![None; peeks.len()];
    for _ in 0..TRIES {
        let open: Vec<usize> = (0..peeks.len()).filter(|&place| known[place].is_none()).collect();
        if open.is_empty() {
            break;
        }
        let items: Vec<_> = open.iter().map(|&place| peeks[place].clone()).collect();
        let replies = world.batch(0, &items).await.unwrap_or_default();
        for (place, reply) in open.into_iter().zip(replies) {
            known[place] = reply["remaining"].as_u64().filter(|_| reply["degraded"] == false);
        }
    }
    known.into_iter().map(|remaining| remaining.expect("the store does not answer the audit")).collect()
}
