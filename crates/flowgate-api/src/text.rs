//! A text that a caller sends.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A text, borrowed unless it has escapes.
///
/// A number or a boolean is refused with a hint to quote it: 1, 1.0 and "1" would be one subject here and three
/// elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Text<'de>, E> {
                Err(unquoted(number))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Text<'de>, E> {
                Err(unquoted(number))
            }

            fn visit_f64<E: de::Error>(self, _: f64) -> Result<Text<'de>, E> {
                // The double may have lost digits that the caller wrote, so the hint does not repeat it.
                Err(E::custom("expected a text, found a number: write it in quotes"))
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Text<'de>, E> {
                Err(unquoted(value))
            }
        }
        // `deserialize_str` would refuse other values before the visitor can give its hint.
        deserializer.deserialize_any(Read)
    }
}

fn unquoted<E: de::Error>(found: impl fmt::Display) -> E {
    E::custom(format_args!("expected a text, found {found}: write \"{found}\""))
}
