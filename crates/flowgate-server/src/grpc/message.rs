//! A `RateLimitRequest` as it is read from its bytes, which it borrows.
//!
//! Rule       Bounds are checked while the message is read: a message of a megabyte that announces half a million
//!            descriptors costs no memory for them.
//! Rule       Values that are not UTF-8 are escaped, not refused: Envoy lets a request pass on an error, and a client
//!            can send any bytes in a header.

use std::borrow::Cow;

use flowgate_engine::http::escaped_text;
use smallvec::SmallVec;

use super::wire::{Fields, MalformedMessage, Value};

/// The most descriptors of a call.
pub(crate) const MAX_DESCRIPTORS: usize = 128;
/// The most entries of a descriptor.
pub(crate) const MAX_ENTRIES: usize = 256;

/// What a call asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RateLimitRequest<'b> {
    /// The domain of all descriptors.
    pub(crate) domain: Cow<'b, str>,
    /// The descriptors in order.
    pub(crate) descriptors: SmallVec<[Descriptor<'b>; 2]>,
    /// The cost of descriptors without their own.
    pub(crate) hits_addend: u32,
}

/// One descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptor<'b> {
    /// Keys and values.
    pub(crate) entries: SmallVec<[(Cow<'b, str>, Cow<'b, str>); 4]>,
    /// The limit that the caller brings.
    pub(crate) limit: Option<Override>,
    /// The descriptor's own cost.
    pub(crate) hits_addend: Option<u64>,
    /// True if the cost is given back instead of taken.
    pub(crate) is_negative_hits: bool,
}

/// A limit that the caller brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Override {
    /// The number of requests in a unit of time.
    pub(crate) requests_per_unit: u32,
    /// The number of the unit of time.
    pub(crate) unit: u32,
    /// The length of the window in units of time.
    pub(crate) unit_multiplier: Option<u32>,
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    /// The message is not protobuf, or a field has another type.
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    /// The message has no domain.
    #[error("the domain is empty")]
    NoDomain,
    /// The message has no descriptor.
    #[error("there is no descriptor")]
    NoDescriptor,
    /// The message has too many descriptors.
    #[error("there are more than {MAX_DESCRIPTORS} descriptors")]
    ManyDescriptors,
    /// A descriptor has too many entries.
    #[error("a descriptor has more than {MAX_ENTRIES} entries")]
    ManyEntries,
    /// A descriptor has no entry.
    #[error("a descriptor has no entry")]
    NoEntry,
    /// An entry has no key.
    #[error("an entry has an empty key")]
    EmptyKey,
}

impl<'b> RateLimitRequest<'b> {
    /// Reads a message.
    ///
    /// # Errors
    /// When the bytes are not such a message, or it breaks a bound.
    pub(crate) fn read(message: &'b [u8]) -> Result<RateLimitRequest<'b>, MessageError> {
        let mut request = RateLimitRequest::default();
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => request.domain = text(value)?,
                2 if request.descriptors.len() == MAX_DESCRIPTORS => return Err(MessageError::ManyDescriptors),
                2 => request.descriptors.push(Descriptor::read(value.bytes()?)?),
                3 => request.hits_addend = value.number32()?,
                _ => {}
            }
        }
        match request {
            _ if request.domain.is_empty() => Err(MessageError::NoDomain),
            _ if request.descriptors.is_empty() => Err(MessageError::NoDescriptor),
            request => Ok(request),
        }
    }
}

impl<'b> Descriptor<'b> {
    fn read(message: &'b [u8]) -> Result<Descriptor<'b>, MessageError> {
        let mut descriptor = Descriptor::default();
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 if descriptor.entries.len() == MAX_ENTRIES => return Err(MessageError::ManyEntries),
                1 => descriptor.entries.push(entry(value.bytes()?)?),
                // A submessage that is given twice is merged field by field.
                2 => descriptor.limit.get_or_insert_default().add(value.bytes()?)?,
                3 => wrapped(value.bytes()?, descriptor.hits_addend.get_or_insert_default())?,
                4 => descriptor.is_negative_hits = value.number()? != 0,
                _ => {}
            }
        }
        if descriptor.entries.is_empty() { Err(MessageError::NoEntry) } else { Ok(descriptor) }
    }
}

impl Override {
    fn add(&mut self, message: &[u8]) -> Result<(), MessageError> {
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => self.requests_per_unit = value.number32()?,
                2 => self.unit = value.number32()?,
                3 => {
                    let mut multiplier = self.unit_multiplier.map_or(0, u64::from);
                    wrapped(value.bytes()?, &mut multiplier)?;
                    self.unit_multiplier = Some(multiplier as u32);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn entry(message: &[u8]) -> Result<(Cow<'_, str>, Cow<'_, str>), MessageError> {
    let (mut key, mut content) = (Cow::Borrowed(""), Cow::Borrowed(""));
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => key = text(value)?,
            2 => content = text(value)?,
            _ => {}
        }
    }
    if key.is_empty() { Err(MessageError::EmptyKey) } else { Ok((key, content)) }
}

/// Reads a message that wraps a number. The wrapped number is absent if it is zero.
fn wrapped(message: &[u8], into: &mut u64) -> Result<(), MessageError> {
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            *into = value.number()?;
        }
    }
    Ok(())
}

fn text(value: Value<'_>) -> Result<Cow<'_, str>, MessageError> {
    Ok(escaped_text(value.bytes()?))
}

#[cfg(test)]
mod tests {
    use flowgate_testkit::envoy::{self, RateLimitDescriptor, RateLimitOverride, descriptor, request};
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    fn descriptors() -> impl Strategy<Value = RateLimitDescriptor> {
        // Bytes that are not UTF-8 are escaped, and so is U+FFFD.
        let entries = vec(("[a-z]{1,3}", "[^\u{fffd}]{0,3}"), 1..4);
        let limit = option::of((any::<u32>(), 0..8, option::of(any::<u32>())));
        (entries, limit, option::of(any::<u64>()), any::<bool>()).prop_map(|(entries, limit, hits_addend, negative)| {
            let entries: Vec<(&str, &str)> = entries.iter().map(|(key, value)| (&**key, &**value)).collect();
            let limit = limit.map(|(requests_per_unit, unit, unit_multiplier)| RateLimitOverride {
                requests_per_unit,
                unit,
                unit_multiplier,
            });
            RateLimitDescriptor { limit, hits_addend, is_negative_hits: negative, ..descriptor(&entries) }
        })
    }

    /// The same message as prost has it.
    fn as_prost(read: &RateLimitRequest<'_>) -> envoy::RateLimitRequest {
        let descriptors = read.descriptors.iter().map(|read| {
            let entries: Vec<(&str, &str)> = read.entries.iter().map(|(key, value)| (&**key, &**value)).collect();
            let limit = read.limit.map(|limit| RateLimitOverride {
                requests_per_unit: limit.requests_per_unit,
                unit: limit.unit as i32,
                unit_multiplier: limit.unit_multiplier,
            });
            let (hits_addend, is_negative_hits) = (read.hits_addend, read.is_negative_hits);
            RateLimitDescriptor { limit, hits_addend, is_negative_hits, ..descriptor(&entries) }
        });
        let descriptors = descriptors.collect();
        envoy::RateLimitRequest { hits_addend: read.hits_addend, ..request(&read.domain, descriptors) }
    }

    proptest! {
        #[test]
        fn a_message_is_read_as_prost_writes_it(
            descriptors in vec(descriptors(), 1..5),
            domain in "[a-z]{1,5}",
            hits_addend: u32,
        ) {
            let written = envoy::RateLimitRequest { hits_addend, ..request(&domain, descriptors) };
            let bytes = written.encode_to_vec();
            prop_assert_eq!(as_prost(&RateLimitRequest::read(&bytes).unwrap()), written);
        }

        /// Two messages in a row are merged field by field.
        #[test]
        fn messages_in_a_row_are_merged_as_prost_merges_them(
            first in vec(descriptors(), 1..3),
            second in vec(descriptors(), 1..3),
        ) {
            let mut bytes = request("first", first).encode_to_vec();
            bytes.extend(request("second", second).encode_to_vec());
            let merged = envoy::RateLimitRequest::decode(&*bytes).unwrap();
            prop_assert_eq!(as_prost(&RateLimitRequest::read(&bytes).unwrap()), merged);
        }

        /// Bytes of a message that were changed, cut or doubled are read as prost reads them, or refused.
        #[test]
        fn changed_messages_are_read_as_prost_reads_them_or_refused(
            descriptors in vec(descriptors(), 1..4),
            changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0..4), 1..6),
        ) {
            let mut bytes = request("d", descriptors).encode_to_vec();
            for (place, byte, change) in changes {
                let place = place.index(bytes.len() + 1);
                match change {
                    0 => bytes.insert(place, byte),
                    1 if place < bytes.len() => bytes[place] = byte,
                    2 if place < bytes.len() => drop(bytes.remove(place)),
                    _ => bytes.extend_from_within(place..),
                }
            }
            if let Ok(read) = RateLimitRequest::read(&bytes) {
                match envoy::RateLimitRequest::decode(&*bytes) {
                    // The texts are escaped where they have U+FFFD.
                    Ok(decoded) if !format!("{decoded:?}").contains('\u{fffd}') => prop_assert_eq!(as_prost(&read), decoded),
                    Ok(_) => {}
                    Err(error) => prop_assert!(error.to_string().contains("UTF-8"), "{}", error),
                }
            }
        }

        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
            let _ = RateLimitRequest::read(&bytes);
        }
    }

    #[test]
    fn what_breaks_a_bound_is_refused() {
        let one = descriptor(&[("k", "v")]);
        let read = |message: envoy::RateLimitRequest| RateLimitRequest::read(&message.encode_to_vec()).map(|_| ());
        assert_eq!(read(request("", vec![one.clone()])), Err(MessageError::NoDomain));
        assert_eq!(read(request("d", vec![])), Err(MessageError::NoDescriptor));
        assert_eq!(read(request("d", vec![one.clone(); MAX_DESCRIPTORS])), Ok(()));
        assert_eq!(read(request("d", vec![one; MAX_DESCRIPTORS + 1])), Err(MessageError::ManyDescriptors));
        let entries = |number| descriptor(&vec![("k", "v"); number]);
        assert_eq!(read(request("d", vec![entries(MAX_ENTRIES)])), Ok(()));
        assert_eq!(read(request("d", vec![entries(MAX_ENTRIES + 1)])), Err(MessageError::ManyEntries));
        assert_eq!(read(request("d", vec![entries(0)])), Err(MessageError::NoEntry));
        assert_eq!(read(request("d", vec![descriptor(&[("", "v")])])), Err(MessageError::EmptyKey));
    }

    /// A client can put any bytes into a header, and Envoy lets requests pass on an error.
    #[test]
    fn values_that_are_not_utf8_have_names_of_their_own() {
        let value = |value: &[u8]| {
            let mut bytes = b"\x0a\x01d\x12\x08\x0a\x06\x0a\x01k\x12\x01".to_vec();
            bytes.extend_from_slice(value);
            RateLimitRequest::read(&bytes).unwrap().descriptors[0].entries[0].1.to_string()
        };
        assert_eq!(value(b"x"), "x");
        assert_ne!(value(b"\xfe"), value(b"\xff"));
    }
}
