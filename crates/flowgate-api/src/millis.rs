//! Waits and instants on the wire: seconds with at most three decimals.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

/// Milliseconds, written as seconds: `12.25`, `60`, `0.001`. An instant counts from 1970-01-01T00:00:00Z.
///
/// The digits are exact up to 10^15 milliseconds, which are 31,000 years: a double keeps 15 digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

impl Millis {
    fn as_secs(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_secs().fmt(f)
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 % 1000 {
            0 => serializer.serialize_u64(self.0 / 1000),
            _ => serializer.serialize_f64(self.as_secs()),
        }
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Millis, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Millis;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("seconds, from 0 to 10^12")
            }

            fn visit_u64<E: de::Error>(self, secs: u64) -> Result<Millis, E> {
                match secs {
                    0..=1_000_000_000_000 => Ok(Millis(secs * 1000)),
                    _ => Err(E::invalid_value(Unexpected::Unsigned(secs), &self)),
                }
            }

            fn visit_f64<E: de::Error>(self, secs: f64) -> Result<Millis, E> {
                match (0.0..=1e12).contains(&secs) {
                    true => Ok(Millis((secs * 1000.0).round() as u64)),
                    false => Err(E::invalid_value(Unexpected::Float(secs), &self)),
                }
            }
        }
        deserializer.deserialize_f64(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_is_written_and_read() {
        for (millis, expected) in [
            (0, "0"),
            (1, "0.001"),
            (10, "0.01"),
            (1200, "1.2"),
            (60_000, "60"),
            (1_700_000_001_501, "1700000001.501"),
            (u64::MAX / 1_000_000 + 1, "18446744073.71"),
            (999_999_999_999_999, "999999999999.999"),
        ] {
            let millis = Millis(millis);
            assert_eq!(serde_json::to_string(&millis).unwrap(), expected);
            assert_eq!(millis.to_string(), expected);
            assert_eq!(serde_json::from_str::<Millis>(expected).unwrap(), millis);
        }
    }

    #[test]
    fn digits_of_any_instant_are_those_of_its_integer() {
        let last = u64::MAX / 1_000_000;
        // Steps of a prime visit every number of thousandths, from 1970 to the end of the longest span.
        for millis in (0..last).step_by(9_999_991_009) {
            let (secs, rest) = (millis / 1000, millis % 1000);
            let fraction = format!(".{rest:03}");
            let expected = format!("{secs}{}", fraction.trim_end_matches('0').trim_end_matches('.'));
            assert_eq!(serde_json::to_string(&Millis(millis)).unwrap(), expected);
        }
    }

    #[test]
    fn other_values_are_refused() {
        for wrong in ["-1", "-0.5", "1e300", "\"soon\"", "null"] {
            assert!(serde_json::from_str::<Millis>(wrong).is_err(), "{wrong}");
        }
    }
}
