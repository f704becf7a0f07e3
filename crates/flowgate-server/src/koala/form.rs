//! Fields in a query and a form: `act=ask&qid=7`.

use std::borrow::Cow;

use flowgate_api::MAX_FIELDS;
use flowgate_engine::{Request, http::decoded_query};

use crate::http::Error;

/// Names and values, the last given value first, since the last value of a field counts.
#[derive(Debug)]
pub(super) struct Form<'b>(Vec<(Cow<'b, str>, Cow<'b, str>)>);

impl<'b> Form<'b> {
    /// Reads a form and a query.
    pub(super) fn read(form: &'b [u8], query: &'b str) -> Result<Form<'b>, Error> {
        let form = std::str::from_utf8(form).map_err(|_| Error::Body("expected UTF-8".to_owned()))?;
        let pairs = query.split('&').chain(form.split('&')).filter(|pair| !pair.is_empty());
        let mut fields = Vec::with_capacity(8);
        for pair in pairs {
            if fields.len() == MAX_FIELDS {
                return Err(Error::invalid("", format!("more than {MAX_FIELDS} fields")));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            fields.push((decoded_query(name), decoded_query(value)));
        }
        fields.reverse();
        Ok(Form(fields))
    }

    /// The value of a field.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// The request with these fields.
    pub(super) fn request(&self) -> Request<'_> {
        self.0.iter().map(|(name, value)| (&**name, &**value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_counts_and_that_of_the_form_before_the_query() {
        let form = Form::read(b"c=5&d=%E4%B8%AD", "a=1&b=x+y%2B&a=2&&c=4&e&f=a%zz&g=%ff").unwrap();
        let get = |name| form.get(name).unwrap();
        assert_eq!((get("a"), get("b"), get("c"), get("d")), ("2", "x y+", "5", "\u{4e2d}"));
        assert_eq!((get("e"), get("f"), get("g"), form.get("h")), ("", "a%zz", "\u{fffd}ff", None));
        assert_eq!(form.request().get("a"), Some("2"));
    }

    #[test]
    fn too_many_fields_are_refused() {
        assert!(Form::read(b"", &"a=1&".repeat(257)).is_err());
        assert!(Form::read(&[0xff], "").is_err());
    }
}
