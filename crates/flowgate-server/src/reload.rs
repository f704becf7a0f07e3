//! Reload: other rules, lists and certificates while requests go on.
//!
//! State      The configuration in force, the origins of the last attempt to load one, and how attempts went.
//! Rule       When an origin of the last attempt has changed, or a caller asks, the configuration is loaded again.
//!            First every part is compiled ([`candidate`]): rules, lists, rule files of fronts, certificates. Then all parts
//!            are swapped in. A mistake in one part changes none; it is logged and stays in the
//!            [status](ReloadStatus) until an attempt succeeds. Requests under way finish with the old rules.
//! Rule       Settings that only a restart changes (addresses, threads, ..) are named in a warning and in the status.
//! Invariant  One change, one attempt: a failed attempt is repeated only after another change, or when a caller asks.
//!
//! **Why polling.** Notifications of the file system (inotify and its kin) do not arrive on network and overlay file
//! systems, are lost when a directory is replaced whole or a queue overflows, and watch inodes where people mean
//! names: a rename over the file, a link that now points elsewhere (as Kubernetes swaps a ConfigMap), a file deleted
//! and written again each need care of their own. Reading the metadata of each name once a second sees all of these the
//! same way, and costs microseconds.
//!
//! The watch runs on a thread of its own: a file system that hangs delays the next reload only.

mod candidate;
mod certificates;
mod settings;
mod watch;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::time::Duration;
use std::{io, thread};

use flowgate::Time;
use flowgate_engine::Policy;
use flowgate_engine::config::{Config, LoadedConfig, Report};
use tokio::sync::watch as signal;

use crate::author::Author;
use crate::lock::Lock;
use crate::service::Service;
use crate::tls::Certificates;
use candidate::Candidate;
pub use candidate::ReloadError;
use certificates::CertificateWatch;
use watch::Watch;

/// The time between two looks for a change.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two looks at a file that is changing: far longer than an editor takes from emptying a file to
/// filling it, and than the ticks of a file system's clock.
const SETTLE_INTERVAL: Duration = Duration::from_millis(100);

/// The number of looks at a file that keeps changing. After the last one the file is loaded as it is.
const MAX_SETTLE_CHECKS: usize = 10;

/// What is needed to load a configuration again.
pub struct Reload {
    /// The service whose rules are replaced.
    pub service: Service,
    /// The configuration in force.
    pub loaded: LoadedConfig,
    /// Loads the configuration again, from the same place.
    pub load: Box<dyn FnMut() -> Result<LoadedConfig, Report> + Send>,
    /// The certificates that are renewed with it; `None`: the server has no TLS.
    pub certificates: Option<Certificates>,
    /// The time between two looks for a change: [`POLL_INTERVAL`], or less in a test.
    pub poll: Duration,
}

/// Watches a configuration until it is dropped.
#[derive(Debug)]
pub struct Reloader {
    service: Service,
    /// The settings with which the server started.
    settings: Arc<Config>,
    status: Arc<Lock<ReloadStatus>>,
    /// The number of attempts so far.
    attempts: signal::Receiver<u64>,
    /// Holds one request: two requests before the next attempt are served by that attempt.
    requests: SyncSender<ReloadRequest>,
}

/// A request for an attempt.
#[derive(Debug)]
struct ReloadRequest {
    author: Author,
    /// The version of the file in its history, if the admin API has written it.
    version: Option<u64>,
    /// Where to send the status after the attempt; `None`: the caller does not wait.
    waiting: Option<mpsc::Sender<ReloadStatus>>,
}

/// How attempts to load a configuration again went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadStatus {
    /// The number of attempts that put a configuration in force.
    pub succeeded: u64,
    /// The number of attempts that changed nothing.
    pub failed: u64,
    /// What was wrong with the last attempt, for people; `None`: it succeeded.
    pub last_error: Option<String>,
    /// Since when attempts have failed; `None`: the last one succeeded.
    pub failing_since: Option<Time>,
    /// The settings of the last configuration in force that a restart would change.
    pub restart_needed: Vec<&'static str>,
    /// The fingerprint of the configuration file as the last attempt read it; `None`: it could not be read.
    pub read: Option<u128>,
}

impl Reload {
    /// Starts to watch.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(self) -> io::Result<Reloader> {
        let (requests, incoming) = mpsc::sync_channel(1);
        let (attempts_made, attempts) = signal::channel(0);
        let Reload { service, loaded, load, certificates, poll } = self;
        let certificate_watch = match (&certificates, &loaded.config.tls) {
            (Some(certificates), Some(files)) => CertificateWatch::new(certificates, files.clone()),
            _ => CertificateWatch::default(),
        };
        let watch = Watch::new(loaded.origins);
        let status = Arc::new(Lock::new(ReloadStatus { read: watch.main_fingerprint(), ..ReloadStatus::default() }));
        // The settings are kept without rules and lists: the service keeps those in force.
        let settings = Arc::new(Config { lists: Vec::new(), policy: Policy::default(), ..loaded.config });
        let watcher = Watcher {
            service: service.clone(),
            settings: Arc::clone(&settings),
            load,
            watch,
            certificates,
            certificate_watch,
            status: Arc::clone(&status),
            attempts_made,
        };
        thread::Builder::new().name("reload".to_owned()).spawn(move || watcher.run(poll, &incoming))?;
        Ok(Reloader { service, settings, status, attempts, requests })
    }
}

impl Reloader {
    /// Asks for an attempt now, whether or not a file has changed. Returns before the attempt is made.
    pub fn reload(&self, author: Author) {
        match self.requests.try_send(ReloadRequest { author, version: None, waiting: None }) {
            // The thread ends with this value, or by a panic, which is reported as such.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }

    /// A value that changes after each attempt, and ends in an error once no more attempts follow.
    pub fn attempts(&self) -> signal::Receiver<u64> {
        self.attempts.clone()
    }

    /// Like [`Reloader::reload`], but waits for the attempt and returns the status after it. Blocks its thread. The log
    /// names the `version` of the file, if it has one.
    pub fn reload_now(&self, author: Author, version: Option<u64>) -> ReloadStatus {
        let (done, outcome) = mpsc::channel();
        if self.requests.send(ReloadRequest { author, version, waiting: Some(done) }).is_ok()
            && let Ok(status) = outcome.recv()
        {
            return status;
        }
        // The thread has panicked.
        self.status()
    }

    /// Compiles every part of `config`, and changes nothing.
    ///
    /// # Errors
    /// When a reload would fail with it.
    pub fn check(&self, config: &Config) -> Result<(), ReloadError> {
        Candidate::compile(&self.service, config, config.tls.as_ref()).map(drop)
    }

    /// The settings of `config` that only a restart would put in force.
    pub fn restart_needed(&self, config: &Config) -> Vec<&'static str> {
        settings::changed(&self.settings, config)
    }

    /// How attempts went so far.
    pub fn status(&self) -> ReloadStatus {
        self.status.lock().clone()
    }
}

/// The state of the thread.
struct Watcher {
    service: Service,
    /// The settings of the start, with which every new configuration is compared.
    settings: Arc<Config>,
    load: Box<dyn FnMut() -> Result<LoadedConfig, Report> + Send>,
    watch: Watch,
    certificates: Option<Certificates>,
    certificate_watch: CertificateWatch,
    status: Arc<Lock<ReloadStatus>>,
    attempts_made: signal::Sender<u64>,
}

impl Watcher {
    fn run(mut self, poll: Duration, requests: &Receiver<ReloadRequest>) {
        loop {
            match requests.recv_timeout(poll) {
                Ok(ReloadRequest { author, version, waiting }) => {
                    self.attempt(&author, version);
                    if let Some(waiting) = waiting {
                        // An error means that the caller has stopped waiting.
                        let _ = waiting.send(self.status.lock().clone());
                    }
                }
                Err(RecvTimeoutError::Timeout) if self.has_changed() => {
                    self.settle();
                    self.attempt(&Author::FILE, None);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Waits until the files stop changing. Half of a file may be valid by itself, and would put half of the rules in
    /// force.
    fn settle(&mut self) {
        for _ in 0..MAX_SETTLE_CHECKS {
            thread::sleep(SETTLE_INTERVAL);
            // Both watches look, so that the next look of each has something to compare with.
            if self.watch.is_steady() & self.certificate_watch.is_steady() {
                return;
            }
        }
    }

    fn has_changed(&mut self) -> bool {
        self.watch.has_changed() | self.certificate_watch.has_changed()
    }

    /// Makes one attempt, and tells the log, the status and the metrics how it went.
    fn attempt(&mut self, author: &Author, version: Option<u64>) {
        let start = self.service.now();
        let outcome = self.reload(author, version);
        let mut status = self.status.lock();
        status.read = self.watch.main_fingerprint();
        let noted = match outcome {
            Ok(restart_needed) => {
                status.succeeded += 1;
                (status.last_error, status.failing_since) = (None, None);
                status.restart_needed = restart_needed;
                Ok(())
            }
            Err(error) => {
                let file = error.file().or_else(|| self.watch.main_file());
                let place = file.as_ref().map_or_else(String::new, |file| format!(" ({file})"));
                tracing::error!("{}, and nothing has changed{place}\n{error}", error.summary());
                status.failed += 1;
                status.last_error = Some(error.to_string());
                status.failing_since.get_or_insert(start);
                Err(file)
            }
        };
        drop(status);
        self.service.metrics().reloads.note(noted, start, self.service.now());
        self.attempts_made.send_modify(|made| *made += 1);
    }

    /// Loads the configuration and puts it in force. Returns the settings that a restart would change.
    fn reload(&mut self, author: &Author, version: Option<u64>) -> Result<Vec<&'static str>, ReloadError> {
        let loaded = (self.load)().map_err(|report| {
            self.watch = Watch::new(report.origins.to_vec());
            self.certificate_watch.note_looks();
            ReloadError::Configuration(report)
        })?;
        let LoadedConfig { config, warnings, origins } = loaded;
        let same_files = self.watch.is_of(&origins);
        self.watch = Watch::new(origins);
        let tls = self.certificate_watch.follow(config.tls.as_ref());
        Candidate::compile(&self.service, &config, tls)?.put_in_force(&self.service, self.certificates.as_ref());

        let renewed = self.certificate_watch.note_in_force();
        if renewed {
            tracing::info!("new certificates are in force");
        }
        if !(renewed && same_files) {
            let (rules, lists) = (config.policy.rules.len(), config.policy.lists.len());
            let snapshot = self.service.snapshot();
            snapshot.fronts.log(author, version, rules, lists);
            self.service.note_rules(version);
        }
        if !warnings.is_empty() {
            tracing::warn!("the configuration has warnings\n{warnings}");
        }
        let restart_needed = settings::changed(&self.settings, &config);
        if !restart_needed.is_empty() {
            tracing::warn!(
                "restart to change {}: the rules are new, these settings are not",
                restart_needed.join(", ")
            );
        }
        Ok(restart_needed)
    }
}
