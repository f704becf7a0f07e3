//! The pause, a panic button: for a bounded time no rule denies.
//!
//! State      The pause in force: its end, and the snapshot that is in force without it.
//! Rule       While the rules are paused, the snapshot in force is a copy in which every rule is a shadow: it is evaluated,
//!            counted and reported, and denies nothing. Rules that let requests pass stay as they are. Bans by rules do not
//!            hold meanwhile, and denials do not count towards one. Bans by hand hold, and so do limits on ad hoc keys.
//! Rule       Limits that Envoy's descriptors bring are paused, too.
//! Rule       Rules of other systems are paused, too: they answer as if the limits that deny were not exceeded.
//! Rule       A reload during a pause replaces what the end of the pause puts in force. A restart ends the pause.
//! Invariant  Requests pay nothing for it: they read one snapshot, paused or not.

use std::sync::Arc;

use flowgate::{Span, Time};
use tokio::task::AbortHandle;

use super::{Service, Snapshot};
use crate::author::{Author, changed};
use crate::recent::MarkKind;

/// The longest pause. Rules that should deny nothing for longer are changed, not paused.
pub const MAX_PAUSE: Span = Span::from_secs(24 * 60 * 60);

/// A pause in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When the pause began.
    pub since: Time,
    /// When the pause ends by itself.
    pub until: Time,
}

/// A pause, and what puts the rules in force again.
#[derive(Debug)]
pub(super) struct PauseInForce {
    pause: Pause,
    /// The snapshot in force once the pause has ended.
    unpaused: Arc<Snapshot>,
    #[expect(dead_code, reason = "stopped when it is dropped")]
    timer: Timer,
}

/// A copy of the rules in force that denies nothing.
struct ShadowCopy {
    of: Arc<Snapshot>,
    shadowed: Arc<Snapshot>,
}

/// The task that ends the pause. It is stopped when it is dropped.
#[derive(Debug)]
struct Timer(AbortHandle);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Service {
    /// Lets all rules deny nothing for `length`, at most [`MAX_PAUSE`]. A pause that is in force gets another end. Copies all
    /// rules, which takes milliseconds for thousands of them. Must be called on a runtime, which ends the pause.
    pub fn pause(&self, length: Span, author: &Author) -> Pause {
        let length = length.min(MAX_PAUSE);
        let at = self.read();
        let until = at.on_the_wall(at.now + length);
        let mut copy: Option<ShadowCopy> = None;
        let (mut state, since, unpaused) = loop {
            let mut state = self.pause.lock();
            let in_force = self.snapshot.load_full();
            match (state.take(), copy) {
                (Some(PauseInForce { pause, unpaused, .. }), _) => break (state, pause.since, unpaused),
                (None, Some(ShadowCopy { of, shadowed })) if Arc::ptr_eq(&of, &in_force) => {
                    self.snapshot.store(shadowed);
                    break (state, at.on_the_wall(at.now), of);
                }
                // Event loops wait for the lock, so the rules are copied without it.
                (None, _) => drop(state),
            }
            copy = Some(ShadowCopy { shadowed: Arc::new(in_force.shadowed()), of: in_force });
        };
        let (service, pause) = (self.clone(), Pause { since, until });
        let timer = tokio::spawn(async move {
            tokio::time::sleep(length.into()).await;
            // Another caller may have set another end at this moment.
            service.end_pause(&Author::CLOCK, |other| *other == pause);
        });
        *state = Some(PauseInForce { pause, unpaused, timer: Timer(timer.abort_handle()) });
        self.mark(MarkKind::Pause);
        changed!(author, "the rules are paused: none of them denies", length = %length);
        pause
    }

    /// Ends the pause; false if there is none.
    pub fn resume(&self, author: &Author) -> bool {
        self.end_pause(author, |_| true)
    }

    fn end_pause(&self, author: &Author, is_meant: impl FnOnce(&Pause) -> bool) -> bool {
        let mut state = self.pause.lock();
        let Some(PauseInForce { unpaused, .. }) = state.take_if(|paused| is_meant(&paused.pause)) else { return false };
        self.snapshot.store(unpaused);
        self.mark(MarkKind::Resume);
        changed!(author, "the pause has ended: the rules are in force");
        true
    }

    /// The pause in force.
    pub fn paused(&self) -> Option<Pause> {
        self.pause.lock().as_ref().map(|paused| paused.pause)
    }

    /// The rules in force, or those that the end of the pause puts in force.
    pub(crate) fn unpaused(&self) -> Arc<Snapshot> {
        match &*self.pause.lock() {
            Some(paused) => Arc::clone(&paused.unpaused),
            None => self.snapshot.load_full(),
        }
    }

    /// Puts a snapshot in force, whole. Questions under way finish with the old one. Counters live on where their rule's
    /// name and `by` and their limit's algorithm and period stay. While the rules are paused, so are the new ones.
    pub fn swap(&self, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        let mut shadowed = None;
        loop {
            let mut state = self.pause.lock();
            match (&mut *state, shadowed) {
                (None, _) => return self.snapshot.store(snapshot),
                (Some(paused), Some(shadowed)) => {
                    self.snapshot.store(shadowed);
                    paused.unpaused = snapshot;
                    return;
                }
                (Some(_), None) => drop(state),
            }
            shadowed = Some(Arc::new(snapshot.shadowed()));
        }
    }
}

#[cfg(test)]
mod tests {
    use flowgate_engine::Request;
    use flowgate_engine::bans::BanOrder;
    use flowgate_engine::config::Config;

    use super::super::Operation;
    use super::super::tests::{now, service};
    use super::*;

    const RULES: &str = r#"
        lists.blocked = { values = ["192.0.2.1"] }
        rule = [
            { name = "monitoring", when = { user = "health" }, action = "allow" },
            { name = "blocked", when = { ip = "@blocked" }, action = "deny" },
            { name = "reply", by = ["user"], limits = ["2/60s"], ban = { after = 1, within = "1m", for = ["1h"], forget = "1d" } },
            { name = "all", limits = ["pace 1/s max_wait=100s"] },
        ]"#;

    fn take(service: &Service, fields: &[(&str, &str)]) -> flowgate_engine::Decision {
        let request = fields.iter().fold(Request::new(), |request, (name, value)| request.field(name, value));
        now(service.decide(Operation::Take, &request))
    }

    #[tokio::test]
    async fn no_rule_denies_while_bans_by_hand_and_ad_hoc_limits_hold() {
        let (service, _) = service(RULES);
        let user = [("user", "42")];
        (0..2).for_each(|_| assert!(take(&service, &user).allowed()));
        assert!(take(&service, &user).banned_until().is_some(), "the third is denied, and bans");
        let order = BanOrder { field: "user", value: "7", length: Span::from_secs(60), reason: "", author: None };
        now(service.ban(order, &Author::PROGRAM)).unwrap();
        let limit = "1/60s".parse().unwrap();
        let ad_hoc = || {
            now(service.limit(
                Operation::Take,
                flowgate_engine::AdHoc { key: b"k".into(), limit: &limit, cost: 1 },
                service.read(),
            ))
        };
        assert!(ad_hoc().unwrap().decision.allowed());

        service.pause(Span::from_secs(60), &Author::PROGRAM);
        let decision = take(&service, &user);
        let shadows: Vec<&str> = decision.shadow.iter().map(|rule| rule.name()).collect();
        assert!(decision.allowed() && decision.delay().is_zero(), "neither a ban by a rule nor a pace holds");
        assert_eq!(shadows, ["reply"], "what would have denied is told");
        let blocked = take(&service, &[("ip", "192.0.2.1"), ("user", "8")]);
        assert!(blocked.allowed() && blocked.shadow[0].name() == "blocked");
        let health = take(&service, &[("user", "health")]);
        assert_eq!(health.rule().map(|rule| rule.name()), Some("monitoring"), "what allows ends the evaluation still");
        assert!(!take(&service, &[("user", "7")]).allowed(), "a person has banned this one");
        assert!(!ad_hoc().unwrap().decision.allowed(), "the caller has brought this limit");

        assert!(service.resume(&Author::PROGRAM) && !service.resume(&Author::PROGRAM));
        assert!(!take(&service, &user).allowed(), "the rest of the ban holds again");
        take(&service, &[("user", "8")]);
        assert!(!take(&service, &[("user", "8")]).allowed(), "the pause has counted");
    }

    #[tokio::test]
    async fn a_ban_that_denies_everywhere_is_suspended() {
        let (service, _) = service(
            r#"rule = [{ name = "login", when = { path = "/login" }, by = ["ip"], limits = ["1/60s"],
                ban = { after = 1, within = "1m", for = ["1h"], forget = "1d", scope = "subject" } }]"#,
        );
        (0..2).for_each(|_| drop(take(&service, &[("path", "/login"), ("ip", "192.0.2.1")])));
        let passes = || take(&service, &[("path", "/"), ("ip", "192.0.2.1")]).allowed();
        assert!(!passes());
        service.pause(Span::from_secs(60), &Author::PROGRAM);
        assert!(passes());
        service.resume(&Author::PROGRAM);
        assert!(!passes());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_ends_by_itself_at_its_last_end() {
        let (service, _) = service("rule = [{ name = 'no', action = 'deny' }]");
        let denies = || !take(&service, &[("a", "1")]).allowed();
        assert!(denies() && service.paused().is_none());
        let first = service.pause(Span::from_secs(10), &Author::PROGRAM);
        assert_eq!(first.until, first.since + Span::from_secs(10));
        let second = service.pause(Span::from_secs(20), &Author::PROGRAM);
        assert_eq!((second.since, service.paused()), (first.since, Some(second)));
        tokio::time::sleep(std::time::Duration::from_secs(19)).await;
        assert!(!denies() && service.paused().is_some(), "the first end was replaced");
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        assert!(denies() && service.paused().is_none());
    }

    #[tokio::test]
    async fn a_pause_is_bounded_and_outlives_a_reload() {
        let (service, _) = service("rule = [{ name = 'no', action = 'deny' }]");
        let denies = || !take(&service, &[("a", "1")]).allowed();
        let pause = service.pause(Span::from_secs(u64::MAX / 1_000_000_000), &Author::PROGRAM);
        assert_eq!(pause.until, pause.since + MAX_PAUSE);
        let other = Config::from_toml("rule = [{ name = 'other', action = 'deny' }]").unwrap();
        service.replace(&other.policy).unwrap();
        assert!(!denies() && service.rules().rules[0].name() == "other", "the new rules are paused, too");
        service.resume(&Author::PROGRAM);
        assert!(denies() && service.rules().rules[0].name() == "other");
    }
}
