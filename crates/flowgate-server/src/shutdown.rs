//! The signal to stop.

use tokio::sync::watch;

/// Receives the signal. Clones receive the same one.
#[derive(Debug, Clone)]
pub struct Shutdown {
    requested: watch::Receiver<bool>,
}

/// Sends the signal to the matching [`Shutdown`]. Dropping it sends the signal, too, so a server never outlives its
/// owner.
#[derive(Debug)]
pub struct Trigger {
    request: watch::Sender<bool>,
}

impl Shutdown {
    /// A sender and a receiver.
    pub fn new() -> (Trigger, Self) {
        let (request, requested) = watch::channel(false);
        (Trigger { request }, Self { requested })
    }

    /// Returns after the signal; at once if it was sent before.
    pub async fn requested(&mut self) {
        // An error means that the trigger was dropped.
        let _ = self.requested.wait_for(|&requested| requested).await;
    }

    /// Returns `after` the signal.
    pub(crate) async fn last_call(&mut self, after: std::time::Duration) {
        self.requested().await;
        tokio::time::sleep(after).await;
    }
}

impl Trigger {
    /// Sends the signal. A second call has no effect.
    pub fn stop(&self) {
        self.request.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_reaches_waiting_and_later_callers() {
        let (trigger, mut shutdown) = Shutdown::new();
        let mut clone = shutdown.clone();
        let waiting = tokio::spawn(async move { clone.requested().await });
        trigger.stop();
        waiting.await.unwrap();
        shutdown.requested().await;
        shutdown.requested().await;
    }

    #[tokio::test]
    async fn dropping_the_trigger_is_a_request() {
        let (trigger, mut shutdown) = Shutdown::new();
        drop(trigger);
        shutdown.requested().await;
    }
}
