//! The wire format of protobuf: fields in, fields out, without a copy.
//!
//! Rule       A length is a bound to check, never an allocation. Groups, which proto3 does not have, are malformed.

/// Bytes that are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message is malformed")]
pub(crate) struct MalformedMessage;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
    /// Four or eight bytes. The messages here have no such field.
    Fixed,
}

/// The fields of a message, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    pub(crate) fn new(message: &'b [u8]) -> Fields<'b> {
        Fields { rest: message }
    }

    /// The number and the value of the next field; `None` at the end of the message.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Value<'b>)>, MalformedMessage> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = u32::try_from(self.varint()?).map_err(|_| MalformedMessage)?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.bytes(8).map(|_| Value::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| MalformedMessage)?;
                Value::Bytes(self.bytes(length)?)
            }
            5 => self.bytes(4).map(|_| Value::Fixed)?,
            _ => return Err(MalformedMessage),
        };
        if key < 8 { Err(MalformedMessage) } else { Ok(Some((key >> 3, value))) }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, MalformedMessage> {
        let mut number = 0;
        for (index, &byte) in self.rest.iter().take(10).enumerate() {
            // The tenth byte has one bit left.
            if index == 9 && byte > 1 {
                return Err(MalformedMessage);
            }
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(number);
            }
        }
        Err(MalformedMessage)
    }

    #[inline]
    fn bytes(&mut self, length: usize) -> Result<&'b [u8], MalformedMessage> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(MalformedMessage)?;
        self.rest = rest;
        Ok(bytes)
    }
}

impl<'b> Value<'b> {
    #[inline]
    pub(crate) fn number(self) -> Result<u64, MalformedMessage> {
        if let Value::Number(number) = self { Ok(number) } else { Err(MalformedMessage) }
    }

    /// A `uint32` or an enum: the upper half of a larger number is ignored, as protobuf says.
    #[inline]
    pub(crate) fn number32(self) -> Result<u32, MalformedMessage> {
        Ok(self.number()? as u32)
    }

    #[inline]
    pub(crate) fn bytes(self) -> Result<&'b [u8], MalformedMessage> {
        if let Value::Bytes(bytes) = self { Ok(bytes) } else { Err(MalformedMessage) }
    }
}

/// Appends a number. Zero is the default of a field, so it is left out.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    if number > 0 {
        put_varint(out, u64::from(field << 3));
        put_varint(out, number);
    }
}

/// Appends bytes or a text; an empty one is left out.
#[inline]
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_varint(out, u64::from(field << 3 | 2));
        put_varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}

/// Appends a `double`, also a zero.
pub(super) fn put_double(out: &mut Vec<u8>, field: u32, number: f64) {
    put_varint(out, u64::from(field << 3 | 1));
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends the message that `write` writes, also an empty one.
#[inline]
pub(super) fn put_message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    put_varint(out, u64::from(field << 3 | 2));
    let start = out.len();
    // Nearly every message here is shorter than 128 bytes, whose length is one byte.
    out.push(0);
    write(out);
    let length = out.len() - start - 1;
    if length < 0x80 {
        out[start] = length as u8;
    } else {
        let message = out.split_off(start + 1);
        out.truncate(start);
        put_varint(out, length as u64);
        out.extend_from_slice(&message);
    }
}

#[inline]
pub(super) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_field_is_read_as_it_was_written() {
        let mut out = Vec::new();
        put_number(&mut out, 1, 300);
        put_number(&mut out, 2, 0);
        put_bytes(&mut out, 3, b"text");
        put_message(&mut out, 4, |inner| put_bytes(inner, 1, &[7; 200]));
        put_double(&mut out, 5, 0.0);
        let mut fields = Fields::new(&out);
        assert_eq!(fields.next(), Ok(Some((1, Value::Number(300)))));
        assert_eq!(fields.next(), Ok(Some((3, Value::Bytes(b"text")))));
        let Ok(Some((4, Value::Bytes(inner)))) = fields.next() else { panic!("no message") };
        assert_eq!(Fields::new(inner).next(), Ok(Some((1, Value::Bytes(&[7; 200])))));
        assert_eq!(fields.next(), Ok(Some((5, Value::Fixed))));
        assert_eq!(fields.next(), Ok(None));
    }

    #[test]
    fn malformed_bytes_are_an_error() {
        for bytes in [
            &b"\x08"[..],                                    // no value
            b"\x0a\x05text",                                 // too short
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", // a length beyond all
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", // more than 64 bits
            b"\x0b\x0c",                                     // a group
            b"\x00\x00",                                     // field 0
            b"\x09\x00\x00",                                 // half a fixed number
            b"\xf8\xff\xff\xff\xff\x01\x00",                 // a key of more than 32 bits
        ] {
            let mut fields = Fields::new(bytes);
            let last = loop {
                match fields.next() {
                    Ok(Some(_)) => {}
                    end => break end,
                }
            };
            assert_eq!(last, Err(MalformedMessage), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn numbers_of_any_size(number: u64) {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            let mut fields = Fields::new(&out);
            prop_assert_eq!(fields.varint(), Ok(number));
            prop_assert!(fields.rest.is_empty());
        }
    }
}
