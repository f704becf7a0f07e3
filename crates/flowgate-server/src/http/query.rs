//! The parameters of a query. Each must be known, and given once.

use std::borrow::Cow;
use std::str::FromStr;

use flowgate_engine::http::decoded_query;

use super::Call;
use super::error::Error;

/// The parameters: names and values.
#[derive(Debug)]
pub(super) struct Query<'q>(Vec<(Cow<'q, str>, Cow<'q, str>)>);

impl<'q> Query<'q> {
    /// Reads the query of a request that may have these parameters.
    pub(super) fn read(call: &'q Call<'_>, known: &[&str]) -> Result<Query<'q>, Error> {
        let mut parameters: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
        for pair in call.head.query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded_query(name);
            if !known.contains(&&*name) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Error::invalid(
                    name.into_owned(),
                    format!("unknown parameter; the parameters are: {known}"),
                ));
            }
            if parameters.iter().any(|(other, _)| *other == name) {
                return Err(Error::invalid(name.into_owned(), "this parameter is given twice"));
            }
            parameters.push((name, decoded_query(value)));
        }
        Ok(Query(parameters))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// A whole number within a range.
    pub(super) fn number<N: FromStr + PartialOrd + Copy + std::fmt::Display>(
        &self,
        name: &'static str,
        range: std::ops::RangeInclusive<N>,
    ) -> Result<Option<N>, Error> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.parse().ok().filter(|number| range.contains(number));
        let wrong = || format!("expected a whole number from {} to {}", range.start(), range.end());
        number.map(Some).ok_or_else(|| Error::invalid(name, wrong()))
    }
}
