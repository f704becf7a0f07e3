//! The observer of decisions: counts each one beside its rule, adds a sample of them to the top lists, and logs the share
//! of denials that `log.denials` asks for.
//!
//! Rule       The service calls the observer, so that all protocols are counted in the same way. One exception: the caller
//!            counts `CL.THROTTLE` and pipelined `FG.LIMIT` from memory, a batch at a time.
//! Rule       A pending answer is counted when it arrives.

use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flowgate::{Clock, OtherAlgorithm, Reading, Span, Time};
use flowgate_engine::config::{self, Denials, Share};
use flowgate_engine::{DecidedBy, Decision, Denied, Request, Rule, RuleOutcome};

use crate::answer::Answer;
use crate::metrics::sampling::{self, Kind};
use crate::metrics::{BAN_BY_HAND, Metrics};
use crate::recent::{DenialEvent, Recent, Subject, SubjectKind, one_line, told_fields};
use crate::redis::{LocalQuestion, SentQuestion, StoreReply};
use crate::service::{KeyDecision, Operation};

/// The most bytes of the request's fields in a log line about a denial.
const MAX_LOGGED_BYTES: usize = 512;

/// Counts, ranks and logs decisions.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) metrics: Metrics,
    pub(crate) recent: Recent,
    /// Read when a pending answer arrives, to measure its latency.
    clock: Clock,
    denials: Denials,
    /// The number of denials so far, while a share of them is logged.
    denied: AtomicU64,
}

impl Observer {
    pub(crate) fn new(denials: Denials, console: &config::Console, clock: Clock) -> Observer {
        let recent = Recent::new(console, clock.now());
        Observer { metrics: Metrics::default(), recent, clock, denials, denied: AtomicU64::new(0) }
    }

    /// Notes the latency of a pending answer that was asked for at `asked`.
    fn note_arrival(&self, asked: Reading) {
        self.metrics.store_latency.note(asked.real_wait(self.clock.now().since(asked.now)), 1);
    }

    /// Counts an operation other than a take. True for a take, whose answer is then passed to one of the `note` functions.
    #[inline]
    pub(crate) fn begin(&self, operation: Operation) -> bool {
        if operation != Operation::Take {
            self.metrics.count_operation(operation);
        }
        operation == Operation::Take
    }

    /// The pending answer to a question that was sent to the shared store. If `is_noted`, `note` gets the answer and its
    /// question when the answer arrives. This is the only allocation of a box for an answer.
    #[cold]
    pub(crate) fn later<Q: LocalQuestion>(
        self: &Arc<Self>,
        mut sent: SentQuestion<Q>,
        is_noted: bool,
        at: Reading,
        note: fn(&Observer, &Q, &Q::Reply, Time),
    ) -> Answer<Q::Reply> {
        let observer = Arc::clone(self);
        Answer::later(async move {
            let StoreReply { reply, .. } = sent.receive().await;
            if is_noted {
                observer.note_arrival(at);
                note(&observer, sent.question(), &reply, at.now);
            }
            reply
        })
    }

    /// Notes the decision of a request. `request` is called only if the decision is ranked or logged.
    pub(crate) fn note<'q, R: Borrow<Request<'q>>>(&self, request: impl Fn() -> R, decision: &Decision, now: Time) {
        let Metrics { unruled, banned, degraded, .. } = &self.metrics;
        let allowed = decision.allowed();
        match (decision.rule(), &decision.decided_by) {
            (Some(rule), _) if allowed => rule.counters.count(RuleOutcome::Allowed),
            (Some(rule), DecidedBy::Ban { .. }) => rule.counters.count(RuleOutcome::Banned),
            (Some(rule), _) => {
                rule.counters.count(RuleOutcome::Denied);
                if decision.banned_until().is_some() {
                    rule.counters.count(RuleOutcome::BanStarted);
                }
            }
            (None, _) if allowed => unruled.count(RuleOutcome::Allowed),
            (None, _) => banned.count(RuleOutcome::Banned),
        }
        let rule = decision.rule().map(|rule| &**rule);
        self.note_asked(&request, rule, now);
        if !decision.shadow.is_empty() {
            self.note_shadows(request().borrow(), decision, now);
        }
        if decision.degraded {
            degraded.add(1);
        }
        if !allowed {
            self.note_denial(&request, rule, || Denial::from(decision), now);
        }
    }

    /// As [`Observer::note`], for a request that passes by limits, and that no shadow rule would deny. It is added to
    /// `counts`.
    #[inline]
    pub(crate) fn note_pass<'r, 'q>(
        &self,
        counts: &mut PassCounts<'r>,
        request: impl Fn() -> Request<'q>,
        rule: Option<&'r Rule>,
        now: Time,
    ) {
        match rule {
            Some(rule) => counts.count(rule),
            None => self.metrics.unruled.count(RuleOutcome::Allowed),
        }
        self.note_asked(&request, rule, now);
    }

    /// As [`Observer::note`], for a request that limits deny, and of which there is nothing else to tell.
    #[inline]
    pub(crate) fn note_denied<'q>(&self, request: impl Fn() -> Request<'q>, denied: &Denied<'_>, now: Time) {
        let rule = denied.rule();
        rule.counters.count(RuleOutcome::Denied);
        self.note_asked(&request, Some(rule), now);
        self.note_denial(&request, Some(rule), || Denial::from(denied), now);
    }

    /// Adds a request to the recording that is under way, and to the top lists if it is a sample.
    #[inline]
    fn note_asked<'q, R: Borrow<Request<'q>>>(&self, request: &impl Fn() -> R, rule: Option<&Rule>, now: Time) {
        if self.recent.sample.is_on() {
            self.recent.sample.note(request().borrow(), now);
        }
        if let Some(weight) = sampling::weight(Kind::Asked, now) {
            self.rank_asked(request().borrow(), rule, weight, now);
        }
    }

    /// As [`Observer::note`], for a limit that the caller brings. Its rule is not in force, so the decision counts with
    /// the limits on keys, and the recording leaves it out.
    pub(crate) fn note_brought<'q, R: Borrow<Request<'q>>>(
        &self,
        request: impl Fn() -> R,
        decision: &Decision,
        now: Time,
    ) {
        let allowed = decision.allowed();
        self.metrics.keys.count(if allowed { RuleOutcome::Allowed } else { RuleOutcome::Denied });
        if !decision.shadow.is_empty() {
            self.note_shadows(request().borrow(), decision, now);
        }
        if decision.degraded {
            self.metrics.degraded.add(1);
        }
        let denial = (!allowed).then(|| Denial::from(decision));
        self.note_by(request, decision.rule().map(|rule| &**rule), denial, now);
    }

    /// Notes a decision by the rules of a front, which counts the decision itself. `rule` is the rule that decided, or
    /// else one that matched. `request` is called only if the decision is ranked or logged.
    pub(crate) fn note_by<'q, R: Borrow<Request<'q>>>(
        &self,
        request: impl Fn() -> R,
        rule: Option<&Rule>,
        denial: Option<Denial<'_>>,
        now: Time,
    ) {
        if let Some(weight) = sampling::weight(Kind::Asked, now) {
            self.rank_asked(request().borrow(), rule, weight, now);
        }
        if let Some(denial) = denial {
            self.note_denial(&request, rule, || denial, now);
        }
    }

    #[inline(never)]
    fn note_denial<'q, 'd, R: Borrow<Request<'q>>>(
        &self,
        request: &impl Fn() -> R,
        rule: Option<&Rule>,
        denial: impl Fn() -> Denial<'d>,
        now: Time,
    ) {
        if let Some(weight) = sampling::weight(Kind::Denied, now) {
            self.rank_denied(request().borrow(), rule, &denial(), weight, now);
        }
        if self.is_logged() {
            denial().log(request().borrow(), rule);
        }
    }

    /// Counts the shadow rules that would have denied.
    #[inline(never)]
    fn note_shadows(&self, request: &Request<'_>, decision: &Decision, now: Time) {
        let weight = sampling::weight(Kind::Shadow, now);
        for rule in &decision.shadow {
            rule.counters.count(RuleOutcome::Shadowed);
            if let (Some(weight), Some(subject)) = (weight, subject(request, rule)) {
                self.recent.subjects.note(rule.name(), SubjectKind::Shadow, subject, weight, now);
            }
        }
    }

    /// Adds the subject of a request to the top lists. Rules without `by` have no subject to rank.
    #[cold]
    fn rank_asked(&self, request: &Request<'_>, rule: Option<&Rule>, weight: u32, now: Time) {
        let Some(rule) = rule else { return };
        if let Some(subject) = subject(request, rule) {
            self.metrics.hottest.note(Some(rule.name()), subject.clone(), weight, now);
            self.recent.subjects.note(rule.name(), SubjectKind::Asked, subject, weight, now);
        }
    }

    /// Keeps the denial, and adds its subject to the top lists of denials.
    #[cold]
    fn rank_denied(&self, request: &Request<'_>, rule: Option<&Rule>, denial: &Denial<'_>, weight: u32, now: Time) {
        let subject = match (rule, denial.banned_field) {
            (Some(rule), _) => subject(request, rule),
            (None, Some(field)) => Subject::of_fields(request.get(field).map(|value| (field, value)).into_iter()),
            (None, None) => None,
        };
        let is_other = |name: &str| {
            denial.banned_field != Some(name) && rule.is_none_or(|rule| rule.by().all(|field| field != name))
        };
        self.recent.denials.note(DenialEvent {
            at: now,
            rule: rule.map(|rule| rule.name().into()),
            by: denial.by,
            action: denial.action.into(),
            subject: subject.clone(),
            fields: told_fields(request.fields().filter(|(name, _)| is_other(name))),
            cost: request.cost,
            retry_after: denial.retry_after,
            stands_for: weight,
            degraded: denial.degraded,
        });
        if let Some(subject) = subject {
            self.metrics.most_denied.note(Some(rule.map_or(BAN_BY_HAND, Rule::name)), subject.clone(), weight, now);
            if let Some(rule) = rule {
                self.recent.subjects.note(rule.name(), SubjectKind::Denied, subject, weight, now);
            }
        }
    }

    /// Notes the answer to a limit on an ad hoc key.
    pub(crate) fn note_key(&self, key: &[u8], answer: &Result<KeyDecision, OtherAlgorithm>, now: Time) {
        let Ok(KeyDecision { decision, degraded }) = answer else { return };
        self.key_decision(key, decision.allowed(), now);
        if *degraded {
            self.metrics.degraded.add(1);
        }
    }

    /// Notes a decision about an ad hoc key.
    pub(crate) fn key_decision(&self, key: &[u8], allowed: bool, now: Time) {
        self.metrics.keys.count(if allowed { RuleOutcome::Allowed } else { RuleOutcome::Denied });
        self.key_seen(|| key, allowed, now);
    }

    /// As [`Observer::key_decision`], for a caller that counts decisions itself. `key` is called only if the decision is ranked or
    /// logged.
    #[inline]
    pub(crate) fn key_seen<'k>(&self, key: impl Fn() -> &'k [u8], allowed: bool, now: Time) {
        if let Some(weight) = sampling::weight(Kind::Asked, now) {
            self.rank_key(key(), weight, now);
        }
        if !allowed {
            self.key_denied(key, now);
        }
    }

    #[cold]
    fn rank_key(&self, key: &[u8], weight: u32, now: Time) {
        self.metrics.hottest.note(None, Subject::of_key(key), weight, now);
    }

    #[inline(never)]
    fn key_denied<'k>(&self, key: impl Fn() -> &'k [u8], now: Time) {
        if let Some(weight) = sampling::weight(Kind::Denied, now) {
            self.note_denied_key(key(), weight, now);
        }
        if self.is_logged() {
            tracing::info!(target: "flowgate::denials", key = Subject::of_key(key()).shown(), "denied");
        }
    }

    #[cold]
    fn note_denied_key(&self, key: &[u8], weight: u32, now: Time) {
        let subject = Subject::of_key(key);
        self.metrics.most_denied.note(None, subject.clone(), weight, now);
        self.recent.denials.note(DenialEvent {
            at: now,
            rule: None,
            by: "limit",
            action: "deny".into(),
            subject: Some(subject),
            fields: Vec::new(),
            cost: 1,
            retry_after: None,
            stands_for: weight,
            degraded: false,
        });
    }

    /// Whether to log this denial. The logged denials are spread evenly over all denials.
    fn is_logged(&self) -> bool {
        match self.denials {
            Denials::Off => false,
            Denials::Share(Share::ALL) => true,
            Denials::Share(share) => {
                let number = self.denied.fetch_add(1, Relaxed) % share.whole();
                // `part` and `whole` are below 10^9, so the product fits.
                number * share.part() % share.whole() < share.part()
            }
        }
    }
}

/// Requests that rules have let pass. They are counted here one by one and added to the counters of a rule when another
/// rule follows, or at the end: the requests of a pipeline mostly have the same rule.
#[derive(Debug, Default)]
pub(crate) struct PassCounts<'r> {
    rule: Option<&'r Rule>,
    passed: u64,
}

impl<'r> PassCounts<'r> {
    #[inline]
    fn count(&mut self, rule: &'r Rule) {
        if !self.rule.is_some_and(|last| std::ptr::eq(last, rule)) {
            self.report();
            self.rule = Some(rule);
        }
        self.passed += 1;
    }

    fn report(&mut self) {
        if let Some(rule) = self.rule {
            rule.counters.add(RuleOutcome::Allowed, std::mem::take(&mut self.passed));
        }
    }
}

impl Drop for PassCounts<'_> {
    fn drop(&mut self) {
        self.report();
    }
}

/// The names and values that a rule counts a request by.
fn subject(request: &Request<'_>, rule: &Rule) -> Option<Subject> {
    Subject::of_fields(rule.by().filter_map(|field| Some((field, request.counted(field)?))))
}

/// What a log line says about a denial, beside the request and the rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Denial<'d> {
    /// What denied the request: a limit, a rule without limits, a ban.
    pub(crate) by: &'static str,
    /// The field whose value is banned by hand, if such a ban denied.
    pub(crate) banned_field: Option<&'d str>,
    pub(crate) action: &'d str,
    pub(crate) retry_after: Option<Span>,
    pub(crate) degraded: bool,
}

impl<'d> From<&'d Decision> for Denial<'d> {
    fn from(decision: &'d Decision) -> Denial<'d> {
        let (by, banned_field) = match &decision.decided_by {
            DecidedBy::Limits { .. } | DecidedBy::Nothing { .. } => ("limit", None),
            DecidedBy::Rule(_) => ("rule", None),
            DecidedBy::Ban { .. } => ("ban", None),
            DecidedBy::ManualBan(ban) => ("ban by hand", Some(&*ban.field)),
        };
        let (action, retry_after) = (decision.action(), decision.retry_after());
        Denial { by, banned_field, action, retry_after, degraded: decision.degraded }
    }
}

impl<'d> From<&Denied<'d>> for Denial<'d> {
    fn from(denied: &Denied<'d>) -> Denial<'d> {
        let (action, retry_after) = (denied.rule().action.as_str(), denied.numbers().retry_after());
        Denial { by: "limit", banned_field: None, action, retry_after, degraded: false }
    }
}

impl Denial<'_> {
    fn log(&self, request: &Request<'_>, rule: Option<&Rule>) {
        // Headers and queries may hold secrets, so the log leaves them out.
        let told = request.fields().filter(|(name, _)| !name.starts_with("header.") && !name.starts_with("query."));
        tracing::info!(
            target: "flowgate::denials",
            rule = rule.map(Rule::name),
            by = self.by,
            action = self.action,
            fields = one_line(told, MAX_LOGGED_BYTES),
            counted = request.counted.map(|counted| one_line(std::iter::once(counted), MAX_LOGGED_BYTES)),
            cost = request.cost,
            retry_after = self.retry_after.map(tracing::field::display),
            degraded = self.degraded.then_some(true),
            request_id = request.id,
            "denied"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn of_many_denied_requests_only_samples_are_read() {
        let observer = Observer::new(Denials::Off, &config::Console::default(), Clock::System);
        let read = Cell::new(0);
        let request = || {
            read.set(read.get() + 1);
            Request::new()
        };
        let denial = Denial { by: "limit", banned_field: None, action: "deny", retry_after: None, degraded: false };
        for _ in 0..100_000 {
            observer.note_by(request, None, Some(denial), Time::from_secs(1));
        }
        assert!((100..10_000).contains(&read.get()), "{} requests were read", read.get());
    }

    #[test]
    fn a_share_of_the_denials_is_spread_evenly() {
        let logged = |share: &str| {
            let observer =
                Observer::new(Denials::Share(share.parse().unwrap()), &config::Console::default(), Clock::System);
            let pattern: Vec<bool> = (0..300).map(|_| observer.is_logged()).collect();
            (pattern.iter().filter(|logged| **logged).count(), pattern[..6].to_vec())
        };
        assert_eq!(logged("1/3"), (100, vec![true, false, false, true, false, false]));
        assert_eq!(logged("2/3").0, 200);
        assert_eq!(logged("1%").0, 3);
        assert_eq!(logged("1/1").0, 300);
        assert!(!Observer::new(Denials::Off, &config::Console::default(), Clock::System).is_logged());
    }
}
