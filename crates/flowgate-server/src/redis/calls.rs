//! Calls on their way: sent at once, awaited later, and sent once more where the first did not count.
//!
//! Rule       A command is sent again only if the server has said that it did not carry it out: `NOSCRIPT` (then the
//!            script is loaded first), `MOVED`, `ASK` and `TRYAGAIN`. Never after a timeout or a lost connection.
//! Bound      All of it together takes no longer than the deadline of one request.

use std::sync::Arc;
use std::time::Duration;

use flowgate::Time;
use flowgate_engine::redis::{Script, ScriptCall};
use tokio::time::{sleep, timeout};

use super::link::{Arrival, Failure, Link};
use super::servers::Servers;
use super::slots::{self, Elsewhere};
use super::wire::{self, Reply};

/// Something to be sent: written anew each time.
pub(crate) trait Command {
    /// Appends the command.
    fn write(&self, out: &mut Vec<u8>);

    /// The script that it calls, if it does.
    fn script(&self) -> Option<&'static Script>;
}

/// A plain command, as its words.
pub(crate) struct Plain(pub(crate) Vec<Vec<u8>>);

impl Command for Plain {
    fn write(&self, out: &mut Vec<u8>) {
        wire::header(out, self.0.len());
        self.0.iter().for_each(|word| wire::word(out, word));
    }

    fn script(&self) -> Option<&'static Script> {
        None
    }
}

impl Command for ScriptCall {
    fn write(&self, out: &mut Vec<u8>) {
        let (keys, args) = (self.keys(), self.args());
        wire::header(out, 3 + keys.len() + args.len());
        wire::word(out, b"EVALSHA");
        wire::word(out, self.script.sha1().as_bytes());
        wire::word(out, keys.len().to_string().as_bytes());
        keys.chain(args).for_each(|word| wire::word(out, word));
    }

    fn script(&self) -> Option<&'static Script> {
        Some(self.script)
    }
}

/// A command that was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    link: Arc<Link>,
    arrival: Arrival,
    at: Time,
    loads: u64,
}

/// How often a command may be sent again. A slot that moves twice in a blink is already rare.
const MOST_TRIES: usize = 5;

/// How long keys of one subject may be in two places.
const BETWEEN_PLACES: Duration = Duration::from_millis(5);

impl Servers {
    /// Sends a command to the server that has `key`.
    pub(crate) fn send(&self, key: &[u8], command: &impl Command) -> Result<Sent, Failure> {
        send_over(self.pool_of(key)?.link()?, command)
    }

    /// Awaits the reply; `command` gives the command once more where the first was not carried out. A reply is never
    /// an error.
    pub(crate) async fn reply<C: Command>(&self, sent: Sent, command: impl Fn() -> C) -> Result<Reply, Failure> {
        let first = received(sent.arrival).await?;
        let Reply::Error(error) = first else { return Ok(first) };
        // Few get here, so a timer for each does no harm.
        let left = (sent.at + sent.link.node().timeout()).since(sent.link.node().now());
        if left.is_zero() {
            // To send it now would count what is answered as if it had not.
            return Err(Failure::Timeout);
        }
        let again = self.again(sent.link, sent.loads, error, command);
        timeout(Duration::from_nanos(left.as_nanos()), again).await.unwrap_or(Err(Failure::Timeout))
    }

    async fn again<C: Command>(
        &self,
        mut link: Arc<Link>,
        mut loads: u64,
        mut error: String,
        command: impl Fn() -> C,
    ) -> Result<Reply, Failure> {
        for _ in 0..MOST_TRIES {
            let command = command();
            let arrival = match (slots::elsewhere(&error), command.script()) {
                (Some(Elsewhere::Moved { host, port, .. }), _) => {
                    let pool =
                        self.pool_elsewhere(link.node().target(), host.as_deref(), port).ok_or(Failure::Refused)?;
                    link = pool.link()?;
                    loads = link.loads();
                    self.ask_around();
                    let [arrival] = link.send(|out| command.write(out))?;
                    arrival
                }
                (Some(Elsewhere::Ask { host, port }), _) => {
                    let pool =
                        self.pool_elsewhere(link.node().target(), host.as_deref(), port).ok_or(Failure::Refused)?;
                    link = pool.link()?;
                    loads = link.loads();
                    let [_, arrival] = link.send(|out| {
                        wire::command(out, &[b"ASKING"]);
                        command.write(out);
                    })?;
                    arrival
                }
                (Some(Elsewhere::Nowhere), _) => {
                    sleep(BETWEEN_PLACES).await;
                    let [arrival] = link.send(|out| command.write(out))?;
                    arrival
                }
                (None, Some(script)) if error.starts_with("NOSCRIPT") => {
                    if link.must_load(loads) {
                        let load: [&[u8]; 3] = [b"SCRIPT", b"LOAD", script.source.as_bytes()];
                        let [_] = link.send(|out| wire::command(out, &load))?;
                    }
                    loads = link.loads();
                    let [arrival] = link.send(|out| command.write(out))?;
                    arrival
                }
                (None, _) => {
                    tracing::debug!(redis = %link.node().target(), error, "Redis cannot do it");
                    return Err(Failure::Refused);
                }
            };
            match received(arrival).await? {
                Reply::Error(next) => error = next,
                reply => return Ok(reply),
            }
        }
        Err(Failure::Refused)
    }
}

fn send_over(link: Arc<Link>, command: &impl Command) -> Result<Sent, Failure> {
    let (loads, at) = (link.loads(), link.node().now());
    let [arrival] = link.send(|out| command.write(out))?;
    Ok(Sent { link, arrival, at, loads })
}

async fn received(arrival: Arrival) -> Result<Reply, Failure> {
    arrival.await.unwrap_or(Err(Failure::Lost))
}
