//! Failures of the disk while one thread writes and another syncs: what is reported, and that the journal is whole
//! again afterwards.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::time::Duration;

use flowgate::durable::{LoadAt, Record};
use flowgate::{Ask, Clock, MemoryConfig, MemoryStore, Op, Seed, Span, Time};
use flowgate_journal::{
    Companion, Disk, FileDisk, Journal, JournalSettings, NoCompanion, Sink, SyncStatus, Writer, read,
};
use flowgate_testkit::wait::eventually;
use tempfile::TempDir;

const SEED: Seed = Seed([1, 2]);

/// A disk whose writes fail, and whose syncs wait, while a test says so.
struct TroubledDisk {
    disk: FileDisk,
    fails: AtomicBool,
    /// The next sync of the syncing thread fails, and no other sync sees the failure.
    loses: AtomicBool,
    /// Held by a test that lets that sync wait.
    loss: Mutex<()>,
    is_losing: AtomicBool,
    /// Held by a test that lets syncs wait.
    gate: Mutex<()>,
    is_syncing: AtomicBool,
}

impl TroubledDisk {
    fn new(directory: &TempDir) -> Arc<TroubledDisk> {
        let [fails, loses, is_losing, is_syncing] = [const { AtomicBool::new(false) }; 4];
        let (disk, [gate, loss]) = (FileDisk::new(directory.path()), [const { Mutex::new(()) }; 2]);
        Arc::new(TroubledDisk { disk, fails, loses, loss, is_losing, gate, is_syncing })
    }
}

impl Disk for TroubledDisk {
    type File = <FileDisk as Disk>::File;

    fn create(&self, name: &str) -> io::Result<Self::File> {
        self.disk.create(name)
    }

    fn append(&self, file: &Self::File, bytes: &[u8]) -> io::Result<()> {
        match self.fails.load(SeqCst) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => self.disk.append(file, bytes),
        }
    }

    fn sync(&self, file: &Self::File) -> io::Result<()> {
        if std::thread::current().name() == Some("journal-sync") && self.loses.swap(false, SeqCst) {
            self.is_losing.store(true, SeqCst);
            drop(self.loss.lock().unwrap());
            return Err(io::Error::other("the disk has lost what was written"));
        }
        self.is_syncing.store(true, SeqCst);
        drop(self.gate.lock().unwrap());
        self.is_syncing.store(false, SeqCst);
        self.disk.sync(file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read>> {
        self.disk.open(name)
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        self.disk.length(name)
    }
}

fn store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, seed: SEED, ..MemoryConfig::default() }))
}

fn take(memory: &MemoryStore, subject: &str) {
    let key = memory.subject(subject.as_bytes()).counter(memory.counter(b"c"));
    let ask = Ask::new(Op::Take, 1, Clock::System.now());
    memory.apply_one(ask, key, &"fixed 100/365d".parse().unwrap());
}

/// Starts a journal, and returns everything that it reports.
fn start(
    disk: &Arc<impl Disk>,
    memory: &Arc<MemoryStore>,
    companion: Box<dyn Companion>,
) -> (Journal, mpsc::Receiver<SyncStatus>) {
    let (sender, reports) = mpsc::channel();
    let sender = Mutex::new(sender);
    let settings = JournalSettings {
        flush: Duration::from_millis(10),
        clock: Clock::System,
        report: Box::new(move |synced| _ = sender.lock().unwrap().send(synced)),
    };
    let writer = Writer::new(Arc::clone(disk), 1, Clock::System.now()).unwrap();
    (Journal::start(writer, Arc::clone(memory), companion, settings).unwrap(), reports)
}

fn next(reports: &mpsc::Receiver<SyncStatus>) -> SyncStatus {
    reports.recv_timeout(Duration::from_secs(20)).unwrap()
}

/// The next report that the disk fails, or that it does not.
fn next_that_fails(reports: &mpsc::Receiver<SyncStatus>, fails: bool) -> SyncStatus {
    loop {
        let report = next(reports);
        if report.failure.is_some() == fails {
            return report;
        }
    }
}

/// The counters in a directory.
fn counters(directory: &TempDir) -> usize {
    struct Loading(Arc<MemoryStore>);
    impl Sink for Loading {
        fn record(&mut self, record: Record<'_>, since: Time) {
            self.0.load(record, LoadAt { now: since, back: Span::ZERO });
        }
    }
    let memory = store();
    read(&FileDisk::new(directory.path()), Some(1), &mut Loading(Arc::clone(&memory))).unwrap();
    memory.stats().counters
}

#[test]
fn a_sync_that_ends_after_a_failed_write_does_not_report_a_recovery() {
    let (directory, memory) = (tempfile::tempdir().unwrap(), store());
    let disk = TroubledDisk::new(&directory);
    let (journal, reports) = start(&disk, &memory, Box::new(NoCompanion));
    next(&reports);
    // The writing thread syncs a base itself and must not wait at the gate.
    eventually("the base is finished", || disk.list().unwrap().iter().any(|name| name.ends_with(".fgj")));
    let gate: MutexGuard<'_, ()> = disk.gate.lock().unwrap();
    eventually("a sync is under way", || disk.is_syncing.load(SeqCst));
    disk.fails.store(true, SeqCst);
    take(&memory, "a");
    let failed = next_that_fails(&reports, true);
    drop(gate);
    let synced = next(&reports);
    assert!(synced.epoch >= failed.epoch && synced.failure.is_some(), "{failed:?}, then {synced:?}");
    disk.fails.store(false, SeqCst);
    next_that_fails(&reports, false);
    assert_eq!(counters(&directory), 1, "all is written once the recovery is reported");
    journal.stop();
}

/// The system reports lost writes to one sync only. Other syncs of the same file, at the same time or later, succeed.
#[test]
fn no_change_counts_as_synced_while_a_sync_of_its_file_fails() {
    for is_wanted in [true, false] {
        let (directory, memory) = (tempfile::tempdir().unwrap(), store());
        let disk = TroubledDisk::new(&directory);
        let (journal, reports) = start(&disk, &memory, Box::new(NoCompanion));
        eventually("the base is finished", || disk.list().unwrap().iter().any(|name| name.ends_with(".fgj")));
        let gate = disk.loss.lock().unwrap();
        disk.loses.store(true, SeqCst);
        eventually("a sync is under way", || disk.is_losing.load(SeqCst));
        take(&memory, "a");
        let (epoch, flushes) = (journal.epoch(), journal.status().flushes());
        if is_wanted {
            journal.want(epoch);
        }
        eventually("the change is written", || journal.status().flushes() > flushes + u64::from(!is_wanted));
        if is_wanted {
            // A sync that did not wait for the one under way would have ended by now.
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(gate);
        let first = std::iter::repeat_with(|| next(&reports))
            .find(|report| report.epoch >= epoch || report.failure.is_some())
            .unwrap();
        assert!(first.epoch < epoch && first.failure.is_some(), "epoch {epoch}, wanted: {is_wanted}: {first:?}");
        next_that_fails(&reports, false);
        assert_eq!(counters(&directory), 1, "all is written anew");
        journal.stop();
    }
}

/// Finishes a base while a sync that will fail is under way.
struct Awaiting(Arc<TroubledDisk>);

impl Companion for Awaiting {
    fn changed(&mut self, _: &mut Vec<u8>) {}

    fn all(&mut self, _: &mut Vec<u8>) {
        eventually("a sync is under way", || self.0.is_losing.load(SeqCst));
    }
}

#[test]
fn no_base_is_finished_beside_a_sync_of_its_file_that_fails() {
    let (directory, memory) = (tempfile::tempdir().unwrap(), store());
    let disk = TroubledDisk::new(&directory);
    let gate = disk.loss.lock().unwrap();
    disk.loses.store(true, SeqCst);
    take(&memory, "a");
    let (journal, reports) = start(&disk, &memory, Box::new(Awaiting(Arc::clone(&disk))));
    eventually("a sync is under way", || disk.is_losing.load(SeqCst));
    // A base that did not wait for the sync would be finished by now.
    std::thread::sleep(Duration::from_millis(100));
    let names = disk.list().unwrap();
    drop(gate);
    assert_eq!(names, ["00000001.fgj.part"]);
    next_that_fails(&reports, true);
    next_that_fails(&reports, false);
    assert_eq!(counters(&directory), 1, "all is written anew");
    journal.stop();
}

/// Panics while a test says so.
struct Panicking(Arc<AtomicBool>);

impl Companion for Panicking {
    fn changed(&mut self, _: &mut Vec<u8>) {
        assert!(!self.0.load(SeqCst), "a panic that this test asked for");
    }

    fn all(&mut self, _: &mut Vec<u8>) {}
}

#[test]
fn a_panic_of_the_writing_thread_is_reported_and_survived() {
    let (directory, memory) = (tempfile::tempdir().unwrap(), store());
    let (disk, panics) = (Arc::new(FileDisk::new(directory.path())), Arc::new(AtomicBool::new(false)));
    let (journal, reports) = start(&disk, &memory, Box::new(Panicking(Arc::clone(&panics))));
    next_that_fails(&reports, false);
    panics.store(true, SeqCst);
    take(&memory, "a");
    let failure = next_that_fails(&reports, true).failure.unwrap();
    assert!(failure.contains("panicked"), "{failure}");
    assert!(journal.status().is_failing() && journal.status().failures() >= 1);
    panics.store(false, SeqCst);
    next_that_fails(&reports, false);
    assert_eq!(counters(&directory), 1, "all is written anew");
    take(&memory, "b");
    panics.store(true, SeqCst);
    journal.stop();
}
