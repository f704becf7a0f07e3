//! What callers send: a request by its fields, several of them, or a key and a limit.

use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Unexpected, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::{Operation, Text, is_false};

/// The most fields of a request. Each name is compared with all others to find repeats; rules read a few of them.
pub const MAX_FIELDS: usize = 256;

/// The most requests of a batch. One event loop decides a batch in one go, and its other connections wait meanwhile.
pub const MAX_BATCH: usize = 1000;

/// The most requests of an atomic batch: their shards are locked together, or one script decides them.
pub const MAX_ATOMIC_BATCH: usize = 128;

/// The highest cost of a request.
pub const MAX_COST: u64 = 1_000_000_000_000;

/// `POST /v1/take`, `/v1/peek` and so on, and `POST /v1/explain`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecideCall<'a> {
    /// The request.
    #[serde(borrow)]
    pub fields: Fields<'a>,
    /// The cost of the request, in units.
    #[serde(default)]
    pub cost: Cost,
    /// Whether `path` is spelled, and an IPv6 address in `ip` counted, as `/gate` does.
    #[serde(default, skip_serializing_if = "is_false")]
    pub gate: bool,
}

/// One request of `POST /v1/batch`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchItem<'a> {
    /// The operation.
    #[serde(default)]
    pub op: Operation,
    /// As in [`DecideCall`].
    #[serde(borrow)]
    pub fields: Fields<'a>,
    /// As in [`DecideCall`].
    #[serde(default)]
    pub cost: Cost,
    /// As in [`DecideCall`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub gate: bool,
}

/// `POST /v1/limit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitCall<'a> {
    /// The key that is counted.
    #[serde(borrow)]
    pub key: Text<'a>,
    /// The limit, in the limit language: `5/60s`.
    #[serde(borrow)]
    pub limit: Text<'a>,
    /// The cost of the call, in units.
    #[serde(default)]
    pub cost: Cost,
    /// The operation.
    #[serde(default)]
    pub op: Operation,
}

/// Names and values, at most [`MAX_FIELDS`], each name once: an object on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields<'a>(pub Vec<(Text<'a>, Text<'a>)>);

/// The cost of a request, in units: at most [`MAX_COST`], 1 unless the caller gives another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Cost(pub u64);

impl Default for Cost {
    fn default() -> Cost {
        Cost(1)
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Fields<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(fields: I) -> Fields<'a> {
        Fields(fields.into_iter().map(|(name, value)| (Text(name.into()), Text(value.into()))).collect())
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of names and texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields: Vec<(Text<'de>, Text<'de>)> = Vec::with_capacity(8);
                while let Some(name) = map.next_key::<Text<'de>>()? {
                    let value = map.next_value()?;
                    if fields.iter().any(|(other, _)| *other == name) {
                        return Err(de::Error::custom(format_args!("`{}` is given twice", name.0)));
                    }
                    if fields.len() == MAX_FIELDS {
                        return Err(de::Error::custom(format_args!("more than {MAX_FIELDS} fields")));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Cost;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 0 to {MAX_COST}")
            }

            fn visit_u64<E: de::Error>(self, cost: u64) -> Result<Cost, E> {
                if cost > MAX_COST {
                    return Err(E::invalid_value(Unexpected::Unsigned(cost), &self));
                }
                Ok(Cost(cost))
            }

            fn visit_i64<E: de::Error>(self, cost: i64) -> Result<Cost, E> {
                Err(E::invalid_value(Unexpected::Signed(cost), &self))
            }
        }
        deserializer.deserialize_u64(Read)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    #[test]
    fn texts_are_borrowed_unless_they_have_escapes() {
        let Fields(fields) = serde_json::from_str(r#"{"a":"plain","b":"\u00e9"}"#).unwrap();
        assert!(matches!(fields[0].1, Text(Cow::Borrowed("plain"))));
        assert!(matches!(&fields[1].1, Text(Cow::Owned(text)) if text == "\u{e9}"));
    }

    #[test]
    fn calls_are_written_as_they_are_read() {
        for call in [r#"{"fields":{"user":"4\"2","act":""},"cost":3}"#, r#"{"fields":{},"cost":1,"gate":true}"#] {
            let read: DecideCall<'_> = serde_json::from_str(call).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), call);
        }
        let item: BatchItem<'_> = serde_json::from_str(r#"{"op":"peek","fields":{"user":"42"}}"#).unwrap();
        assert_eq!((item.op, item.cost, item.gate), (Operation::Peek, Cost(1), false));
        let call = r#"{"key":"user:42","limit":"5/60s","cost":1,"op":"take"}"#;
        let read: LimitCall<'_> = serde_json::from_str(call).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), call);
    }

    #[test]
    fn unknown_members_are_refused() {
        assert!(serde_json::from_str::<DecideCall<'_>>(r#"{"fields":{},"costs":1}"#).is_err());
    }
}
