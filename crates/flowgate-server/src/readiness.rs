//! Readiness: whether the server takes requests, for `/readyz`, load balancers and systemd.
//!
//! Rule       A server that was told to stop is not ready from that moment on, before any listener closes.
//! Rule       A server without its shared store is ready, but degraded: it says so, and goes on. Other servers are
//!            likely to miss the same store, so moving its callers there would not help.

use std::sync::Arc;

use tokio::sync::watch;

/// The readiness of a server. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    state: Arc<watch::Sender<Ready>>,
}

/// Whether the server takes requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ready {
    /// The server takes requests.
    #[default]
    Yes,
    /// The server takes requests, but something is missing, such as "redis away".
    Degraded(String),
    /// The server stops, and finishes the requests under way.
    Draining,
}

impl Readiness {
    /// The current readiness.
    pub fn get(&self) -> Ready {
        self.state.borrow().clone()
    }

    /// Receives every change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Ready> {
        self.state.subscribe()
    }

    /// From now on the server is not ready.
    pub fn drain(&self) {
        self.change(Ready::Draining);
    }

    /// Notes that something is missing.
    pub fn degrade(&self, missing: &str) {
        self.change(Ready::Degraded(missing.to_owned()));
    }

    /// Notes that nothing is missing any more.
    pub fn recover(&self) {
        self.change(Ready::Yes);
    }

    fn change(&self, next: Ready) {
        self.state.send_if_modified(|state| {
            let changes = *state != Ready::Draining && *state != next;
            if changes {
                *state = next;
            }
            changes
        });
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
