//! Buffers that the connections of an event loop share: only a connection with bytes to keep holds one.
//!
//! Ten thousand idle clients thus cost no buffers, and busy clients use memory that is in the processor's cache.

use std::cell::RefCell;

use super::yield_once;

/// The bytes of one read.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// The most bytes of a buffer that is kept. A larger one goes back to the system.
const MAX_SPARE_BYTES: usize = 4 * READ_BYTES;

/// Up to this many bytes of a waiting connection move to memory of their own size, so that a client with half a
/// command does not hold a whole buffer.
const MAX_SMALL_BYTES: usize = READ_BYTES / 4;

/// The number of buffers that a loop uses at a time: those of connections that have been read and wait for their
/// answer, one for an answer, and some for slow clients.
const MAX_SPARE_BUFFERS: usize = yield_once::MAX_YIELDED + 8;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for one read in `buffer`.
#[inline]
pub(crate) fn lend(buffer: &mut Vec<u8>) {
    if buffer.capacity() < READ_BYTES {
        let small = std::mem::replace(buffer, SPARE.with_borrow_mut(Vec::pop).unwrap_or_default());
        if !small.is_empty() {
            buffer.extend_from_slice(&small);
        }
    }
    buffer.reserve(READ_BYTES);
}

/// Takes `buffer` back and leaves its bytes in memory of their own size.
#[inline]
pub(crate) fn put_down(buffer: &mut Vec<u8>) {
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
pub(crate) fn give_back(buffer: &mut Vec<u8>) {
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
