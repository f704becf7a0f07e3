//! Commands about the connection itself: login, protocol version, name, end.

use flowgate::Database;

use super::{Call, number};
use crate::resp::error::{Error, QuotedText};
use crate::resp::reply::Version;
use crate::resp::session::End;

pub(super) fn ping(call: &mut Call<'_>) -> Result<(), Error> {
    match (call.command.count(), call.command.arg(0)) {
        (0, _) => call.reply().simple("PONG"),
        (1, Some(text)) => call.reply().bulk(text),
        _ => return Err(Error::Arity("ping")),
    }
    Ok(())
}

pub(super) fn echo(call: &mut Call<'_>) -> Result<(), Error> {
    let text = call.command.arg(0).unwrap_or_default();
    call.reply().bulk(text);
    Ok(())
}

pub(super) fn quit(call: &mut Call<'_>) -> Result<(), Error> {
    call.session.end = End::AfterReplies;
    call.reply().ok();
    Ok(())
}

/// Sets the connection back to its beginning.
pub(super) fn reset(call: &mut Call<'_>) -> Result<(), Error> {
    call.session.version = Version::Resp2;
    call.session.name.clear();
    call.session.database = Database::default();
    call.session.transaction = None;
    call.session.log_out();
    call.reply().simple("RESET");
    Ok(())
}

/// Chooses the database of the client's keys.
pub(super) fn select(call: &mut Call<'_>) -> Result<(), Error> {
    let number = number::parse(call.command.arg(0).unwrap_or_default()).ok_or(Error::NotInteger)?;
    let number = u8::try_from(number).map_err(|_| Error::NoSuchDatabase)?;
    call.session.database = call.session.shared.service.database(number).ok_or(Error::NoSuchDatabase)?;
    call.reply().ok();
    Ok(())
}

/// `AUTH [user] password`. The users are `default` and, where `auth.admin_token` is set, `admin`.
pub(super) fn auth(call: &mut Call<'_>) -> Result<(), Error> {
    match (call.command.count(), call.command.arg(0), call.command.arg(1)) {
        (1, Some(_), _) if call.session.shared.password.is_none() => return Err(Error::NoPassword),
        (1, Some(password), _) => log_in(call, b"default", password)?,
        (2, Some(user), Some(password)) => log_in(call, user, password)?,
        _ => return Err(Error::Syntax),
    }
    call.reply().ok();
    Ok(())
}

fn log_in(call: &mut Call<'_>, user: &[u8], password: &[u8]) -> Result<(), Error> {
    if !call.session.log_in(user, password) {
        call.session.note_wrong_password();
        return Err(Error::WrongPassword);
    }
    Ok(())
}

/// `HELLO [version [AUTH user password] [SETNAME name]]`. As in Redis, nothing changes unless all of it is right, and
/// of options that are given twice the last ones count.
pub(super) fn hello(call: &mut Call<'_>) -> Result<(), Error> {
    let version = match call.command.arg(0).map(number::parse) {
        None => call.session.version,
        Some(Some(2)) => Version::Resp2,
        Some(Some(3)) => Version::Resp3,
        Some(Some(_)) => return Err(Error::NoSuchVersion),
        Some(None) => return Err(Error::VersionNotInteger),
    };
    let (mut login, mut name) = (None, None);
    let mut index = 1;
    while let Some(option) = call.command.arg(index) {
        match (call.command.arg(index + 1), call.command.arg(index + 2)) {
            (Some(user), Some(password)) if call.is(index, "auth") => {
                login = Some((user, password));
                index += 3;
            }
            (Some(given), _) if call.is(index, "setname") => {
                check_name(given)?;
                name = Some(given);
                index += 2;
            }
            _ => return Err(Error::HelloOption(QuotedText::new(option))),
        }
    }
    if let Some((user, password)) = login {
        log_in(call, user, password)?;
    }
    if !call.session.authenticated {
        return Err(Error::UnauthenticatedHello);
    }
    if let Some(name) = name {
        call.session.name = name.to_vec();
    }
    call.session.version = version;
    greet(call);
    Ok(())
}

fn greet(call: &mut Call<'_>) {
    let (id, version) = (call.session.id as i64, call.session.version);
    let mut reply = call.reply();
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"flowgate");
    reply.bulk(b"version");
    reply.bulk(super::report::REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(if version == Version::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(id);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}

/// What client libraries tell and ask about themselves. Announcements are answered with `OK`.
pub(super) fn client(call: &mut Call<'_>) -> Result<(), Error> {
    if call.is(0, "setname") {
        let name = call.command.arg(1).ok_or(Error::Arity("client|setname"))?;
        check_name(name)?;
        call.session.name = name.to_vec();
        call.reply().ok();
    } else if call.is(0, "getname") {
        if call.session.name.is_empty() {
            call.reply().null();
        } else {
            let name = call.session.name.clone();
            call.reply().bulk(&name);
        }
    } else if call.is(0, "id") {
        let id = call.session.id as i64;
        call.reply().integer(id);
    } else if ["setinfo", "no-evict", "no-touch"].iter().any(|word| call.is(0, word)) {
        call.reply().ok();
    } else {
        let subcommand = QuotedText::new(call.command.arg(0).unwrap_or_default());
        let known = "GETNAME, ID, NO-EVICT, NO-TOUCH, SETINFO, SETNAME";
        return Err(Error::UnknownSubcommand { command: "CLIENT", subcommand, known });
    }
    Ok(())
}

/// Names show up in lists, so they hold nothing that would break a line. An empty name takes the name away.
fn check_name(name: &[u8]) -> Result<(), Error> {
    match name {
        name if !name.iter().all(u8::is_ascii_graphic) => Err(Error::ClientName),
        name if name.len() > MAX_CLIENT_NAME_BYTES => Err(Error::LongClientName),
        _ => Ok(()),
    }
}

/// The most bytes of a client's name, which is kept as long as the connection.
pub(in crate::resp) const MAX_CLIENT_NAME_BYTES: usize = 256;

/// Refuses the commands that only the nodes of a Redis Cluster answer.
pub(super) fn cluster(_: &mut Call<'_>) -> Result<(), Error> {
    Err(Error::NoCluster)
}
