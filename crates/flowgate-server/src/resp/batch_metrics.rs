//! Counts a batch of commands, and reports all of it to the metrics at the end of the batch.

use flowgate::{Reading, ThrottleError, ThrottleReply};
use flowgate_engine::RuleOutcome;

use super::session::Shared;
use crate::answer::Answer;
use crate::metrics::sampling::{self, Kind};
use crate::service::Service;

/// The decisions on ad hoc keys since the last report, if the batch counts them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BatchMetrics {
    allowed: u64,
    limited: u64,
}

impl BatchMetrics {
    /// Counts an answer of `CL.THROTTLE`, now or once it arrives.
    #[inline]
    pub(super) fn count_throttle(
        &mut self,
        shared: &Shared,
        key: &[u8],
        at: Reading,
        answer: Answer<Result<ThrottleReply, ThrottleError>>,
    ) -> Answer<Result<ThrottleReply, ThrottleError>> {
        match &answer {
            Answer::Now(Ok(reply)) => {
                self.count_key(&shared.service, || key, !reply.limited, at);
                answer
            }
            Answer::Now(Err(_)) => answer,
            // The service counts a pending answer when it arrives.
            Answer::Later(_) => answer,
        }
    }

    /// Counts an answer about an ad hoc key. `key` is called only if the answer is ranked or logged.
    #[inline]
    pub(super) fn count_key<'k>(&mut self, service: &Service, key: impl Fn() -> &'k [u8], allowed: bool, at: Reading) {
        if allowed {
            self.allowed += 1;
        } else {
            self.limited += 1;
        }
        service.observer.key_seen(key, allowed, at.now);
    }

    /// Reports the commands of a batch and the answers that it has counted.
    #[inline]
    pub(super) fn report(&mut self, shared: &Shared, commands: u64) {
        shared.counters.listener.requests.add(commands);
        let BatchMetrics { allowed, limited } = std::mem::take(self);
        let keys = &shared.service.metrics().keys;
        if allowed > 0 {
            keys.add(RuleOutcome::Allowed, allowed);
        }
        if limited > 0 {
            keys.add(RuleOutcome::Denied, limited);
        }
    }
}

/// Notes how long an answered batch took, for a sample of the batches: it costs a second reading of the clock.
#[inline]
pub(super) fn note_latency(shared: &Shared, commands: u64, began: Reading) {
    if commands > 0
        && let Some(weight) = sampling::weight(Kind::Latency, began.now)
    {
        let took = began.real_wait(shared.service.now().since(began.now));
        shared.service.metrics().resp_latency.note(took, commands * u64::from(weight));
    }
}
