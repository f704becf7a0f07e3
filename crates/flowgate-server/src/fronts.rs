//! Fronts of other systems: each has a rule file, endpoints, answers and metrics of its own, on the same counters and bans.
//!
//! This file is all that the service, a reload, the routes and the metrics know of them. To add a front: a field here, and
//! a line in each function.

use std::sync::Arc;

use flowgate_engine::config::Config;
use flowgate_engine::{Explanation, PolicyError, Request, RuleCounts};
use flowgate_koala::KoalaFile;

use crate::answer::Answer;
use crate::author::{Author, changed};
use crate::http::body::Body;
use crate::http::{Call, Error, Reply};
use crate::koala::{self, KoalaInForce};
use crate::metrics::Exposition;
use crate::service::{Service, Snapshot};

/// The fronts in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fronts {
    /// `None`: Koala is not served.
    pub(crate) koala: Option<Arc<KoalaInForce>>,
}

impl Fronts {
    /// Compiles the rule files of a configuration. What the fronts of `before` have counted continues.
    pub(crate) fn compile(service: &Service, config: &Config, before: &Fronts) -> Result<Fronts, PolicyError> {
        let compile = |file| KoalaInForce::compile(service, file, before.koala.as_deref());
        Ok(Fronts { koala: KoalaFile::from_config(config).map(compile).transpose()?.map(Arc::new) })
    }

    /// A copy that denies nothing.
    pub(crate) fn paused(&self) -> Fronts {
        Fronts { koala: self.koala.as_ref().map(|koala| Arc::new(koala.paused())) }
    }

    /// The rules of each front, as the engine has them: a reset forgets what they have counted, too.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = &Arc<Snapshot>> {
        self.koala.iter().map(|koala| &koala.snapshot)
    }

    /// What each front would answer to a request, and why.
    pub(crate) fn explain(&self, service: &Service, request: &Request<'_>) -> Answer<Vec<FrontExplanation>> {
        let explain = |koala: &Arc<KoalaInForce>| {
            let in_force = Arc::clone(koala);
            service.explain(&koala.snapshot, request).map(move |explanation| in_force.explained(explanation))
        };
        Answer::fold(self.koala.iter().map(explain), Vec::new(), |mut all, one| {
            all.push(one);
            all
        })
    }

    /// True if a rule of a front matches or counts by a field.
    pub(crate) fn uses_field(&self, field: &str) -> bool {
        self.koala.as_ref().is_some_and(|koala| koala.rules.uses_field(field))
    }

    /// Logs that new rules are in force.
    pub(crate) fn log(&self, author: &Author, version: Option<u64>, rules: usize, lists: usize) {
        let koala_rules = self.koala.as_ref().map(|koala| koala.rules.file.number_of_rules());
        changed!(author, "new rules are in force", version, rules, lists, koala_rules);
    }

    /// The names of the fronts that are served.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.koala.is_some().then_some("koala").into_iter()
    }

    /// What each rule of a front has decided and asks for on a denial, under a name that no other rule can have.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = (String, &'static str, RuleCounts)> {
        koala::tallies(self.koala.as_deref())
    }

    /// Writes the metrics of all fronts.
    pub(crate) fn render(&self, out: &mut Exposition) {
        koala::render(out, self.koala.as_deref());
    }
}

/// What a front would answer to a request, and why.
#[derive(Debug)]
pub(crate) struct FrontExplanation {
    /// The system that the front stands for.
    pub(crate) name: &'static str,
    pub(crate) allowed: bool,
    /// The rule that decides.
    pub(crate) rule: Option<String>,
    pub(crate) explanation: Explanation,
}

/// The methods and paths of fronts that `openapi.json` describes.
#[cfg(test)]
pub(crate) const DESCRIBED_ROUTES: &[(&str, &str)] = koala::ROUTES;

/// Answers a request to a path that no route of ours has.
pub(crate) async fn answer(call: &Call<'_>, body: Body<'_>) -> Result<Reply, Error> {
    koala::answer(call, body).await
}
