//! Readiness: whether the server should be sent work, for `/readyz`, load balancers and systemd.
//!
//! Rule       A server that was told to stop is not ready from that moment on, before any listener closes.
//! Rule       A server that has lost something it can do without for a while is ready, but degraded: it says what is
//!            missing, and goes on. Sending its callers elsewhere would only move the load to servers that lost the same.

use std::sync::{Arc, PoisonError, RwLock};

/// A handle to what the server says of itself. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    state: Arc<RwLock<Ready>>,
}

/// Whether to send work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ready {
    /// All is well.
    #[default]
    Yes,
    /// Yes, but something is missing: "redis away".
    Degraded(String),
    /// No: the server is about to end, and finishes what it has.
    Draining,
}

impl Readiness {
    /// How things stand.
    pub fn get(&self) -> Ready {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on the server is not ready.
    pub fn drain(&self) {
        self.change(Ready::Draining);
    }

    /// Something is missing that the server can do without for a while.
    pub fn degrade(&self, missing: &str) {
        self.change(Ready::Degraded(missing.to_owned()));
    }

    /// What was missing is there again.
    pub fn recover(&self) {
        self.change(Ready::Yes);
    }

    fn change(&self, next: Ready) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if *state != Ready::Draining {
            *state = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draining_is_final() {
        let readiness = Readiness::default();
        assert_eq!(readiness.get(), Ready::Yes);
        readiness.degrade("redis away");
        assert_eq!(readiness.clone().get(), Ready::Degraded("redis away".to_owned()));
        readiness.recover();
        assert_eq!(readiness.get(), Ready::Yes);
        readiness.drain();
        readiness.recover();
        readiness.degrade("redis away");
        assert_eq!(readiness.get(), Ready::Draining);
    }
}
