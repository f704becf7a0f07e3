//! Fronts of other systems: each has a rule file, endpoints, answers and metrics of its own, on the same counters and bans.
//!
//! This file is all that the service, a reload, the routes and the metrics know of them. To add a front: a field here, and
//! a line in each function.

use std::sync::Arc;

use flowgate_engine::PolicyError;
use flowgate_engine::config::Config;
use flowgate_koala::KoalaFile;
use hyper::body::Incoming;

use crate::author::{Author, changed};
use crate::http::{Call, Error, Reply};
use crate::koala::{self, KoalaInForce};
use crate::metrics::Exposition;
use crate::service::Service;

/// The fronts in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fronts {
    /// `None`: Koala is not served.
    koala: Option<Arc<KoalaInForce>>,
}

impl Fronts {
    /// Compiles the rule files of a configuration. What the fronts of `before` have counted continues.
    pub(crate) fn compile(service: &Service, config: &Config, before: &Fronts) -> Result<Fronts, PolicyError> {
        let compile = |file| KoalaInForce::compile(service, file, before.koala.as_deref());
        Ok(Fronts { koala: KoalaFile::from_config(config).map(compile).transpose()?.map(Arc::new) })
    }

    /// Koala's rules.
    pub(crate) fn koala(&self) -> Option<&Arc<KoalaInForce>> {
        self.koala.as_ref()
    }

    /// Whether a rule of a front looks at a field or counts by it.
    pub(crate) fn uses_field(&self, field: &str) -> bool {
        self.koala.as_ref().is_some_and(|koala| koala.rules.uses_field(field))
    }

    /// Logs that new rules are in force.
    pub(crate) fn log(&self, author: &Author, version: Option<u64>, rules: usize, lists: usize) {
        let koala_rules = self.koala.as_ref().map(|koala| koala.rules.len());
        changed!(author, "new rules are in force", version, rules, lists, koala_rules);
    }

    /// Writes the metrics of all fronts.
    pub(crate) fn render(&self, out: &mut Exposition) {
        koala::render(out, self.koala.as_deref());
    }
}

/// Answers a request to a path that no route of ours has.
pub(crate) async fn answer(call: &Call<'_>, body: Incoming) -> Result<Reply, Error> {
    koala::answer(call, body).await
}
