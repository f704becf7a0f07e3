//! The deny cache, a layer over a store: a request that the store has denied is denied here, without asking again, until
//! it could pass.
//!
//! Rule       A `take` or `peek` that the store has denied is denied to every caller that asks the same, with the waits
//!            that are left.
//! Rule       A `refund` and a reset end the answers about their counters; so does one without an answer, since it may
//!            have been carried out.
//! Rule       Times are monotonic: the waits that Redis tells are real, so a node whose clock runs at half speed must
//!            not hold on to a denial for twice as long.
//!
//! Questions whose denial changes something reach the store each time: `count_denied`, bans, shadow rules, and
//! rules of other systems that count denied requests.

mod table;

use std::sync::Arc;

use flowgate::{Clock, Reading, Retry, Span, Throttle, ThrottleReply, Verdict};
use flowgate_engine::{AdHocKey, Decision};
use smallvec::SmallVec;

use super::health::Health;
use super::question::{InFlightQuestion, LocalQuestion, OwnedQuestion, Question, Store, StoreReply};
use crate::answer::Pending;
pub(crate) use table::DenyTable;
use table::TableQuestion;

/// A store, and its denials that are remembered.
#[derive(Debug)]
pub(crate) struct DenyCache<S> {
    /// The store.
    pub(crate) store: S,
    /// The denials; `None`: the cache is switched off.
    table: Option<DenyTable>,
    clock: Clock,
    health: Arc<Health>,
}

/// What the cache needs to know about a question.
#[derive(Clone, Debug)]
pub(crate) struct DenyQuestion {
    /// The entry under which a denial is remembered; `None`: it must not be.
    remembered: Option<TableQuestion>,
    /// The counters to which the question gives units back.
    given_back: SmallVec<[u128; 1]>,
}

/// A question that the cache could not answer.
pub(crate) struct SentPastCache<S> {
    deny: Option<DenyQuestion>,
    sent: S,
}

impl<Q: LocalQuestion, S: InFlightQuestion<Q>> InFlightQuestion<Q> for SentPastCache<S> {
    fn question(&self) -> &Arc<Q> {
        self.sent.question()
    }
}

/// A denial that is remembered.
#[derive(Clone, Debug)]
pub(crate) enum Denial {
    Request(Decision),
    Key(flowgate::Decision),
    Throttle(Throttle, ThrottleReply),
}

/// The wait of a denial that no wait helps: the table bounds how long it is remembered.
const LONGEST_WAIT: Span = Span::from_secs(u32::MAX as u64);

impl<S> DenyCache<S> {
    /// Remembers denials of a store for at most `longest`; `None`: the cache is switched off.
    pub(crate) fn new(store: S, longest: Option<Span>, clock: Clock, health: Arc<Health>) -> DenyCache<S> {
        DenyCache { store, table: longest.map(DenyTable::new), clock, health }
    }

    /// Forgets the denials about the counters of a question that gives units back.
    pub(crate) fn forget(&self, question: &DenyQuestion) {
        if let Some(table) = &self.table {
            table.end(question.given_back.iter().copied());
        }
    }

    /// The counter to which a reset of an ad hoc key gives back.
    pub(crate) fn key_reset(&self, key: AdHocKey<'_>) -> Option<DenyQuestion> {
        let table = self.table.as_ref()?;
        Some(DenyQuestion::giving_back([table.key_counter(key)].into_iter()))
    }

    /// The reply to a question that the store has denied before.
    fn recall<Q: Question>(&self, question: &Q, deny: &DenyQuestion) -> Option<<Q::Owned as OwnedQuestion>::Reply> {
        let found = deny.remembered.and_then(|asked| self.table.as_ref()?.get(asked, || self.clock.monotonic()))?;
        let (mut denied, age) = found;
        denied.shorten(age);
        question.recall(denied)
    }
}

impl<S: Store> Store for DenyCache<S> {
    type Sent<Q: LocalQuestion> = SentPastCache<S::Sent<Q>>;

    fn send<Q: Question>(
        &self,
        question: &Q,
        at: Reading,
    ) -> Pending<<Q::Owned as OwnedQuestion>::Reply, Self::Sent<Q::Owned>> {
        let deny = self.table.as_ref().and_then(|table| question.deny_question(table));
        if let Some(deny) = &deny {
            if let Some(reply) = self.recall(question, deny) {
                self.health.deny_cache_hits.add(1);
                return Pending::Now(reply);
            }
            // A later question of the same pipeline must not get an answer from before this one.
            self.forget(deny);
        }
        match self.store.send(question, at) {
            Pending::Now(reply) => Pending::Now(reply),
            Pending::Later(sent) => Pending::Later(SentPastCache { deny, sent }),
        }
    }

    async fn receive<Q: LocalQuestion>(&self, sent: &mut Self::Sent<Q>, at: Reading) -> StoreReply<Q::Reply> {
        let SentPastCache { deny, sent } = sent;
        let replied = self.store.receive(sent, at).await;
        let (Some(table), Some(deny)) = (&self.table, deny) else { return replied };
        // Denials that Redis gave to other questions meanwhile are forgotten, too.
        self.forget(deny);
        if let Some(asked) = deny.remembered
            && !replied.degraded
            && let Some(denied) = sent.question().denied(&replied.reply)
            && let Some(wait) = denied.wait()
        {
            table.put(asked, denied, self.clock.monotonic(), wait);
        }
        replied
    }
}

impl DenyQuestion {
    /// A question about these counters that gives nothing back. `asked` differs between different questions about the
    /// same counters.
    pub(crate) fn about(table: &DenyTable, counters: impl Iterator<Item = u128>, asked: u128) -> DenyQuestion {
        DenyQuestion { remembered: Some(table.question(counters, asked)), given_back: SmallVec::new() }
    }

    /// A question that gives units back to these counters.
    pub(crate) fn giving_back(counters: impl Iterator<Item = u128>) -> DenyQuestion {
        DenyQuestion { remembered: None, given_back: counters.collect() }
    }
}

impl Denial {
    /// The wait until the first exceeded limit would let the request pass; `None`: a limit did not deny it.
    fn wait(&self) -> Option<Span> {
        match self {
            Denial::Request(decision) if decision.banned_until().is_some() => None,
            Denial::Request(decision) => decision.exceeded().iter().map(|exceeded| wait(exceeded.retry)).min(),
            Denial::Key(decision) => match decision.verdict {
                Verdict::Deny(retry) => Some(wait(retry)),
                Verdict::Allow { .. } => None,
            },
            Denial::Throttle(_, reply) => Some(reply.retry_after.unwrap_or(LONGEST_WAIT)),
        }
    }

    /// Shortens the waits by the time that has passed.
    fn shorten(&mut self, passed: Span) {
        let less = |wait: Span| Span::from_nanos(wait.as_nanos().saturating_sub(passed.as_nanos()));
        match self {
            Denial::Request(decision) => decision.map_waits(less),
            Denial::Key(decision) => decision.map_waits(less),
            Denial::Throttle(_, reply) => {
                reply.retry_after = reply.retry_after.map(less);
                reply.reset_after = less(reply.reset_after);
            }
        }
    }
}

fn wait(retry: Retry) -> Span {
    match retry {
        Retry::After(wait) => wait,
        Retry::Never => LONGEST_WAIT,
    }
}
