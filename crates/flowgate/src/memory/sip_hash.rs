//! SipHash-1-3 with 128 bits of output, of bytes that are all there.
//!
//! Every decision hashes its key. A hasher that takes bytes piece by piece, as the one of `siphasher` does, keeps its
//! state in memory and costs half as much again for a key of 16 bytes. Tests compare the two.

/// The hash of `bytes` under a key of two words.
#[inline]
pub(super) fn sip_hash([k0, k1]: [u64; 2], bytes: &[u8]) -> [u64; 2] {
    let mut state = [
        k0 ^ 0x736f_6d65_7073_6575,
        // The algorithm of 64 bits of output has 0x6d for the last byte.
        k1 ^ 0x646f_7261_6e64_6f83,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let (words, tail) = bytes.as_chunks();
    for word in words {
        absorb(&mut state, u64::from_le_bytes(*word));
    }
    absorb(&mut state, (bytes.len() as u64) << 56 | last_bytes(bytes, tail));
    state[2] ^= 0xee;
    let first = squeeze(&mut state);
    state[1] ^= 0xdd;
    [first, squeeze(&mut state)]
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
    }
}
