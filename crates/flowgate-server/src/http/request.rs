//! The request that a call describes, as rules see it.

use std::borrow::Cow;
use std::net::IpAddr;

use flowgate_api::{Cost, DecideCall, Fields, Text};
use flowgate_engine::{
    Request,
    http::{ClientAddresses, PathSpelling, normalized_host, normalized_method},
};

use super::Shared;
use crate::service::Snapshot;

const ADDRESS_FIELD: &str = "ip";
const PATH_FIELD: &str = "path";

/// The fields and the cost of a call, spelled as at the gate if the call asks for that.
#[derive(Debug)]
pub(super) struct CallRequest<'b> {
    fields: Fields<'b>,
    cost: Cost,
    /// The network by which `ip` is counted; `None`: `ip` is counted by its value.
    network: Option<String>,
}

impl<'b> CallRequest<'b> {
    pub(super) fn new(shared: &Shared, snapshot: &Snapshot, call: DecideCall<'b>) -> CallRequest<'b> {
        let mut request = CallRequest { fields: call.fields, cost: call.cost, network: None };
        if call.gate {
            request.spell_as_at_the_gate(&shared.gate.addresses, snapshot.rules.path_spelling);
        }
        request
    }

    pub(super) fn request(&self) -> Request<'_> {
        let fields = self.fields.0.iter().map(|(name, value)| (&*name.0, &*value.0));
        let request = fields.collect::<Request<'_>>().cost(self.cost.0);
        match &self.network {
            Some(network) => request.counted_as(ADDRESS_FIELD, network),
            None => request,
        }
    }

    /// Spells `path`, `host`, `method` and an address in `ip` as the gate does, and counts an IPv6 address by its network.
    fn spell_as_at_the_gate(&mut self, addresses: &ClientAddresses, spelling: PathSpelling) {
        if let Some(path) = self.value_mut(PATH_FIELD) {
            *path = Text(Cow::Owned(spelling.spell(&*path.0).into_owned()));
        }
        if let Some(host) = self.value_mut("host") {
            *host = Text(Cow::Owned(normalized_host(&host.0).into_owned()));
        }
        if let Some(method) = self.value_mut("method") {
            *method = Text(Cow::Owned(normalized_method(&method.0).into_owned()));
        }
        let Some(value) = self.value_mut(ADDRESS_FIELD) else { return };
        let Ok(address) = value.0.parse::<IpAddr>() else { return };
        let (address, counted) = (address.to_canonical(), addresses.counted(address));
        *value = Text(Cow::Owned(address.to_string()));
        self.network = (counted != address).then(|| counted.to_string());
    }

    fn value_mut(&mut self, field: &str) -> Option<&mut Text<'b>> {
        self.fields.0.iter_mut().find(|(name, _)| name.0 == field).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::body::parse;

    #[track_caller]
    fn mistake(body: &str) -> String {
        String::from_utf8(body_of(parse::<DecideCall<'_>>(body.as_bytes()).unwrap_err())).unwrap()
    }

    fn body_of(error: crate::http::error::Error) -> Vec<u8> {
        error.reply().body.bytes().to_vec()
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
            assert!(mistake.contains(&format!(r#","field":"{field}","code":"#)), "{body} {mistake}");
        }
        for body in
            ["", "x", "[]", "{}", r#"{"fields":{}"#, r#"{"fields":{}} x"#, "\u{0}", r#"{"fields":{"a":"\ud800"}}"#]
        {
            let mistake = mistake(body);
            assert!(
                mistake.starts_with(r#"{"error":"the body: "#) && mistake.contains(r#","field":null,"code":"body""#),
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
