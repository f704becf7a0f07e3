//! SipHash-1-3 with 128 bits of output.
//!
//! Every decision hashes its key. All of it is inlined, so that the state stays in registers: the hasher of `siphasher`
//! keeps it in memory and costs half as much again for a key of 16 bytes. Tests compare the two.

/// The hash of `bytes` under a key of two words.
#[inline]
pub(super) fn sip_hash(key: [u64; 2], bytes: &[u8]) -> [u64; 2] {
    let mut hasher = SipHasher::new(key);
    hasher.push(bytes);
    hasher.finish()
}

/// A hash of the bytes that have been pushed so far. A copy of it is a prefix that several hashes share.
#[derive(Clone, Copy)]
pub(super) struct SipHasher {
    state: [u64; 4],
    /// The last bytes, fewer than eight, which do not fill a word yet: the low bytes of this word.
    rest: u64,
    /// The number of all bytes so far.
    length: u64,
}

impl SipHasher {
    #[inline(always)]
    pub(super) fn new([k0, k1]: [u64; 2]) -> SipHasher {
        let state = [
            k0 ^ 0x736f_6d65_7073_6575,
            // The algorithm of 64 bits of output has 0x6d for the last byte.
            k1 ^ 0x646f_7261_6e64_6f83,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        SipHasher { state, rest: 0, length: 0 }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (words, tail) = bytes.as_chunks();
        for word in words {
            self.push_word(u64::from_le_bytes(*word));
        }
        let (word, taken) = (last_bytes(bytes, tail), self.length % 8);
        self.length += tail.len() as u64;
        if taken + tail.len() as u64 >= 8 {
            self.absorb(word, taken);
        } else {
            self.rest |= word << (8 * taken);
        }
    }

    /// Pushes eight bytes.
    #[inline(always)]
    pub(super) fn push_word(&mut self, word: u64) {
        self.absorb(word, self.length % 8);
        self.length += 8;
    }

    /// Absorbs the rest of `taken` bytes with the first bytes of `word`, whose other bytes become the rest.
    #[inline(always)]
    fn absorb(&mut self, word: u64, taken: u64) {
        absorb(&mut self.state, self.rest | word << (8 * taken));
        // The shift has two steps, because a word cannot be shifted by all of its 64 bits.
        self.rest = word >> (8 * (7 - taken)) >> 8;
    }

    #[inline(always)]
    pub(super) fn finish(self) -> [u64; 2] {
        let mut state = self.state;
        absorb(&mut state, self.length << 56 | self.rest);
        state[2] ^= 0xee;
        let first = squeeze(&mut state);
        state[1] ^= 0xdd;
        [first, squeeze(&mut state)]
    }
}

/// The bytes of `tail`, the last of `bytes` and fewer than eight, as the low bytes of a word.
#[inline(always)]
fn last_bytes(bytes: &[u8], tail: &[u8]) -> u64 {
    match bytes.last_chunk() {
        _ if tail.is_empty() => 0,
        // One load instead of a loop: the last eight bytes, without those that a word before has taken.
        Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * tail.len()),
        None => tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[inline(always)]
fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    round(state);
    state[0] ^= word;
}

#[inline(always)]
fn squeeze(state: &mut [u64; 4]) -> u64 {
    (0..3).for_each(|_| round(state));
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

#[inline(always)]
fn round([v0, v1, v2, v3]: &mut [u64; 4]) {
    *v0 = v0.wrapping_add(*v1);
    *v2 = v2.wrapping_add(*v3);
    *v1 = v1.rotate_left(13) ^ *v0;
    *v3 = v3.rotate_left(16) ^ *v2;
    *v0 = v0.rotate_left(32).wrapping_add(*v3);
    *v2 = v2.wrapping_add(*v1);
    *v1 = v1.rotate_left(17) ^ *v2;
    *v3 = v3.rotate_left(21) ^ *v0;
    *v2 = v2.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use siphasher::sip128::SipHasher13;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_hash_of_the_reference(
            key: [u64; 2], bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(any::<u8>(), 250..270)]
        ) {
            let expected = SipHasher13::new_with_keys(key[0], key[1]).hash(&bytes);
            prop_assert_eq!(sip_hash(key, &bytes), [expected.h1, expected.h2]);
        }

        #[test]
        fn pieces_have_the_hash_of_the_whole(
            key: [u64; 2], pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..8)
        ) {
            let mut hasher = SipHasher::new(key);
            for piece in &pieces {
                match piece.as_slice().try_into() {
                    Ok(word) => hasher.push_word(u64::from_le_bytes(word)),
                    Err(_) => hasher.push(piece),
                }
            }
            prop_assert_eq!(hasher.finish(), sip_hash(key, &pieces.concat()));
        }
    }
}
