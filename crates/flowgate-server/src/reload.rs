//! Reload: other rules and lists while requests go on.
//!
//! State      The configuration in force, what the last attempt to load one was made of, and how attempts went.
//! Rule       When an origin of the last attempt has changed, or somebody asks, the configuration is loaded again.
//!            A right one puts its rules and lists in force, whole; requests under way finish with the old ones.
//!            Certificates are renewed with them. A wrong one changes nothing, is logged, and stays in the [status](ReloadStatus) until a right one comes.
//! Rule       Settings that cannot change while the server runs (addresses, threads, ..) are named in a warning.
//! Invariant  One change, one attempt: what failed is not tried again before something changes or somebody asks.
//!
//! **Why polling.** Notifications of the file system (inotify and its kin) do not arrive on network and overlay file
//! systems, are lost when a directory is replaced whole or a queue overflows, and watch inodes where people mean
//! names: a rename over the file, a link that now points elsewhere (as Kubernetes swaps a ConfigMap), a file deleted
//! and written again each need care of their own. Asking once a second for the metadata of each name sees all of
//! these the same way, and costs microseconds.
//!
//! It runs on a thread of its own: a file system that hangs holds up nothing but the next reload.

mod certificates;
mod settings;
mod watch;

use std::error::Error;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use flowgate_engine::config::{Config, LoadedConfig, Report};
use tokio::sync::watch as signal;

use crate::service::Service;
use crate::tls::Certificates;
use certificates::Renewal;
use watch::Watch;

/// How often to look for a change.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Between two looks at a file that is changing: far longer than an editor takes from emptying a file to filling it,
/// and than the ticks of a file system's clock.
const SETTLE_INTERVAL: Duration = Duration::from_millis(100);

/// A file that still changes after so many looks changes all the time, and is loaded as it is.
const MAX_SETTLE_CHECKS: usize = 10;

/// What is needed to load a configuration again.
pub struct Reload {
    /// Whose rules are replaced.
    pub service: Service,
    /// What is in force, as it was loaded.
    pub loaded: LoadedConfig,
    /// Loads it again, from the same place.
    pub load: Box<dyn FnMut() -> Result<LoadedConfig, Report> + Send>,
    /// The certificates to renew with it, if there are any.
    pub certificates: Option<Certificates>,
    /// How often to look for a change: [`POLL_INTERVAL`], unless a test is in a hurry.
    pub poll: Duration,
}

/// Watches a configuration until it is dropped.
#[derive(Debug)]
pub struct Reloader {
    status: Arc<Mutex<ReloadStatus>>,
    /// How many attempts have been made.
    attempts: signal::Receiver<u64>,
    /// Holds one wish: two before the next attempt are as good as one.
    wish: SyncSender<Wish>,
}

/// Who waits for the attempt, if anybody does.
type Wish = Option<mpsc::Sender<ReloadStatus>>;

/// How attempts to load a configuration again went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadStatus {
    /// How many put their rules in force.
    pub succeeded: u64,
    /// How many changed nothing.
    pub failed: u64,
    /// What was wrong with the last one, for people; `None`: nothing.
    pub last_error: Option<String>,
}

impl Reload {
    /// Starts to watch.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(self) -> io::Result<Reloader> {
        let status = Arc::default();
        let (wish, wishes) = mpsc::sync_channel(1);
        let (made, attempts) = signal::channel(0);
        let Reload { service, loaded, load, certificates, poll } = self;
        let watch = Watch::new(loaded.origins);
        let renewal = certificates.zip(loaded.config.tls.clone());
        let renewal = renewal.map(|(certificates, files)| Renewal::new(certificates, files));
        let work = Work { service, in_force: loaded.config, load, watch, renewal, status: Arc::clone(&status), made };
        thread::Builder::new().name("reload".to_owned()).spawn(move || work.run(poll, &wishes))?;
        Ok(Reloader { status, attempts, wish })
    }
}

impl Reloader {
    /// Asks for an attempt at once, whether or not anything has changed. Returns before it is made.
    pub fn reload(&self) {
        match self.wish.try_send(None) {
            // The thread ends only with us, or by a panic, which is reported as such.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }

    /// Changes whenever an attempt has been made, asked for or not; ends in an error if none will ever be made again.
    pub fn attempts(&self) -> signal::Receiver<u64> {
        self.attempts.clone()
    }

    /// As [`Reloader::reload`], but waits for it and tells how things stand then. Blocks: not for an event loop.
    pub fn reload_now(&self) -> ReloadStatus {
        let (done, outcome) = mpsc::channel();
        // A thread that is gone has panicked; the last that is known is all there is.
        let sent = self.wish.send(Some(done)).is_ok();
        sent.then(|| outcome.recv().ok()).flatten().unwrap_or_else(|| self.status())
    }

    /// How it went so far.
    pub fn status(&self) -> ReloadStatus {
        lock(&self.status).clone()
    }
}

/// What the thread has.
struct Work {
    service: Service,
    /// The settings the server was started with, and the rules that are in force.
    in_force: Config,
    load: Box<dyn FnMut() -> Result<LoadedConfig, Report> + Send>,
    watch: Watch,
    renewal: Option<Renewal>,
    status: Arc<Mutex<ReloadStatus>>,
    made: signal::Sender<u64>,
}

impl Work {
    fn run(mut self, poll: Duration, wishes: &Receiver<Wish>) {
        loop {
            match wishes.recv_timeout(poll) {
                Ok(waiting) => {
                    self.attempt();
                    if let Some(waiting) = waiting {
                        // Whoever gave up waiting does not need to know.
                        let _ = waiting.send(lock(&self.status).clone());
                    }
                }
                Err(RecvTimeoutError::Timeout) if self.has_changed() => {
                    self.settle();
                    self.attempt();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Waits until whoever writes is done, as far as one can see: half of a file may well be right by itself, and
    /// would put half of the rules in force.
    fn settle(&mut self) {
        for _ in 0..MAX_SETTLE_CHECKS {
            thread::sleep(SETTLE_INTERVAL);
            // Both are looked at, so that the next look has something to compare with.
            let renewed = self.renewal.as_mut().is_none_or(Renewal::is_steady);
            if self.watch.is_steady() & renewed {
                return;
            }
        }
    }

    fn has_changed(&mut self) -> bool {
        let renewed = self.renewal.as_mut().is_some_and(Renewal::has_changed);
        self.watch.has_changed() | renewed
    }

    fn attempt(&mut self) {
        let (start, failed) = (self.service.now(), lock(&self.status).failed);
        self.load();
        let succeeded = lock(&self.status).failed == failed;
        self.service.metrics().reloads.note(succeeded, start, self.service.now());
        self.made.send_modify(|made| *made += 1);
    }

    fn load(&mut self) {
        match (self.load)() {
            Ok(loaded) => {
                let same = self.watch.is_of(&loaded.origins);
                self.watch = Watch::new(loaded.origins);
                let renewed = self.renewal.as_mut().map(|renewal| renewal.renew(loaded.config.tls.as_ref()));
                let renewed = match renewed.transpose() {
                    Ok(renewed) => renewed.unwrap_or(false),
                    Err(error) => {
                        return self
                            .fail("the certificates cannot be used, and all stays as it is", with_reason(&error));
                    }
                };
                if renewed {
                    tracing::info!("new certificates are in force");
                }
                let koala = self.service.replace_koala(loaded.config.koala_file.as_deref());
                match koala.and_then(|()| self.service.replace(&loaded.config.policy)) {
                    Ok(()) => {
                        if !(renewed && same) {
                            tell_of_rules(&loaded.config);
                        }
                        self.succeed(loaded.config, &loaded.warnings);
                    }
                    Err(error) => self.fail(
                        "the rules do not fit together, and stay as they are; certificates and Koala's rules may be new",
                        error.to_string(),
                    ),
                }
            }
            Err(report) => {
                self.watch = Watch::new(report.origins().to_vec());
                self.renewal.iter_mut().for_each(Renewal::note);
                self.fail("the configuration is wrong, and all stays as it is", report.to_string());
            }
        }
    }

    fn succeed(&mut self, config: Config, warnings: &Report) {
        if !warnings.is_empty() {
            tracing::warn!("the configuration has warnings\n{warnings}");
        }
        let waiting = settings::changed(&self.in_force, &config);
        if !waiting.is_empty() {
            tracing::warn!("restart to change {}: the rules are new, these settings are not", waiting.join(", "));
        }
        // Compared with what the server was started with, not with what it was told since.
        (self.in_force.lists, self.in_force.policy) = (config.lists, config.policy);
        let mut status = lock(&self.status);
        status.succeeded += 1;
        status.last_error = None;
    }

    fn fail(&mut self, what: &str, error: String) {
        tracing::error!("{what}\n{error}");
        let mut status = lock(&self.status);
        status.failed += 1;
        status.last_error = Some(error);
    }
}

fn tell_of_rules(config: &Config) {
    let (rules, lists) = (config.policy.rules.len(), config.policy.lists.len());
    let koala_rules = config.koala_file.as_ref().map(|file| file.len());
    tracing::info!(rules, lists, koala_rules, "new rules are in force");
}

fn with_reason(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |reason| format!("{error}: {reason}"))
}

fn lock(status: &Mutex<ReloadStatus>) -> MutexGuard<'_, ReloadStatus> {
    // Nothing can panic between two changes of it.
    status.lock().unwrap_or_else(PoisonError::into_inner)
}
