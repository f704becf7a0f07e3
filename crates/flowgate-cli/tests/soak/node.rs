//! Flowgate nodes as processes that can be killed, paused and started again.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use flowgate_testkit::wait::eventually;
use rustix::process::{Pid, Signal, kill_process};

use crate::client::{Address, Field};
use crate::trace::NodeLife;
use crate::world::NODES;

/// The number of the node with a wall clock of its own: the last one.
pub(crate) const WITH_CLOCK: usize = NODES - 1;

/// The library that gives a process a wall clock of its own. The dynamic loader replaces `$LIB`.
const FAKETIME: &str = "/usr/$LIB/faketime/libfaketimeMT.so.1";

/// The file with the offset of that clock.
const CLOCK: &str = "clock";

/// A node. Its process ends with this value.
#[derive(Debug)]
pub(crate) struct Node {
    number: usize,
    life: u32,
    process: Child,
    directory: PathBuf,
    field: Arc<Field>,
    /// How often the test has put the node's wall clock forward.
    steps: u32,
}

impl Node {
    /// Starts the node `number`, whose configuration is `flowgate.toml` in `directory`, and tells the clients where it
    /// is. Nodes are started in the order of their numbers.
    pub(crate) fn start(number: usize, directory: &Path, field: &Arc<Field>) -> Node {
        set_clock(directory, "+0");
        let (process, address) = spawn(number, 0, directory);
        field.nodes.lock().unwrap().push(address);
        Node { number, life: 0, process, directory: directory.to_owned(), field: Arc::clone(field), steps: 0 }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts the node again after a kill.
    pub(crate) fn start_again(&mut self) {
        self.life += 1;
        let (process, address) = spawn(self.number, self.life, &self.directory);
        self.process = process;
        self.field.nodes.lock().unwrap()[self.number] = address;
    }

    /// Pauses the node. Its connections stay open.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// The current process of the node.
    pub(crate) fn life(&self) -> NodeLife {
        NodeLife { node: self.number, life: self.life }
    }

    /// Puts the node's wall clock forward, by an hour more than the last time. Only the last node has a clock of its
    /// own.
    pub(crate) fn put_clock_forward(&mut self) {
        self.steps += 1;
        set_clock(&self.directory, &format!("+{}", self.steps * 3600));
    }

    /// Puts the node's wall clock back by an hour.
    pub(crate) fn put_clock_back(&self) {
        set_clock(&self.directory, "-3600");
    }

    /// Corrects the node's wall clock.
    pub(crate) fn correct_clock(&self) {
        set_clock(&self.directory, "+0");
    }

    /// Whether the node's process has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // This fails if the process has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sets the offset of the clock of the node that has one, in seconds.
fn set_clock(directory: &Path, offset: &str) {
    // The file is renamed into place, because a half-written file would be read as empty.
    let new = directory.join("clock.new");
    std::fs::write(&new, offset).unwrap();
    std::fs::rename(new, directory.join(CLOCK)).unwrap();
}

/// Starts a process, and waits until it has announced its addresses.
fn spawn(number: usize, life: u32, directory: &Path) -> (Child, Address) {
    let log = directory.join(format!("node-{number}-{life}.log"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    if number == WITH_CLOCK {
        command
            .env("LD_PRELOAD", FAKETIME)
            .env("FAKETIME_TIMESTAMP_FILE", directory.join(CLOCK))
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
    let process = command
        .args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--config"])
        .arg(directory.join("flowgate.toml"))
        .stdin(Stdio::null())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let announced = |door: &str, scheme: &str| -> Option<SocketAddr> {
        let text = std::fs::read_to_string(&log).ok()?;
        // An unfinished line may hold half an address.
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let line = lines.find(|line| line.trim_start().starts_with(door))?;
        line.trim_end().split_once(scheme)?.1.parse().ok()
    };
    let [http, resp] = [("http ", "http://"), ("resp ", "redis://")];
    let listens = || announced(http.0, http.1).is_some() && announced(resp.0, resp.1).is_some();
    eventually("a node tells where it listens", listens);
    // If the dynamic loader does not find the library, it goes on without it, and the node runs on the machine's clock.
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(!said.contains("cannot be preloaded"), "libfaketime is missing (on Debian: the package faketime): {said}");
    let address = Address { http: announced(http.0, http.1).unwrap(), resp: announced(resp.0, resp.1).unwrap(), life };
    (process, address)
}
