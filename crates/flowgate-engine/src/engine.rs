//! The engine: a [`Decider`] and the rules in force. One request in, one decision out.
//!
//! Invariant  Rules are read once per request and replaced whole, so no request sees half of a change.

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::ArcSwap;
use flowgate::{MemoryStore, Op, Reading};

use crate::decider::Decider;
use crate::decision::Decision;
use crate::explain::Explanation;
use crate::plan::JointDecision;
use crate::request::Request;
use crate::rules::{Policy, PolicyError, RuleSet};

/// A policy in force, with its counters and bans. [`Decider`] has the calls that need no rules.
///
/// ```
/// use flowgate::{MemoryStore, Op, Time};
/// use flowgate_engine::{Engine, Limits, Policy, Request, RuleDef};
///
/// let reply = RuleDef {
///     by: vec!["user".into()],
///     limits: Limits::Fixed(vec!["5/60s".parse()?]),
///     ..RuleDef::named("reply")
/// };
/// let engine = Engine::new(&Policy { rules: vec![reply], ..Policy::default() }, MemoryStore::default())?;
/// let decision = engine.decide(Op::Take, &Request::new().field("user", "42"), Time::from_secs(1_700_000_000));
/// assert!(decision.allowed());
/// assert_eq!(decision.remaining(), Some(4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    rules: ArcSwap<RuleSet>,
    decider: Decider,
}

impl Engine {
    /// Puts a policy in force.
    ///
    /// # Errors
    /// When the rules do not fit together; the error names the rule and the part.
    pub fn new(policy: &Policy, memory: MemoryStore) -> Result<Engine, PolicyError> {
        let decider = Decider::new(memory);
        let rules = decider.compile(policy, None)?;
        Ok(Engine { rules: ArcSwap::from_pointee(rules), decider })
    }

    /// An engine without any rule.
    pub fn without_rules(memory: MemoryStore) -> Engine {
        Engine { rules: ArcSwap::default(), decider: Decider::new(memory) }
    }

    /// Puts another policy in force. Requests under way finish with the old one. A counter is kept if the rule's name
    /// and `by` and the limit's algorithm and period stay the same.
    ///
    /// # Errors
    /// The same as for [`Engine::new`]; then nothing has changed.
    pub fn replace(&self, policy: &Policy) -> Result<(), PolicyError> {
        let rules = self.compile(policy, Some(&self.rules.load()))?;
        self.rules.store(Arc::new(rules));
        Ok(())
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<RuleSet> {
        self.rules.load_full()
    }

    /// Splits the engine into the rules in force and the decider, for a service that keeps the rules itself.
    pub fn into_parts(self) -> (Arc<RuleSet>, Decider) {
        (self.rules.into_inner(), self.decider)
    }

    /// Decides a request: may it happen now?
    pub fn decide(&self, op: Op, request: &Request<'_>, at: impl Into<Reading>) -> Decision {
        self.decide_by(&self.rules.load(), op, request, at)
    }

    /// Decides several requests in one atomic step: they pass together or not at all.
    ///
    /// ```
    /// use flowgate::{MemoryStore, Op, Time};
    /// use flowgate_engine::{Engine, Limits, Policy, Request, RuleDef};
    ///
    /// let rule = |name: &str, limit: &str| -> Result<RuleDef, flowgate::LimitError> {
    ///     let limits = Limits::Fixed(vec![limit.parse()?]);
    ///     Ok(RuleDef { by: vec![name.into()], limits, ..RuleDef::named(name) })
    /// };
    /// let policy = Policy { rules: vec![rule("user", "5/60s")?, rule("ip", "1/h")?], ..Policy::default() };
    /// let engine = Engine::new(&policy, MemoryStore::default())?;
    /// let requests = [
    ///     (Op::Take, Request::new().field("user", "42")),
    ///     (Op::Take, Request::new().field("ip", "1.2.3.4")),
    /// ];
    /// let now = Time::from_secs(1_700_000_000);
    /// assert!(engine.decide_joint(&requests, now).allowed());
    /// let denied = engine.decide_joint(&requests, now);
    /// let left = |number: usize| denied.parts()[number].decision.remaining();
    /// assert!(!denied.allowed());
    /// assert_eq!((left(0), left(1)), (Some(4), Some(0)), "the address is exceeded, so the user is not charged");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide_joint(&self, requests: &[(Op, Request<'_>)], at: impl Into<Reading>) -> JointDecision {
        self.decide_joint_by(&self.rules.load(), requests, at.into())
    }

    /// Forgets what all matching rules have counted for the request's subjects, including bans. Returns the decision of
    /// a peek of cost 0 after that.
    pub fn reset(&self, request: &Request<'_>, at: impl Into<Reading>) -> Decision {
        self.reset_by(&self.rules.load(), request, at)
    }

    /// Explains what would be decided. Changes nothing.
    pub fn explain(&self, request: &Request<'_>, at: impl Into<Reading>) -> Explanation {
        self.explain_by(&self.rules.load(), request, at)
    }
}

impl Deref for Engine {
    type Target = Decider;

    fn deref(&self) -> &Decider {
        &self.decider
    }
}
