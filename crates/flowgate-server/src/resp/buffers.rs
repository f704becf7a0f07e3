//! Buffers that the connections of an event loop share: only a connection with bytes in it holds one.
//!
//! Ten thousand idle clients thus cost no buffers, and the busy ones work in memory that is warm.

use std::cell::RefCell;

use super::yield_once;

/// How much is read at once.
pub(super) const READ_BYTES: usize = 16 * 1024;

/// A buffer that grew beyond this is given back to the system.
const MAX_SPARE_BYTES: usize = 4 * READ_BYTES;

/// What holds no more than this while its connection waits is moved to memory of its own size, so that a client that
/// has sent half a command does not hold a chunk.
const MAX_SMALL_BYTES: usize = READ_BYTES / 4;

/// As many are kept as a loop uses at a time: for those who were heard and wait for their answer, for one answer at a
/// time, and for some slow clients.
const MAX_SPARE_BUFFERS: usize = yield_once::MAX_YIELDED + 8;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Sees to it that `buffer` has room for a chunk.
#[inline]
pub(super) fn lend(buffer: &mut Vec<u8>) {
    if buffer.capacity() < READ_BYTES {
        let small = std::mem::replace(buffer, SPARE.with_borrow_mut(Vec::pop).unwrap_or_default());
        buffer.extend_from_slice(&small);
    }
    buffer.reserve(READ_BYTES);
}

/// Takes `buffer` back, but for what is in it.
#[inline]
pub(super) fn put_down(buffer: &mut Vec<u8>) {
    if !buffer.is_empty() && buffer.len() <= MAX_SMALL_BYTES && buffer.capacity() >= READ_BYTES {
        let small = buffer.as_slice().to_vec();
        buffer.clear();
        give_back(buffer);
        *buffer = small;
    }
    give_back(buffer);
}

/// Takes `buffer` back if it is empty.
#[inline]
pub(super) fn give_back(buffer: &mut Vec<u8>) {
    if !buffer.is_empty() || buffer.capacity() == 0 {
        return;
    }
    let buffer = std::mem::take(buffer);
    if buffer.capacity() <= MAX_SPARE_BYTES {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < MAX_SPARE_BUFFERS {
                spare.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_buffer_goes_round() {
        let mut first = Vec::new();
        lend(&mut first);
        assert!(first.capacity() >= READ_BYTES);
        first.push(1);
        give_back(&mut first);
        assert_eq!(first, [1], "what holds something stays");
        first.clear();
        let place = first.as_ptr();
        give_back(&mut first);
        assert_eq!(first.capacity(), 0);
        let mut second = Vec::new();
        lend(&mut second);
        assert_eq!(second.as_ptr(), place);
    }

    #[test]
    fn what_little_is_in_a_buffer_gets_memory_of_its_size() {
        let mut buffer = Vec::new();
        lend(&mut buffer);
        buffer.extend_from_slice(b"half a comm");
        put_down(&mut buffer);
        assert_eq!((buffer.as_slice(), buffer.capacity()), (&b"half a comm"[..], 11));
        lend(&mut buffer);
        assert!(buffer == b"half a comm" && buffer.capacity() >= READ_BYTES);
        buffer.clear();
        put_down(&mut buffer);
        assert_eq!(buffer.capacity(), 0);
    }

    #[test]
    fn a_large_buffer_goes_back_to_the_system() {
        let mut large = Vec::with_capacity(MAX_SPARE_BYTES + 1);
        give_back(&mut large);
        assert_eq!(large.capacity(), 0);
        lend(&mut large);
        assert!(large.capacity() <= MAX_SPARE_BYTES);
    }
}
