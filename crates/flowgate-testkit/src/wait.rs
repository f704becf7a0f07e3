//! Waits for another process or thread.

use std::net::{SocketAddr, TcpStream};
use std::process::Child;
use std::time::{Duration, Instant};

/// Much longer than any step of a test takes, so that a test that hangs fails.
pub const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// The time between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until a condition holds.
///
/// # Panics
///
/// If it does not hold within [`HANG_TIMEOUT`].
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    eventually_some(what, || holds().then_some(()));
}

/// Waits until there is a value.
///
/// # Panics
///
/// If there is none within [`HANG_TIMEOUT`].
#[track_caller]
pub fn eventually_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(started.elapsed() < HANG_TIMEOUT, "not within {HANG_TIMEOUT:?}: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until a process accepts connections on an address.
///
/// # Panics
///
/// If the process ends, or does not listen within [`HANG_TIMEOUT`].
#[track_caller]
pub fn until_listening(process: &mut Child, address: SocketAddr) {
    eventually_some("the server listens", || {
        assert!(process.try_wait().unwrap().is_none(), "the server has ended");
        TcpStream::connect(address).ok()
    });
}
