//! The keys of `[store]` for a Redis that sentinels watch over: where the sentinels are, and how to log in.

use super::redis_url::RedisUrl;
use super::report::Report;
use super::secret::{self, Secret};
use super::source::Location;
use super::table_reader::TableReader;
use super::tree::{Node, Value};
use super::value;
use super::writer::Writer;

/// A Redis whose master the sentinels know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentinel {
    /// The addresses of the sentinels, without a login; at least one.
    pub sentinels: Vec<RedisUrl>,
    /// The name of the master.
    pub master: String,
    /// The login at the sentinels.
    pub sentinel_login: Login,
    /// The login at the servers that the sentinels name.
    pub login: Login,
    /// The database of these servers.
    pub database: u32,
    /// True: these servers are asked over TLS.
    pub tls: bool,
}

/// The commands to send after connecting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// `None`: the user `default`.
    pub username: Option<String>,
    /// `None`: there is no login.
    pub password: Option<Secret>,
}

/// A mistake that was reported already.
pub(crate) struct ReportedMistake;

/// The most sentinels: each is asked every second. A real setup has three or five.
pub const MAX_SENTINELS: usize = 32;
const MAX_MASTER_BYTES: usize = 256;

impl Sentinel {
    /// The sentinels, and where they are given; `None`: they are not given.
    ///
    /// # Errors
    /// If something is wrong, which was reported.
    pub(crate) fn read(
        report: &mut Report,
        fields: &mut TableReader<'_>,
    ) -> Result<Option<(Sentinel, Location)>, ReportedMistake> {
        let given = fields.entry("sentinel");
        let sentinels = given.map(|entry| value::list(report, &entry.node, address));
        let master = fields.read(report, "master", master);
        let sentinel_login =
            Login::read(report, fields, ["sentinel_username", "sentinel_password", "sentinel_password_file"]);
        let login = Login::read(report, fields, ["username", "password", "password_file"]);
        let (mut database, mut tls) = (0, false);
        fields.read_into(report, "database", &mut database, |report, node| {
            value::integer(report, node, 0..=u64::from(u32::MAX))
        });
        fields.read_into(report, "tls", &mut tls, value::boolean);
        let Some((given, sentinels)) = given.filter(|entry| !is_empty(&entry.node)).zip(sentinels) else {
            let set = [
                ("master", master.is_some()),
                ("sentinel_username", sentinel_login.username.is_some()),
                ("sentinel_password", sentinel_login.password.is_some()),
                ("username", login.username.is_some()),
                ("password", login.password.is_some()),
                ("database", database != 0),
                ("tls", tls),
            ];
            return match set.iter().find(|(_, is_set)| *is_set) {
                None => Ok(None),
                Some((key, _)) => Err(refuse_alone(report, fields, key)),
            };
        };
        // A mistake in an address was reported already.
        let sentinels = sentinels.filter(|sentinels| !sentinels.is_empty()).ok_or(ReportedMistake)?;
        if sentinels.len() > MAX_SENTINELS {
            let message = format!("expected at most {MAX_SENTINELS} sentinels, found {}", sentinels.len());
            report.error(given.node.at, message).done();
            return Err(ReportedMistake);
        }
        if fields.node("master").is_none_or(is_empty) {
            let hint = "the name by which the sentinels know the master, such as master = \"mymaster\"";
            report.error(given.key_at, "\"sentinel\" needs \"master\"").hint(hint).done();
        }
        let (master, database) = (master.ok_or(ReportedMistake)?, u32::try_from(database).unwrap_or_default());
        Ok(Some((Sentinel { sentinels, master, sentinel_login, login, database, tls }, given.key_at)))
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.texts("sentinel", self.sentinels.iter().map(RedisUrl::to_string));
        out.text("master", &self.master);
        self.sentinel_login.write(out, "sentinel_username", "sentinel_password");
        self.login.write(out, "username", "password");
        out.raw("database", self.database);
        out.raw("tls", self.tls);
    }
}

impl Login {
    fn read(
        report: &mut Report,
        fields: &mut TableReader<'_>,
        [user_key, password_key, file_key]: [&'static str; 3],
    ) -> Login {
        let username = fields.read(report, user_key, |report, node| value::text(report, node).map(str::to_owned));
        let username = username.filter(|name| !name.is_empty());
        let given = secret::read(report, fields, password_key, file_key);
        let has_password = given.is_some() || fields.entry(file_key).is_some();
        let password = given.and_then(|given| secret::accept(report, given));
        if let (Some(entry), Some(_), false) = (fields.entry(user_key), &username, has_password) {
            let message = format!("\"{user_key}\" needs \"{password_key}\"");
            report.error(entry.key_at, message).hint("or leave both out, if Redis asks for no login").done();
        }
        Login { username, password }
    }

    fn write(&self, out: &mut Writer, user_key: &str, password_key: &str) {
        out.text(user_key, self.username.as_deref().unwrap_or_default());
        out.secret(password_key, self.password.as_ref());
    }
}

fn address(report: &mut Report, node: &Node) -> Option<RedisUrl> {
    let text = value::text(report, node)?;
    let (message, hint) = match RedisUrl::parse(text) {
        Ok(url) if url.has_login() => (
            "the address of a sentinel has no login",
            "the login of all sentinels stands in \"sentinel_username\" and \"sentinel_password\"",
        ),
        Ok(url) if url.is_host_and_port() => return Some(url),
        _ => (
            "expected the host and the port of a sentinel",
            "such as \"10.0.0.5:26379\", or \"rediss://10.0.0.5:26379\" for TLS",
        ),
    };
    report.error(node.at, message).hint(hint).refuse()
}

fn master(report: &mut Report, node: &Node) -> Option<String> {
    let name = value::text(report, node)?;
    if name.len() > MAX_MASTER_BYTES || name.contains(|char: char| char.is_whitespace() || char.is_control()) {
        let message = format!("expected a name of at most {MAX_MASTER_BYTES} bytes without spaces");
        let hint = "the name after `sentinel monitor` in the sentinels' configuration";
        return report.error(node.at, message).hint(hint).refuse();
    }
    Some(name.to_owned()).filter(|name| !name.is_empty())
}

/// True for a value that counts as absent.
fn is_empty(node: &Node) -> bool {
    match &node.value {
        Value::Array(items) => items.is_empty(),
        Value::String(text) | Value::Untyped(text) => text.is_empty(),
        _ => false,
    }
}

/// Reports a key that has no meaning without `sentinel`.
fn refuse_alone(report: &mut Report, fields: &mut TableReader<'_>, key: &'static str) -> ReportedMistake {
    let file_key = match key {
        "sentinel_password" => "sentinel_password_file",
        "password" => "password_file",
        _ => key,
    };
    let hint = match key {
        "master" => "the addresses of the sentinels, such as sentinel = [\"10.0.0.5:26379\"]",
        _ => {
            "the login, the database and the TLS of a single server or a cluster stand in its address: \
              rediss://USER:PASSWORD@HOST/0"
        }
    };
    if let Some(entry) = fields.entry(key).or_else(|| fields.entry(file_key)) {
        report.error(entry.key_at, format!("\"{key}\" needs \"sentinel\"")).hint(hint).done();
    }
    ReportedMistake
}
