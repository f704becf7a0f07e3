//! A block: a header with a checksum, then records. The checksum shows whether the block is whole.

use flowgate::Time;

/// The last byte is the version of the format: a reader of another version finds no blocks.
const MAGIC: [u8; 4] = *b"FGJ1";

/// Blocks begin at multiples of this number of bytes, so that a reader finds the next block after a damaged one.
pub(crate) const ALIGNMENT: usize = 4 << 10;

/// The largest size of a block in bytes, including its header.
pub(crate) const MAX_BLOCK_BYTES: usize = 64 << 10;

/// The checksum covers the bytes of a block from this one on: everything except the magic and the checksum.
const CHECKED_FROM: usize = 8;
pub(crate) const HEADER_BYTES: usize = 48;

/// The largest size in bytes of the records of a block.
pub(crate) const MAX_RECORD_BYTES: usize = MAX_BLOCK_BYTES - HEADER_BYTES;

/// The lowest bit of the flags is set in the last block of a process that stopped cleanly. The higher bits hold a
/// number plus one: how many of the blocks before this one may not be synced. If the higher bits are 0, the number is
/// not known.
const STOPPED_BIT: u32 = 1;
const UNSYNCED_SHIFT: u32 = 1;

/// The header of a block, without magic and check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// See [`flowgate::Seed::fingerprint`].
    pub(crate) fingerprint: u64,
    pub(crate) generation: u64,
    /// The number of the block in its file, from 0.
    pub(crate) sequence: u64,
    /// The start of the flush that wrote the block. For a block of a base: the start of the latest flush before it.
    pub(crate) written_at: Time,
    /// The length of its records in bytes.
    pub(crate) length: u32,
    /// Whether the block is the last one of a process that stopped cleanly.
    pub(crate) stopped: bool,
    /// The number of blocks at the start of the file that were synced before this block was written; `None`: not known.
    pub(crate) synced: Option<u64>,
}

impl Header {
    /// Appends a block.
    pub(crate) fn write(&self, records: &[u8], out: &mut Vec<u8>) {
        debug_assert!(records.len() == self.length as usize && records.len() <= MAX_RECORD_BYTES);
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 4]);
        for word in [self.fingerprint, self.generation, self.sequence, self.written_at.as_nanos()] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.flags().to_le_bytes());
        out.extend_from_slice(records);
        let check = crc32fast::hash(&out[start + CHECKED_FROM..]);
        out[start + 4..start + CHECKED_FROM].copy_from_slice(&check.to_le_bytes());
        out.resize(start + self.padded(), 0);
    }

    /// The header that `bytes` begin with; `None` if they do not begin with one. It may be damaged: [`Header::records`]
    /// checks that.
    pub(crate) fn read(bytes: &[u8]) -> Option<Header> {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| header[at + index]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| header[at + index]));
        let length = half(40);
        let is_one = header.starts_with(&MAGIC) && length as usize <= MAX_RECORD_BYTES;
        let (sequence, flags) = (word(24), half(44));
        let unsynced = (flags >> UNSYNCED_SHIFT).checked_sub(1);
        is_one.then(|| Header {
            fingerprint: word(8),
            generation: word(16),
            sequence,
            written_at: Time::from_nanos(word(32)),
            length,
            stopped: flags & STOPPED_BIT != 0,
            synced: unsynced.map(|unsynced| sequence.saturating_sub(u64::from(unsynced))),
        })
    }

    fn flags(&self) -> u32 {
        let unsynced = self.synced.and_then(|synced| u32::try_from(self.sequence.saturating_sub(synced) + 1).ok());
        // A number above two billion does not fit and is written as "not known".
        let unsynced = unsynced.filter(|unsynced| *unsynced <= u32::MAX >> UNSYNCED_SHIFT).unwrap_or(0);
        unsynced << UNSYNCED_SHIFT | if self.stopped { STOPPED_BIT } else { 0 }
    }

    /// The records after this header, which `bytes` begin with; `None` if the checksum differs or bytes are missing.
    pub(crate) fn records<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let block = bytes.get(..HEADER_BYTES + self.length as usize)?;
        let check = crc32fast::hash(&block[CHECKED_FROM..]);
        (block[4..CHECKED_FROM] == check.to_le_bytes()).then(|| &block[HEADER_BYTES..])
    }

    /// The length of the block in bytes, including the zeros up to the next multiple of [`ALIGNMENT`].
    pub(crate) fn padded(&self) -> usize {
        (HEADER_BYTES + self.length as usize).next_multiple_of(ALIGNMENT)
    }
}
