//! What bodies consist of: fields, costs and operations, checked while they are read.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use flowgate::MAX_COUNT;
use flowgate_engine::{ClientAddresses, PathSpelling, Request};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use crate::service::Operation;

/// No rule reads that many; a list of names that grows without end would be compared again and again.
const MAX_FIELDS: usize = 256;

/// A text, borrowed where it holds no escapes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text<'b>(pub(crate) Cow<'b, str>);

/// Names and values; no name twice.
#[derive(Debug)]
pub(crate) struct Fields<'b> {
    values: Vec<(Text<'b>, Text<'b>)>,
    /// By what `ip` is counted, where that is not its value.
    network: Option<String>,
}

const ADDRESS: &str = "ip";
const PATH: &str = "path";

/// What a request costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost(pub(crate) u64);

impl Default for Cost {
    fn default() -> Cost {
        Cost(1)
    }
}

impl Fields<'_> {
    /// The request that they make.
    pub(crate) fn request(&self, cost: Cost) -> Request<'_> {
        let fields = self.values.iter().map(|(name, value)| (&*name.0, &*value.0));
        let request = fields.collect::<Request<'_>>().cost(cost.0);
        match &self.network {
            Some(network) => request.counted_as(ADDRESS, network),
            None => request,
        }
    }

    /// Makes of `path` and of an address in `ip` what the gate makes of a client's: one spelling, and an IPv6 address
    /// counted by its network.
    pub(crate) fn as_at_the_gate(&mut self, addresses: &ClientAddresses, spelling: PathSpelling) {
        if let Some((_, path)) = self.values.iter_mut().find(|(name, _)| name.0 == PATH) {
            *path = Text(Cow::Owned(spelling.spell(&*path.0).into_owned()));
        }
        let Some((_, value)) = self.values.iter_mut().find(|(name, _)| name.0 == ADDRESS) else { return };
        let Ok(address) = value.0.parse::<IpAddr>() else { return };
        let (address, counted) = (address.to_canonical(), addresses.counted(address));
        *value = Text(Cow::Owned(address.to_string()));
        self.network = (counted != address).then(|| counted.to_string());
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for Text<'b> {
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
                Err(in_quotes(number))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Text<'de>, E> {
                Err(in_quotes(number))
            }

            fn visit_f64<E: de::Error>(self, _: f64) -> Result<Text<'de>, E> {
                // Digits may have been lost on the way here, and with them the subject.
                Err(E::custom("expected a text, found a number: write it in quotes"))
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Text<'de>, E> {
                Err(in_quotes(value))
            }
        }
        // Whatever it is: what is no text is answered by how to write it as one.
        deserializer.deserialize_any(Read)
    }
}

/// What is no text is not made one: 1, 1.0 and "1" would be one subject here and three elsewhere.
fn in_quotes<E: de::Error>(found: impl fmt::Display) -> E {
    E::custom(format_args!("expected a text, found {found}: write \"{found}\""))
}

impl<'de: 'b, 'b> Deserialize<'de> for Fields<'b> {
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
                Ok(Fields { values: fields, network: None })
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
                write!(f, "a whole number from 0 to {MAX_COUNT}")
            }

            fn visit_u64<E: de::Error>(self, cost: u64) -> Result<Cost, E> {
                if cost > MAX_COUNT {
                    return Err(E::invalid_value(de::Unexpected::Unsigned(cost), &self));
                }
                Ok(Cost(cost))
            }

            fn visit_i64<E: de::Error>(self, cost: i64) -> Result<Cost, E> {
                Err(E::invalid_value(de::Unexpected::Signed(cost), &self))
            }
        }
        deserializer.deserialize_u64(Read)
    }
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const OPERATIONS: &[&str] = &["take", "peek", "record", "refund", "reset"];
        let word = Text::deserialize(deserializer)?;
        Ok(match &*word.0 {
            "take" => Operation::Take,
            "peek" => Operation::Peek,
            "record" => Operation::Record,
            "refund" => Operation::Refund,
            "reset" => Operation::Reset,
            other => return Err(de::Error::unknown_variant(other, OPERATIONS)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::body::parse;

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Body<'b> {
        #[serde(borrow)]
        fields: Fields<'b>,
        #[serde(default)]
        cost: Cost,
    }

    #[track_caller]
    fn mistake(body: &str) -> String {
        String::from_utf8(body_of(parse::<Body<'_>>(body.as_bytes()).unwrap_err())).unwrap()
    }

    fn body_of(error: crate::http::error::Error) -> Vec<u8> {
        use http_body_util::BodyExt;
        let reply = error.reply().into_body();
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(async { reply.collect().await.unwrap().to_bytes().to_vec() })
    }

    #[test]
    fn texts_are_borrowed_unless_they_hold_escapes() {
        let fields: Fields<'_> = parse(br#"{"a":"plain","b":"\u00e9"}"#).unwrap();
        assert!(matches!(fields.values[0].1, Text(Cow::Borrowed("plain"))));
        assert!(matches!(&fields.values[1].1, Text(Cow::Owned(text)) if text == "\u{e9}"));
        let request = fields.request(Cost(3));
        assert_eq!((request.get("b"), request.units()), (Some("\u{e9}"), 3));
    }

    #[test]
    fn a_mistake_names_its_field() {
        for (body, field) in [
            (r#"{"fields":{"user":42}}"#, "fields.user"),
            (r#"{"fields":{"user":null}}"#, "fields.user"),
            (r#"{"fields":{},"cost":-1}"#, "cost"),
            (r#"{"fields":{},"cost":1.5}"#, "cost"),
            (r#"{"fields":{},"cost":"1"}"#, "cost"),
            (r#"{"fields":{},"cost":1000000000001}"#, "cost"),
            (r#"{"fields":{},"cost":99999999999999999999}"#, "cost"),
            (r#"{"fields":[]}"#, "fields"),
            (r#"{"fields":{"a":"1","a":"2"}}"#, "fields"),
            (r#"{"fields":{},"costs":1}"#, "costs"),
        ] {
            let mistake = mistake(body);
            assert!(mistake.ends_with(&format!(r#","field":"{field}"}}"#)), "{body} {mistake}");
        }
        for body in
            ["", "x", "[]", "{}", r#"{"fields":{}"#, r#"{"fields":{}} x"#, "\u{0}", r#"{"fields":{"a":"\ud800"}}"#]
        {
            let mistake = mistake(body);
            assert!(
                mistake.starts_with(r#"{"error":"the body: "#) && mistake.ends_with(r#","field":null}"#),
                "{body} {mistake}"
            );
        }
        for (value, hint) in [
            ("42", r#"found 42: write \"42\""#),
            ("-42", r#"found -42: write \"-42\""#),
            ("true", r#"found true: write \"true\""#),
            ("4.50", "found a number: write it in quotes"),
            ("12345678901234567890123", "found a number: write it in quotes"),
        ] {
            let mistake = mistake(&format!(r#"{{"fields":{{"user":{value}}}}}"#));
            assert!(mistake.contains(&format!("expected a text, {hint}")), "{mistake}");
        }
        let many: Vec<String> = (0..300).map(|number| format!("\"f{number}\":\"\"")).collect();
        assert!(mistake(&format!(r#"{{"fields":{{{}}}}}"#, many.join(","))).contains("more than 256 fields"));
    }
}
