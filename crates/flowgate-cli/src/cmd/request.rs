//! The options of commands that ask about a request: its fields as `key=value`, or a key and a limit.

use anyhow::bail;
use flowgate_api::{Cost, DecideCall};

use crate::client::Server;

#[derive(Debug, clap::Args)]
pub(crate) struct RequestArgs {
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

impl RequestArgs {
    /// The call that asks about the request.
    ///
    /// # Errors
    /// When there is nothing to ask about, or a field stands twice.
    pub(crate) fn call(&self) -> anyhow::Result<DecideCall<'_>> {
        if self.fields.is_empty() {
            bail!("a request has fields: add some, such as user=42");
        }
        for (index, (name, _)) in self.fields.iter().enumerate() {
            if self.fields[..index].iter().any(|(other, _)| other == name) {
                bail!("the field {name} stands twice");
            }
        }
        let fields = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Ok(DecideCall { fields, cost: Cost(self.cost), gate: self.gate })
    }
}

/// Reads `key=value`. The value may be empty, and may contain further `=`.
pub(crate) fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected a field and its value, such as user=42".to_owned()),
    }
}
