//! Calls on their way: sent at once, awaited later, and sent once more where the first did not count.
//!
//! Rule       A command is sent again only if the server has said that it did not carry it out: `NOSCRIPT` (then the
//!            script is loaded first), `MOVED`, `ASK` and `TRYAGAIN`. Never after a timeout or a lost connection.
//! Rule       While a slot moves, `ASK` says that none of the keys is at the old place, so what the new place does not
//!            have either is nowhere. A command of several keys is refused there unless all exist: those that do not
//!            are made first, empty, which the scripts read as absent.
//! Bound      All of it together takes no longer than the deadline of one request.

use std::sync::Arc;
use std::time::Duration;

use flowgate::Time;
use flowgate_engine::redis::{Script, ScriptCall};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::link::{Arrival, CommandResult, Failure, Link};
use super::servers::Servers;
use super::slots::{self, Elsewhere};
use super::wire::{self, Reply};

/// A command, which is written anew for each attempt to send it.
pub(crate) trait Command {
    /// Appends the command.
    fn write(&self, out: &mut Vec<u8>);

    /// The keys that the command names.
    fn keys(&self) -> Vec<&[u8]>;

    /// The script that the command calls; `None`: it calls none.
    fn script(&self) -> Option<&'static Script> {
        None
    }
}

/// A plain command, as its words: its name and its keys.
pub(crate) struct Plain(pub(crate) Vec<Vec<u8>>);

impl Command for Plain {
    fn write(&self, out: &mut Vec<u8>) {
        wire::header(out, self.0.len());
        self.0.iter().for_each(|word| wire::word(out, word));
    }

    fn keys(&self) -> Vec<&[u8]> {
        self.0.iter().skip(1).map(Vec::as_slice).collect()
    }
}

impl Command for ScriptCall {
    fn write(&self, out: &mut Vec<u8>) {
        write_call(out, b"EVALSHA", &self.script.sha1, self);
    }

    fn keys(&self) -> Vec<&[u8]> {
        ScriptCall::keys(self).collect()
    }

    fn script(&self) -> Option<&'static Script> {
        Some(self.script)
    }
}

/// A call that brings its script along, so that Redis carries it out even if it does not know the script.
pub(crate) struct WithScript(pub(crate) ScriptCall);

impl Command for WithScript {
    fn write(&self, out: &mut Vec<u8>) {
        write_call(out, b"EVAL", self.0.script.source, &self.0);
    }

    fn keys(&self) -> Vec<&[u8]> {
        self.0.keys().collect()
    }
}

fn write_call(out: &mut Vec<u8>, command: &[u8], script: &str, call: &ScriptCall) {
    let (keys, args) = (call.keys(), call.args());
    wire::header(out, 3 + keys.len() + args.len());
    wire::word(out, command);
    wire::word(out, script.as_bytes());
    wire::number_word(out, keys.len());
    keys.chain(args).for_each(|word| wire::word(out, word));
}

/// A command that was sent.
#[derive(Debug)]
pub(crate) struct SentCommand {
    link: Arc<Link>,
    arrival: Arrival,
    at: Time,
    loads: u64,
}

/// Why a command has no reply, and the reply that may still come.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    pub(crate) why: Failure,
    /// The reply that may come too late.
    pub(crate) late: Option<Late>,
}

impl From<Failure> for CommandFailure {
    fn from(why: Failure) -> CommandFailure {
        CommandFailure { why, late: None }
    }
}

/// A reply that may come too late.
#[derive(Debug)]
pub(crate) enum Late {
    /// The reply to a command that the link has given up.
    Expired(oneshot::Receiver<Reply>),
    /// The reply to a command that was sent again. The link waits longer for it than the request does.
    UnderWay(Arrival),
}

impl Late {
    /// Waits for the reply; `None`: the connection was lost.
    pub(crate) async fn reply(self) -> Option<Reply> {
        match self {
            Late::Expired(reply) => reply.await.ok(),
            Late::UnderWay(arrival) => match arrival.await.ok()? {
                CommandResult::Reply(reply) => Some(reply),
                CommandResult::Late(reply) => reply.await.ok(),
            },
        }
    }
}

/// The most attempts to send a command. A slot seldom moves even twice during one request.
const MOST_TRIES: usize = 5;

/// The pause before a command is sent again while the keys of one subject are in two places.
const BETWEEN_PLACES: Duration = Duration::from_millis(5);

/// The lifetime of a key that was made empty so that all keys of a command exist, in milliseconds.
const EMPTY_FOR_MILLIS: &[u8] = b"1000";

impl Servers {
    /// Sends a command to the server that has `key`.
    pub(crate) fn send(&self, key: &[u8], command: &impl Command) -> Result<SentCommand, Failure> {
        Route::straight(self.pool_of(key)?.link()?).send(command)
    }

    /// As [`Servers::send`], also while the breaker of the server is open. Rollbacks need that: they go to a server
    /// that has just answered, if late.
    pub(crate) fn send_even_if_open(&self, key: &[u8], command: &impl Command) -> Result<SentCommand, Failure> {
        Route::straight(self.pool_of(key)?.link_even_if_open()?).send(command)
    }

    /// Awaits the reply. `command` makes the command anew if the server did not carry out the first one. The reply is
    /// never an error.
    pub(crate) async fn reply<C: Command>(
        &self,
        sent: &mut SentCommand,
        command: impl Fn() -> C,
    ) -> Result<Reply, CommandFailure> {
        let deadline = sent.at + sent.link.node().timeout;
        match received(&mut sent.arrival).await? {
            // Boxed, since it is rare and its many states would make every waiting reply large.
            Reply::Error(error) => {
                let route = Route::straight(Arc::clone(&sent.link));
                Box::pin(self.again(route, sent.loads, deadline, error, command)).await
            }
            reply => Ok(reply),
        }
    }

    async fn again<C: Command>(
        &self,
        mut route: Route,
        mut loads: u64,
        deadline: Time,
        mut error: String,
        command: impl Fn() -> C,
    ) -> Result<Reply, CommandFailure> {
        for _ in 0..MOST_TRIES {
            let command = command();
            match (slots::elsewhere(&error), command.script()) {
                (Some(Elsewhere::Moved { host, port, .. }), _) => {
                    route = Route::straight(self.link_elsewhere(&route, host.as_deref(), port)?);
                    self.ask_around();
                }
                (Some(Elsewhere::Ask { host, port }), _) => {
                    let link = self.link_elsewhere(&route, host.as_deref(), port)?;
                    route = Route { link, asking: true };
                }
                (Some(Elsewhere::Nowhere), _) => sleep(BETWEEN_PLACES).await,
                (None, Some(script)) if error.starts_with("NOSCRIPT") => {
                    if route.link.must_load(loads) {
                        let load: [&[u8]; 3] = [b"SCRIPT", b"LOAD", script.source.as_bytes()];
                        // Commands that are sent after the load find the script.
                        drop(route.link.send(1, |out| wire::command(out, &load))?);
                    }
                }
                (None, _) => {
                    tracing::debug!(redis = %route.link.node().target, error, "Redis cannot do it");
                    return Err(Failure::Refused.into());
                }
            }
            let left = deadline.since(route.link.node().now());
            if left.is_zero() {
                // Redis could still carry out a command that is sent now, although its caller gets a timeout.
                return Err(Failure::Timeout.into());
            }
            let sent = route.send(&command)?;
            loads = sent.loads;
            let mut arrival = sent.arrival;
            // Redirects are rare, so a timer for each costs little.
            match timeout(Duration::from_nanos(left.as_nanos()), received(&mut arrival)).await {
                Ok(Ok(Reply::Error(next))) => error = next,
                Ok(replied) => return replied,
                Err(_) => return Err(CommandFailure { why: Failure::Timeout, late: Some(Late::UnderWay(arrival)) }),
            }
        }
        Err(Failure::Refused.into())
    }

    /// The link to the server that an error points to.
    fn link_elsewhere(&self, route: &Route, host: Option<&str>, port: u16) -> Result<Arc<Link>, Failure> {
        let pool = self.pool_elsewhere(&route.link.node().target, host, port).ok_or(Failure::Refused)?;
        pool.link()
    }
}

/// The link for a command, and whether `ASKING` must precede it.
struct Route {
    link: Arc<Link>,
    /// True if the key's slot is moving to this server: `ASKING` precedes each command.
    asking: bool,
}

impl Route {
    fn straight(link: Arc<Link>) -> Route {
        Route { link, asking: false }
    }

    fn send(&self, command: &impl Command) -> Result<SentCommand, Failure> {
        let (loads, at) = (self.link.loads(), self.link.node().now());
        let arrival = match self.asking {
            true => self.send_asking(command),
            false => self.link.send_at(at, 1, |out| command.write(out)),
        };
        Ok(SentCommand { link: Arc::clone(&self.link), arrival: arrival?, at, loads })
    }

    fn send_asking(&self, command: &impl Command) -> Result<Arrival, Failure> {
        let mut keys = command.keys();
        if keys.len() == 1 {
            keys.clear();
        }
        self.link.send(2 * keys.len() + 2, |out| {
            for key in keys {
                wire::command(out, &[b"ASKING"]);
                wire::command(out, &[b"SET", key, b"", b"NX", b"PX", EMPTY_FOR_MILLIS]);
            }
            wire::command(out, &[b"ASKING"]);
            command.write(out);
        })
    }
}

async fn received(
    arrival: impl Future<Output = Result<CommandResult, oneshot::error::RecvError>>,
) -> Result<Reply, CommandFailure> {
    match arrival.await {
        Ok(CommandResult::Reply(reply)) => Ok(reply),
        Ok(CommandResult::Late(reply)) => {
            Err(CommandFailure { why: Failure::Timeout, late: Some(Late::Expired(reply)) })
        }
        Err(_) => Err(Failure::Lost.into()),
    }
}
