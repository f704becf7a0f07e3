//! Flowgate nodes as processes that can be killed, paused and started again.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};

use crate::client::{Address, Field};
use crate::server::eventually;

/// A node. Its process ends with this.
#[derive(Debug)]
pub(crate) struct Node {
    number: usize,
    life: u32,
    process: Child,
    directory: PathBuf,
    field: Arc<Field>,
}

impl Node {
    /// Starts the node `number`, whose configuration is `flowgate.toml` in `directory`, and tells the clients where it is.
    /// Nodes are started in the order of their numbers.
    pub(crate) fn start(number: usize, directory: &Path, field: &Arc<Field>) -> Node {
        let (process, address) = spawn(number, 0, directory);
        field.nodes.lock().unwrap().push(address);
        Node { number, life: 0, process, directory: directory.to_owned(), field: Arc::clone(field) }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again after a kill.
    pub(crate) fn start_again(&mut self) {
        self.life += 1;
        let (process, address) = spawn(self.number, self.life, &self.directory);
        self.process = process;
        self.field.nodes.lock().unwrap()[self.number] = address;
    }

    /// Stops it where it is; its connections stay open.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Whether its process has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Fails when it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a process and waits until it has told where it listens.
fn spawn(number: usize, life: u32, directory: &Path) -> (Child, Address) {
    let log = directory.join(format!("node-{number}-{life}.log"));
    let process = Command::new(env!("CARGO_BIN_EXE_flowgate"))
        .args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--config"])
        .arg(directory.join("flowgate.toml"))
        .stdin(Stdio::null())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let announced = |door: &str, scheme: &str| -> Option<SocketAddr> {
        let text = std::fs::read_to_string(&log).ok()?;
        // A line that is not finished may have half an address.
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let line = lines.find(|line| line.trim_start().starts_with(door))?;
        line.trim_end().split_once(scheme)?.1.parse().ok()
    };
    let [http, resp] = [("http ", "http://"), ("resp ", "redis://")];
    let listens = || announced(http.0, http.1).is_some() && announced(resp.0, resp.1).is_some();
    eventually("a node tells where it listens", listens);
    let address = Address { http: announced(http.0, http.1).unwrap(), resp: announced(resp.0, resp.1).unwrap(), life };
    (process, address)
}
