//! Durable counters: reads the journal at the start, writes it while the server runs, and with `always` holds each answer
//! until its change is on the disk.
//!
//! Rule       The listeners open once the counters are read.
//! Rule       With `always`, an answer that changed a counter waits for the sync of its epoch; a denial does not. A ban by hand waits in
//!            every mode. No answer waits longer than `server.request_timeout`, or for a disk that fails: it is degraded instead.
//! Rule       A journal that cannot be written never holds up a decision: the server is degraded, and goes on in memory.

mod open;
mod waiting;

use std::sync::Arc;

use flowgate::durable::Record;
use flowgate::{Clock, MemoryStore, Span};
use flowgate_engine::Decider;
use flowgate_engine::bans::BanCursor;
use flowgate_engine::config::{Config, Durability};
use flowgate_journal::{Companion, Directory, Journal, JournalSettings, JournalStatus, ReadReport, SyncStatus, Writer};
use tokio::sync::watch;

use crate::answer::Answer;
use crate::metrics::Histogram;
use crate::readiness::Readiness;
use crate::resp::yield_to_ready_tasks;
use crate::service::Service;
pub use open::DurableError;
pub(crate) use open::{OpenJournal, open};
use waiting::Waiting;

const BEHIND: &str = "journal behind";
const DAMAGED: &str = "counters damaged";

/// The journal of a server's counters.
#[derive(Debug)]
pub(crate) struct Durable {
    journal: Arc<Journal>,
    synced: watch::Receiver<SyncStatus>,
    /// Why the disk fails. A channel apart from `synced`, which changes with every sync and would wake its reader each
    /// time.
    failure: watch::Receiver<Option<String>>,
    waiting: Arc<Waiting>,
    /// Whether every answer that changed a counter waits for the disk.
    pub(crate) is_always: bool,
    /// What was read at the start.
    pub(crate) read: ReadReport,
    /// How long walks through the counters have held the locks of shards.
    pub(crate) lock_times: Arc<Histogram>,
    clock: Clock,
    /// Keeps the directory locked while the journal is written.
    _directory: Directory,
}

impl Durable {
    /// Brings bans back and begins to write.
    pub(crate) fn start(opened: OpenJournal, config: &Config, service: &Service) -> Result<Durable, DurableError> {
        let OpenJournal { directory, bans, read, back, .. } = opened;
        let (rules, now, clock) = (service.rules(), service.now(), service.clock.clone());
        for (kind, body) in &bans {
            service.decider.restore_ban(*kind, body, &rules, back, now);
        }
        let failed = |source| DurableError::Write { path: directory.path().to_owned(), source };
        let is_always = config.store.durable.mode == Durability::Always;
        let disk = if is_always { directory.disk().for_frequent_syncs() } else { directory.disk() };
        let mut writer = Writer::new(Arc::new(disk), directory.seed().fingerprint(), now).map_err(failed)?;
        let lock_times = Arc::<Histogram>::default();
        let noted = Arc::clone(&lock_times);
        writer.on_lock(Box::new(move |held| noted.note(held, 1)));
        let (sender, synced) = watch::channel(SyncStatus::default());
        let (failures, failure) = watch::channel(None);
        let report = Box::new(move |news: SyncStatus| {
            failures.send_if_modified(|known| {
                let is_news = *known != news.failure;
                if is_news {
                    known.clone_from(&news.failure);
                }
                is_news
            });
            sender.send_replace(news);
        });
        let mut keeper =
            BanKeeper { decider: Arc::clone(&service.decider), cursor: BanCursor::default(), clock: clock.clone() };
        if !back.is_zero() {
            // States that have moved back and states that have not must not lie in one journal: the next start would
            // move the former once more.
            let memory = service.decider.memory();
            writer.begin().map_err(failed)?;
            while !writer.write_base(memory, &mut keeper, u64::MAX >> 1).map_err(failed)? {}
        }
        let settings = JournalSettings { flush: config.store.durable.flush, clock: clock.clone(), report };
        let table = Table(Arc::clone(&service.decider));
        let journal = Arc::new(Journal::start(writer, table, Box::new(keeper), settings).map_err(failed)?);
        let waiting = Arc::new(Waiting::new(synced.clone(), config.server.request_timeout));
        Ok(Durable { journal, synced, failure, waiting, is_always, read, lock_times, clock, _directory: directory })
    }

    pub(crate) fn status(&self) -> &JournalStatus {
        self.journal.status()
    }

    pub(crate) fn lag(&self) -> Span {
        self.status().lag(self.clock.monotonic())
    }

    /// Writes the last changes. Blocks until they are on the disk.
    pub(crate) fn stop(&self) {
        self.journal.stop();
    }

    /// Reports the state of the journal to `readiness`, and to the log.
    pub(crate) fn watch(&self, readiness: &Readiness) {
        let (mut synced, mut late, readiness) = (self.synced.clone(), self.waiting.late.subscribe(), readiness.clone());
        let mut failure = self.failure.clone();
        let is_damaged = self.read.damaged > 0;
        if is_damaged {
            readiness.degrade(DAMAGED);
        }
        tokio::spawn(async move {
            let (mut was_failing, mut was_slow) = (false, false);
            loop {
                let changed = tokio::select! {
                    changed = failure.changed() => changed,
                    changed = late.changed() => changed,
                    // A slow disk counts as recovered once it has synced the epoch that was late.
                    changed = synced.changed(), if was_slow => changed,
                };
                if changed.is_err() {
                    return;
                }
                let (failure, epoch) = (failure.borrow_and_update().clone(), synced.borrow_and_update().epoch);
                let (is_failing, is_slow) = (failure.is_some(), *late.borrow_and_update() > epoch);
                match &failure {
                    Some(error) if !was_failing => {
                        tracing::error!(%error, "the journal cannot be written: counters are kept in memory alone, and a new journal is tried every second");
                    }
                    None if was_failing => tracing::info!("the journal is whole again: all counters were written anew"),
                    None if is_slow && !was_slow => {
                        tracing::warn!(
                            "the disk takes longer than server.request_timeout: answers no longer wait for it"
                        );
                    }
                    _ => {}
                }
                match (is_failing || is_slow, was_failing || was_slow) {
                    (true, false) => readiness.degrade(BEHIND),
                    (false, true) if is_damaged => readiness.degrade(DAMAGED),
                    (false, true) => readiness.recover(),
                    _ => {}
                }
                (was_failing, was_slow) = (is_failing, is_slow);
            }
        });
    }

    /// The answer once all changes of the caller are on the disk; what `unsynced` makes of the answer if they are not
    /// in time.
    fn later<T: Send + 'static>(&self, answer: T, unsynced: impl FnOnce(T) -> T + Send + 'static) -> Answer<T> {
        let (epoch, journal, waiting) = (self.journal.epoch(), Arc::clone(&self.journal), Arc::clone(&self.waiting));
        Answer::later(async move {
            // All connections that are ready change their counters before the flush begins: one sync serves them all.
            yield_to_ready_tasks().await;
            journal.want(epoch);
            // After most of `server.request_timeout` the answer goes out as it would with `everysec`.
            if waiting.wait(epoch).await { answer } else { unsynced(answer) }
        })
    }
}

impl Service {
    /// The answer to a call that may have changed a counter: at once, or with `always` once the change is on the disk.
    /// `degraded` marks an answer that did not wait for the disk.
    #[inline]
    pub(crate) fn kept<T: Send + 'static>(
        &self,
        has_changed: bool,
        answer: T,
        degraded: impl FnOnce(T) -> T + Send + 'static,
    ) -> Answer<T> {
        match self.durable.as_ref() {
            Some(durable) if has_changed && durable.is_always => {
                let observer = Arc::clone(&self.observer);
                durable.later(answer, move |answer| {
                    observer.metrics.degraded.add(1);
                    degraded(answer)
                })
            }
            _ => Answer::Now(answer),
        }
    }

    /// The answer to an admin's order, in every mode once the change is on the disk.
    pub(crate) fn kept_for_sure<T: Send + 'static>(&self, answer: T) -> Answer<T> {
        match self.durable.as_ref() {
            Some(durable) => durable.later(answer, |answer| answer),
            None => Answer::Now(answer),
        }
    }
}

/// The counters of a server.
struct Table(Arc<Decider>);

impl AsRef<MemoryStore> for Table {
    fn as_ref(&self) -> &MemoryStore {
        self.0.memory()
    }
}

/// Keeps the bans beside the counters.
struct BanKeeper {
    decider: Arc<Decider>,
    cursor: BanCursor,
    clock: Clock,
}

impl Companion for BanKeeper {
    fn changed(&mut self, out: &mut Vec<u8>) {
        let now = self.clock.now();
        self.decider.changed_bans(&mut self.cursor, now, |kind, body| _ = Record::write_foreign(kind as u8, body, out));
    }

    fn all(&mut self, out: &mut Vec<u8>) {
        self.decider.all_bans(self.clock.now(), |kind, body| _ = Record::write_foreign(kind as u8, body, out));
    }
}
