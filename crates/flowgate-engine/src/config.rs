//! The configuration: every key, its default, and what is wrong with it.
//!
//! ```text
//! files, variables -> tree (every value knows its place) -> sections, lists, rules -> checks -> warnings
//! ```
//!
//! [`load`] does all of it and reports **all** mistakes at once, each with file, line, column, the line itself and
//! a hint. Each section has a module with its type, its defaults and a list of its keys, by which it is read and
//! written (`section.rs`), so a new key changes one file. `testdata/config` shows every message.

mod auth;
mod ban;
mod brackets;
mod checks;
mod comments;
mod console;
mod duration;
mod environment;
pub(crate) mod files;
mod form;
mod gate;
mod include;
mod koala;
mod limits;
mod listen;
pub(crate) mod lists;
pub(crate) mod load;
mod log;
pub(crate) mod message;
pub(crate) mod name;
mod origin;
mod redact;
mod redis_url;
pub(crate) mod render;
pub(crate) mod report;
mod rule;
mod secret;
mod section;
mod sentinel;
mod server;
mod size;
pub(crate) mod source;
mod store;
pub(crate) mod suggest;
mod table_reader;
mod tls;
mod tree;
mod value;
mod warnings;
pub(crate) mod when;
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::path::Path;

pub use auth::Auth;
pub use console::{Console, Sampling};
pub use duration::parse as parse_duration;
pub use environment::Flag;
pub use files::{MAX_CONFIG_BYTES, Unreadable, read_file, read_text_file};
pub use flowgate::Share;
pub use gate::{Gate, HeaderFamily, ProxyAddresses, ProxyAddressesError};
pub use koala::Koala;
pub use listen::{Listen, ListenAddress};
pub use load::{Input, LoadedConfig, Options, Purpose, RuleFile, RuleFileReader, load, load_with};
pub use log::{Denials, Log, LogFormat, LogLevel};
pub use message::Message;
pub use origin::{Origin, fingerprint};
pub use redact::{hide_secrets, restore_secrets};
pub use redis_url::RedisUrl;
pub use render::Color;
pub use report::{Report, ReportEntry, Severity};
pub use secret::Secret;
pub use sentinel::{Login, MAX_SENTINELS, Sentinel};
pub use server::Server;
pub use size::ByteSize;
pub use source::Position;
pub use store::{Durability, Durable, OnDamage, Redis, RedisServers, Store};
pub use suggest::nearest as nearest_word;
pub use tls::Tls;

use crate::lists::ListDef;
use crate::rules::Policy;
use lists::Lists;
use section::Section;
use source::Location;
use table_reader::TableReader;
use tree::Table;
use writer::Writer;

/// The sections whose keys are single values, which variables can set.
pub(crate) const SECTIONS: [&str; 9] = ["listen", "server", "auth", "tls", "log", "store", "gate", "console", "koala"];

/// A valid configuration.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The addresses of the server.
    pub listen: Listen,
    /// Its bounds.
    pub server: Server,
    /// The secrets of clients.
    pub auth: Auth,
    /// Certificates; `None`: connections are not encrypted.
    pub tls: Option<Tls>,
    /// The log.
    pub log: Log,
    /// Where counters live.
    pub store: Store,
    /// The gateway check.
    pub gate: Gate,
    /// The web page.
    pub console: Console,
    /// Koala compatibility.
    pub koala: Koala,
    /// The rule file that `[koala]` names, if a reader for it was given when the configuration was loaded.
    pub koala_file: Option<RuleFile>,
    /// Where the entries of the lists stand.
    pub lists: Vec<ListDef>,
    /// The rules, with their lists loaded.
    pub policy: Policy,
}

/// The places of rules and lists in the files, for warnings.
pub(crate) struct ReadPlaces {
    pub(crate) rules: Vec<rule::Places>,
    pub(crate) lists: BTreeMap<String, Location>,
}

impl Config {
    /// Reads a configuration from a file, without any environment; relative paths in it start from its directory. Warnings
    /// are those of `flowgate validate`, and [`load`] returns them.
    ///
    /// # Errors
    /// All mistakes that were found.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Config, Report> {
        let options = Options { purpose: Purpose::Study, ..Options::default() };
        load_with(Input::File(path.as_ref()), [], options).map(|loaded| loaded.config)
    }

    /// Reads a configuration from a text, without any environment; relative paths start from the current directory.
    ///
    /// # Errors
    /// All mistakes that were found.
    pub fn from_toml(text: &str) -> Result<Config, Report> {
        let input = Input::Text { name: "flowgate.toml", base: Path::new(""), text };
        load(input, []).map(|loaded| loaded.config)
    }

    /// The configuration as TOML with every key that has an effect, secrets hidden. Without secrets it is read back
    /// as the same configuration.
    pub fn to_toml(&self) -> String {
        let mut out = self.written_sections();
        lists::write(&self.lists, &mut out);
        for rule in &self.policy.rules {
            rule::write(rule, &mut out);
        }
        out.finish()
    }

    /// Every setting as `section.key` with its value in TOML, secrets hidden. Lists and rules are not settings.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut section = String::new();
        let mut settings = Vec::new();
        for line in self.written_sections().finish().lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.to_owned();
            } else if let Some((key, value)) = line.split_once(" = ") {
                settings.push((format!("{section}.{key}"), value.to_owned()));
            }
        }
        settings
    }

    fn written_sections(&self) -> Writer {
        let mut out = Writer::default();
        self.listen.write(&mut out);
        self.server.write(&mut out);
        self.auth.write(&mut out);
        Tls::write(self.tls.as_ref(), &mut out);
        self.log.write(&mut out);
        self.store.write(&mut out);
        self.gate.write(&mut out);
        self.console.write(&mut out);
        self.koala.write(&mut out);
        out
    }

    /// Converts a tree. Reports mistakes; a wrong value keeps its default, so that the rest is checked, too.
    pub(crate) fn read(report: &mut Report, root: &Table, rule_file: Option<RuleFileReader>) -> (Config, ReadPlaces) {
        let mut fields = TableReader::new("the file", root);
        let mut config = Config {
            listen: Listen::read(report, &mut fields),
            server: Server::read(report, &mut fields),
            auth: Auth::read(report, &mut fields),
            tls: Tls::read(report, &mut fields),
            log: Log::read(report, &mut fields),
            store: Store::read(report, &mut fields),
            gate: Gate::read(report, &mut fields),
            console: Console::read(report, &mut fields),
            koala: Koala::read(report, &mut fields),
            ..Config::default()
        };
        let lists = fields
            .entry("lists")
            .and_then(|entry| table_reader::table(report, &entry.node, "[lists]", "start it with [lists]"));
        let rule_entry = fields.entry("rule");
        // The loader has joined the included files already.
        fields.entry("include");
        fields.finish(report);

        if let (Some(path), Some(reader)) = (config.koala.rules.as_deref(), rule_file) {
            config.koala_file = reader(report, path, &config.koala.tz);
        }
        let lists = Lists::read(report, lists, rule_entry);
        let (rules, places) = rule::read_all(report, rule_entry, &lists).into_iter().unzip();
        config.lists = lists.defs;
        config.policy = Policy { rules, lists: lists.loaded, path_spelling: config.gate.path_spelling() };
        (config, ReadPlaces { rules: places, lists: lists.names })
    }
}
