//! The scripts that run in Redis, and the calls of them.

use std::sync::LazyLock;

use smallvec::SmallVec;

/// A script and the name under which Redis keeps it.
#[derive(Debug)]
pub struct Script {
    /// The text, for `EVAL` and `SCRIPT LOAD`.
    pub source: &'static str,
    /// The hexadecimal SHA-1 of the text, for `EVALSHA`.
    pub sha1: LazyLock<String>,
}

/// Makes a script of several files, joined in order.
macro_rules! script {
    ($($file:literal),*) => {
        Script::new(concat!($(include_str!($file)),*), || sha1(concat!($(include_str!($file)),*)))
    };
}

/// Decides limits and bans. A plain take is decided before the rest is even set up.
pub static DECIDE: Script =
    script!("lua/start.lua", "lua/straight.lua", "lua/value.lua", "lua/log.lua", "lua/hits.lua", "lua/decide.lua");

/// Decides several requests, all or nothing.
pub static JOINT: Script = script!("lua/start.lua", "lua/value.lua", "lua/log.lua", "lua/hits.lua", "lua/joint.lua");

/// Answers `CL.THROTTLE`.
pub static THROTTLE: Script = script!("lua/start.lua", "lua/throttle.lua");

/// Rolls back charges.
pub static UNDO: Script = script!("lua/start.lua", "lua/value.lua", "lua/log.lua", "lua/undone.lua", "lua/undo.lua");

/// Forgets counters of a subject.
pub(super) static FORGET: Script = script!("lua/start.lua", "lua/value.lua", "lua/forget.lua");

/// Imposes and lifts bans by hand.
pub static BANS: Script = script!("lua/bans.lua");

impl Script {
    const fn new(source: &'static str, sha1: fn() -> String) -> Script {
        Script { source, sha1: LazyLock::new(sha1) }
    }
}

fn sha1(text: &str) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}

/// The keys and the arguments of a script call. All keys have the same hash tag, or belong to the same server.
#[derive(Clone, Debug)]
pub struct ScriptCall {
    /// Which script.
    pub script: &'static Script,
    pub(super) keys: Parts,
    pub(super) args: Parts,
}

impl ScriptCall {
    pub(super) fn new(script: &'static Script) -> ScriptCall {
        ScriptCall { script, keys: Parts::with_room(USUAL_KEY_BYTES), args: Parts::with_room(USUAL_ARGUMENT_BYTES) }
    }

    /// The keys; at least one.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.keys.iter()
    }

    /// The arguments.
    pub fn args(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.args.iter()
    }
}

/// Several byte strings in one buffer, together below 4 GiB.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    bytes: Vec<u8>,
    /// The usual call has no more parts than fit without an allocation.
    ends: SmallVec<[u32; 8]>,
}

/// Room for the key of a counter, and for the arguments of one limit.
const USUAL_KEY_BYTES: usize = 96;
const USUAL_ARGUMENT_BYTES: usize = 256;

impl Parts {
    /// No byte strings yet, with room for `bytes` bytes.
    fn with_room(bytes: usize) -> Parts {
        Parts { bytes: Vec::with_capacity(bytes), ends: SmallVec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    pub(super) fn push(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
        self.ends.push(self.bytes.len() as u32);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.push(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Appends what `write` writes.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len() as u32);
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.ends.len()).map(|index| self.get(index))
    }
}
