//! The journal at work: a thread that writes, and one that syncs.
//!
//! Rule       A change is written within `flush`. The table is visited in small pieces that are spread over the time between two
//!            flushes, since a server may have one processor: a request waits for a piece, not for a flush. The disk is synced
//!            by another thread, and the next write does not wait for it.
//! Rule       A caller that needs its change on the disk reads the epoch after its change and asks for that epoch: the next flush
//!            begins at once, and the epoch is reported once the flush is synced.
//! Rule       When the disk fails, decisions go on in memory. The journal tries a new generation at once, and then
//!            every second. A panic of one of the threads is treated like a failure of the disk.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use flowgate::{Clock, MemoryStore, Span, Time};

use crate::disk::Disk;
use crate::status::{JournalStatus, SyncStatus};
use crate::sync_turns::did_not_sync;
use crate::writer::{Companion, Writer};

/// The pause between two attempts to use a disk that fails.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A base is written in pieces of this many bytes, one piece in [`BASE_PIECE_TIME`] at most: 100 MB a second.
const BASE_PIECE_BYTES: u64 = 128 << 10;
const BASE_PIECE_TIME: Duration = Duration::from_micros(1250);

/// The time `flush` is divided into five parts. A visit of the table begins every four parts and takes three of them,
/// which leaves one for the base. Changes that were visited are written within one part. A change therefore waits at
/// most four parts for its visit and one to be written.
const PARTS: u64 = 5;
const PARTS_OF_PERIOD: u64 = 4;
const PARTS_OF_VISIT: u64 = 3;

/// The shortest pause between two pieces of a visit of the table.
const REST: Span = Span::from_micros(100);

/// How a journal is written.
pub struct JournalSettings {
    /// How often changes are written.
    pub flush: Duration,
    /// The clock that gives changes their time.
    pub clock: Clock,
    /// Called when an epoch is synced, and when the disk begins to fail or recovers.
    pub report: Box<dyn Fn(SyncStatus) + Send + Sync>,
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    status: JournalStatus,
    /// The epoch to which changes belong now. The next flush ends it.
    epoch: AtomicU64,
    orders: Mutex<Orders>,
    ordered: Condvar,
    sync: Mutex<SyncOrder>,
    sync_ordered: Condvar,
}

/// The orders for the writing thread.
#[derive(Debug, Default)]
struct Orders {
    /// The newest epoch that a caller waits for.
    wanted: Option<u64>,
    stops: bool,
}

/// The order for the syncing thread. A newer order replaces an older one that the thread has not begun.
#[derive(Default)]
struct SyncOrder {
    next: Option<Box<dyn FnOnce() + Send>>,
    stops: bool,
}

impl std::fmt::Debug for SyncOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SyncOrder").field("stops", &self.stops).finish_non_exhaustive()
    }
}

/// The state of the writing thread.
struct Work<D: Disk, M> {
    shared: Arc<Shared>,
    memory: M,
    companion: Box<dyn Companion>,
    writer: Writer<D>,
    flush: Duration,
    clock: Clock,
    reporter: Arc<Reporter>,
}

/// Reports what is synced and whether the disk fails. Its lock keeps the reports of both threads in order.
struct Reporter {
    told: Mutex<SyncStatus>,
    report: Box<dyn Fn(SyncStatus) + Send + Sync>,
}

impl Reporter {
    fn synced(&self, epoch: u64) {
        self.tell(|told| told.epoch = told.epoch.max(epoch));
    }

    /// Reports that the disk fails, or with `None` that everything is written again. A sync that ends in between does
    /// not end the failure.
    fn failure(&self, failure: Option<String>) {
        self.tell(|told| told.failure = failure);
    }

    fn tell(&self, change: impl FnOnce(&mut SyncStatus)) {
        let mut told = lock(&self.told);
        change(&mut told);
        (self.report)(told.clone());
    }
}

impl Journal {
    /// Lets `writer` begin a generation and starts the threads.
    ///
    /// # Errors
    /// When the generation cannot begin, or a thread cannot be started.
    pub fn start<D: Disk, M: AsRef<MemoryStore> + Send + 'static>(
        mut writer: Writer<D>,
        memory: M,
        companion: Box<dyn Companion>,
        settings: JournalSettings,
    ) -> io::Result<Journal> {
        memory.as_ref().follow_changes();
        writer.begin()?;
        // Epoch 0 counts as synced, so changes begin in epoch 1.
        let shared = Arc::new(Shared { epoch: AtomicU64::new(1), ..Shared::default() });
        let JournalSettings { flush, clock, report } = settings;
        shared.status.synced_until.store(clock.monotonic().as_nanos(), Relaxed);
        let reporter = Arc::new(Reporter { told: Mutex::default(), report });
        let mut work = Work { shared: Arc::clone(&shared), memory, companion, writer, flush, clock, reporter };
        work.note();
        let syncing = Arc::clone(&shared);
        let sync = std::thread::Builder::new().name("journal-sync".to_owned()).spawn(move || sync_loop(&syncing))?;
        let write = std::thread::Builder::new().name("journal".to_owned()).spawn(move || work.run())?;
        Ok(Journal { shared, threads: Mutex::new(vec![write, sync]) })
    }

    /// The epoch of the changes that the caller has made: they are on the disk once this epoch is.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.shared.epoch.load(SeqCst)
    }

    /// Asks for an epoch to be synced soon.
    pub fn want(&self, epoch: u64) {
        let mut orders = lock(&self.shared.orders);
        if orders.wanted.is_none_or(|wanted| wanted < epoch) {
            orders.wanted = Some(epoch);
            self.shared.ordered.notify_one();
        }
    }

    /// The counts of this journal, for reports.
    pub fn status(&self) -> &JournalStatus {
        &self.shared.status
    }

    /// Writes and syncs the last changes, and ends the threads.
    pub fn stop(&self) {
        lock(&self.shared.orders).stops = true;
        self.shared.ordered.notify_one();
        for thread in lock(&self.threads).drain(..) {
            // A join cannot fail: the threads catch every panic.
            let _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<D: Disk, M: AsRef<MemoryStore>> Work<D, M> {
    fn run(&mut self) {
        while !self.survives(Self::write_until_stopped) {}
        self.survives(Self::write_last);
    }

    /// True if a piece of work ends without a panic. A panic is treated as a failure of the disk.
    fn survives(&mut self, work: fn(&mut Self)) -> bool {
        // The writer gives up the file and all that it has prepared, so that nothing half done is used.
        let has_panicked = catch_unwind(AssertUnwindSafe(|| work(self))).is_err();
        if has_panicked {
            self.fail(&io::Error::other("the thread that writes the journal panicked"));
        }
        !has_panicked
    }

    fn write_until_stopped(&mut self) {
        let mut next_piece = self.clock.monotonic();
        let is_failing = self.writer.file().is_none();
        let mut next_flush = if is_failing { next_piece + Span::from(RETRY_INTERVAL) } else { next_piece };
        loop {
            let wanted = match self.wait(next_flush) {
                Order::Stop => return,
                Order::Flush(wanted) => wanted,
                Order::Base => {
                    self.write_base();
                    next_piece = self.clock.monotonic() + Span::from(BASE_PIECE_TIME);
                    continue;
                }
            };
            let began = self.clock.monotonic();
            next_flush = began + part(self.flush, PARTS_OF_PERIOD);
            self.heed_failed_sync();
            if self.writer.file().is_none() && !self.recover() {
                next_flush = began + Span::from(RETRY_INTERVAL);
                continue;
            }
            // Changes from now on belong to the next epoch. This flush may already write some of them.
            let epoch = self.shared.epoch.fetch_add(1, SeqCst);
            let flushed = self.flush_in_pieces(began);
            self.shared.status.flushes.fetch_add(1, Relaxed);
            match flushed {
                Err(error) => {
                    self.fail(&error);
                    continue;
                }
                Ok(()) => self.note(),
            }
            self.sync(epoch, began, wanted);
            if self.writer.needs_generation(self.memory.as_ref())
                && let Err(error) = self.writer.begin()
            {
                self.fail(&error);
            }
            // If callers always wait, one flush follows the other, so a piece of the base is written after a flush.
            if wanted && self.writer.writes_base() && self.clock.monotonic() >= next_piece {
                self.write_base();
                next_piece = self.clock.monotonic() + Span::from(BASE_PIECE_TIME);
            }
        }
    }

    /// Writes the changes in pieces. The pieces are spread over the time until the next flush, unless a caller waits.
    fn flush_in_pieces(&mut self, began: Time) -> io::Result<()> {
        let Work { shared, memory, companion, writer, flush, clock, .. } = self;
        let (within, one_part) = (part(*flush, PARTS_OF_VISIT), part(*flush, 1));
        let writes_base = writer.writes_base();
        let mut write_at = began + one_part;
        let mut rest = |visited: usize, shards: usize| {
            let now = clock.monotonic();
            // While a base is being written, it gets the time between flushes.
            let share = if writes_base { 0 } else { within.as_nanos() / shards as u64 * visited as u64 };
            let left = (began + Span::from_nanos(share)).since(now).max(REST);
            let orders = lock(&shared.orders);
            if orders.wanted.is_none() && !orders.stops {
                let wait = shared.ordered.wait_timeout(orders, Duration::from_nanos(left.as_nanos()));
                drop(wait.unwrap_or_else(PoisonError::into_inner));
            }
            let is_due = now >= write_at;
            if is_due {
                write_at = now + one_part;
            }
            is_due
        };
        writer.flush_in_pieces((*memory).as_ref(), &mut **companion, clock.now(), &mut rest)
    }

    /// Writes and syncs the last changes before the thread ends.
    fn write_last(&mut self) {
        // A sync that has not begun is dropped: the file is synced below.
        let mut order = lock(&self.shared.sync);
        (order.next, order.stops) = (None, true);
        drop(order);
        self.shared.sync_ordered.notify_one();
        self.heed_failed_sync();
        let epoch = self.shared.epoch.fetch_add(1, SeqCst);
        let mut last = || {
            if self.writer.file().is_none() {
                self.writer.begin_again()?;
                while !self.writer.write_base(self.memory.as_ref(), &mut *self.companion, u64::MAX >> 1)? {}
            }
            self.writer.stop(self.memory.as_ref(), &mut *self.companion, self.clock.now())
        };
        match last() {
            Ok(()) => {
                self.reporter.failure(None);
                self.reporter.synced(epoch);
            }
            Err(error) => self.fail(&error),
        }
        self.note();
    }

    /// Waits for an order, or until the next flush is due.
    fn wait(&self, next_flush: Time) -> Order {
        let is_failing = self.writer.file().is_none();
        let mut orders = lock(&self.shared.orders);
        loop {
            if orders.stops {
                return Order::Stop;
            }
            let left = next_flush.since(self.clock.monotonic());
            match orders.wanted.take() {
                // An earlier flush has written and synced the epoch that is asked for.
                Some(wanted) if wanted < self.shared.epoch.load(SeqCst) => continue,
                Some(_) if !is_failing => return Order::Flush(true),
                _ if left.is_zero() => return Order::Flush(false),
                _ => {}
            }
            let left = Duration::from_nanos(left.as_nanos());
            if self.writer.writes_base() {
                let pause = left.min(BASE_PIECE_TIME);
                let (held, timeout) =
                    self.shared.ordered.wait_timeout(orders, pause).unwrap_or_else(PoisonError::into_inner);
                orders = held;
                if timeout.timed_out() && pause == BASE_PIECE_TIME {
                    return Order::Base;
                }
            } else {
                orders = self.shared.ordered.wait_timeout(orders, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn write_base(&mut self) {
        match self.writer.write_base(self.memory.as_ref(), &mut *self.companion, BASE_PIECE_BYTES) {
            Ok(_) => self.note(),
            Err(error) => self.fail(&error),
        }
    }

    /// Syncs what was written up to the end of `epoch`: on this thread if a caller waits for it, otherwise on the
    /// syncing thread.
    fn sync(&mut self, epoch: u64, began: Time, is_wanted: bool) {
        let Some(file) = self.writer.file() else { return };
        let (disk, shared, reporter) =
            (Arc::clone(self.writer.disk()), Arc::clone(&self.shared), Arc::clone(&self.reporter));
        let turns = Arc::clone(self.writer.sync_turns());
        let failed_turns = Arc::clone(&turns);
        let sync = move || {
            let synced = turns.sync(&*disk, &file);
            if synced.is_ok() {
                shared.status.syncs.fetch_add(1, Relaxed);
                shared.status.synced_until.fetch_max(began.as_nanos(), Relaxed);
                reporter.synced(epoch);
            }
            synced
        };
        if is_wanted {
            if let Err(error) = sync() {
                self.fail(&error);
            }
            // Gives the processor to the server's threads, which may share it. They send answers and read requests
            // before the next sync begins, so that this sync serves more requests.
            std::thread::yield_now();
            return;
        }
        lock(&self.shared.sync).next = Some(Box::new(move || {
            if !matches!(catch_unwind(AssertUnwindSafe(sync)), Ok(Ok(()))) {
                failed_turns.fail();
            }
        }));
        self.shared.sync_ordered.notify_one();
    }

    /// Gives up the file if the syncing thread has failed to sync it.
    fn heed_failed_sync(&mut self) {
        if self.writer.sync_turns().has_failed() && self.writer.file().is_some() {
            self.fail(&did_not_sync());
        }
    }

    /// Handles a failure of the disk.
    fn fail(&mut self, error: &io::Error) {
        self.writer.give_up();
        let status = &self.shared.status;
        status.failures.fetch_add(1, Relaxed);
        status.is_failing.store(true, Relaxed);
        self.reporter.failure(Some(error.to_string()));
    }

    /// Begins a generation after a failure and writes its base at once. Returns false if that also fails.
    fn recover(&mut self) -> bool {
        let mut begin = || {
            self.writer.begin_again()?;
            while !self.writer.write_base(self.memory.as_ref(), &mut *self.companion, BASE_PIECE_BYTES)? {}
            io::Result::Ok(())
        };
        if let Err(error) = begin() {
            self.fail(&error);
            return false;
        }
        self.shared.status.is_failing.store(false, Relaxed);
        self.reporter.failure(None);
        self.note();
        true
    }

    fn note(&self) {
        let status = &self.shared.status;
        status.written_bytes.store(self.writer.written_bytes(), Relaxed);
        status.file_bytes.store(self.writer.file_bytes(), Relaxed);
        status.generation.store(self.writer.generation(), Relaxed);
    }
}

/// What the writing thread does next.
enum Order {
    /// True if a caller waits for the disk.
    Flush(bool),
    Base,
    Stop,
}

fn sync_loop(shared: &Shared) {
    let mut order = lock(&shared.sync);
    loop {
        match order.next.take() {
            Some(sync) => {
                drop(order);
                sync();
                order = lock(&shared.sync);
            }
            None if order.stops => return,
            None => order = shared.sync_ordered.wait(order).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No thread panics while it holds one of these.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The length of `parts` of the [`PARTS`] of the time between two flushes.
fn part(flush: Duration, parts: u64) -> Span {
    Span::from_nanos(Span::from(flush).as_nanos() / PARTS * parts)
}
