//! How a server learns that it should stop.

use tokio::sync::watch;

/// The wish to stop, as seen by whoever has to. Clones see the same wish.
#[derive(Debug, Clone)]
pub struct Shutdown {
    requested: watch::Receiver<bool>,
}

/// Stops what holds the matching [`Shutdown`]. Dropping it stops it as well, so a server never outlives its owner.
#[derive(Debug)]
pub struct Trigger {
    request: watch::Sender<bool>,
}

impl Shutdown {
    /// A pair: the one asks for the end, the other waits for it.
    pub fn new() -> (Trigger, Self) {
        let (request, requested) = watch::channel(false);
        (Trigger { request }, Self { requested })
    }

    /// Returns once the end has been asked for, at once if it was before.
    pub async fn requested(&mut self) {
        // An error means that the trigger is gone, which asks for the same.
        let _ = self.requested.wait_for(|&requested| requested).await;
    }

    /// Returns so long after the end has been asked for.
    pub(crate) async fn last_call(&mut self, after: std::time::Duration) {
        self.requested().await;
        tokio::time::sleep(after).await;
    }
}

impl Trigger {
    /// Asks for the end. Asking again changes nothing.
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
