//! What the commands that ask about a request have in common: fields as `key=value`, or a key and a limit.

use anyhow::bail;
use serde_json::{Map, Value, json};

use crate::client::Server;

#[derive(Debug, clap::Args)]
pub(crate) struct Asked {
    /// The request: its fields, such as `act=reply user=42`
    #[arg(value_name = "FIELD=VALUE", value_parser = field)]
    pub(crate) fields: Vec<(String, String)>,
    /// What the request costs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) cost: u64,
    /// Count an IPv6 address in `ip` by its network and spell `path`, as `/gate` does
    #[arg(long)]
    pub(crate) gate: bool,
    /// Print the server's answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: Server,
}

impl Asked {
    /// The request as the server takes it.
    ///
    /// # Errors
    /// When there is nothing to ask about, or a field stands twice.
    pub(crate) fn body(&self) -> anyhow::Result<Value> {
        if self.fields.is_empty() {
            bail!("a request has fields: add some, such as user=42");
        }
        let mut fields = Map::new();
        for (name, value) in &self.fields {
            if fields.insert(name.clone(), value.as_str().into()).is_some() {
                bail!("the field {name} stands twice");
            }
        }
        let mut body = json!({ "fields": fields, "cost": self.cost });
        if self.gate {
            // Left out otherwise: older servers know no such member.
            body["gate"] = true.into();
        }
        Ok(body)
    }
}

/// `key=value`; the value may be empty and have further `=`.
pub(crate) fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected a field and its value, such as user=42".to_owned()),
    }
}
