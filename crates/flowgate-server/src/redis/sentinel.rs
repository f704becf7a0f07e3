//! Sentinels: they know which server is the master, and which one after a failover.
//!
//! Rule       All sentinels are asked every second, and four times a second while Redis is away. The node moves to the
//!            server of the newest configuration epoch if that server itself answers `ROLE` with `master`.
//! Rule       A sentinel that is cut off from the others knows an older epoch and moves nothing: the node goes back to
//!            an epoch not newer than its own only if every sentinel names the same server, because they were set up
//!            anew.
//! Rule       Without an answer of a sentinel the node stays where it is.
//! Bound      Each sentinel, and each server that is asked for its role, has [`ANSWER_TIMEOUT`] for all of it. A round
//!            asks at most as many servers as there are sentinels.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use flowgate_engine::config;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::target::{ConnectError, Target, exchange};
use super::wire::{self, Reply};
use crate::listener::Stream;

/// The longest that a sentinel, or a server that is asked for its role, may take, the connection included.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// The sentinels of a master.
#[derive(Debug)]
pub(crate) struct Sentinels {
    master: Arc<str>,
    /// How to connect to the servers that sentinels name. Its own address is unused.
    server: Target,
    sentinels: Vec<Arc<Mutex<Sentinel>>>,
    followed: Mutex<FollowedServer>,
}

/// Which server the node follows.
#[derive(Debug, Default)]
struct FollowedServer {
    view: Option<View>,
    /// The last refusal that was logged.
    refusal: Option<String>,
}

struct Sentinel {
    target: Target,
    connection: Option<Box<dyn Stream>>,
    /// Why the sentinel did not answer the last time.
    trouble: Option<String>,
}

/// The master as a sentinel sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct View {
    host: String,
    port: u16,
    /// The number of the failover that made the server the master. A greater number is newer.
    epoch: u64,
}

impl Sentinels {
    pub(crate) fn new(config: &config::Sentinel) -> Sentinels {
        let sentinel = |url| {
            let target = Target::of_sentinel(url, &config.sentinel_login);
            Arc::new(Mutex::new(Sentinel { target, connection: None, trouble: None }))
        };
        Sentinels {
            master: config.master.as_str().into(),
            server: Target::behind_sentinels(config.tls, &config.login, config.database),
            sentinels: config.sentinels.iter().map(sentinel).collect(),
            followed: Mutex::default(),
        }
    }

    /// Asks all sentinels. Returns the server to move to, if it is another one than before.
    ///
    /// # Errors
    /// Why no server is followed.
    pub(crate) async fn ask(&self) -> Result<Option<Target>, String> {
        let mut followed = self.followed.lock().await;
        let answers = self.ask_all().await;
        let views: Vec<Option<&View>> = answers.iter().map(|answer| answer.as_ref().ok()).collect();
        if let Some(followed) = &mut followed.view {
            // After a failover and one back, the address is the same, and views with the other address are outdated.
            followed.epoch =
                confirmed_epoch(&views, followed).map_or(followed.epoch, |epoch| epoch.max(followed.epoch));
        }
        let mut refusals = Vec::new();
        for view in candidates(&views, followed.view.as_ref()) {
            let target = self.server.at(&view.host, view.port);
            match within(check_role(&target)).await {
                Ok(()) => {
                    *followed = FollowedServer { view: Some(view.clone()), refusal: None };
                    return Ok(Some(target));
                }
                Err(error) => refusals.push(format!("{target}: {error}")),
            }
        }
        let refusal = (!refusals.is_empty()).then(|| refusals.join("; "));
        if refusal.is_some() && refusal != followed.refusal {
            let (master, error) = (&*self.master, refusal.as_deref());
            tracing::warn!(master, error, "a sentinel names a server that does not serve as the master");
        }
        followed.refusal.clone_from(&refusal);
        let trouble = || answers.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("; ");
        match followed.view {
            Some(_) => Ok(None),
            None => Err(refusal.unwrap_or_else(trouble)),
        }
    }

    /// The answers of all sentinels, or the error of each.
    async fn ask_all(&self) -> Vec<Result<View, String>> {
        let mut asked = JoinSet::new();
        for sentinel in &self.sentinels {
            let (sentinel, master) = (Arc::clone(sentinel), Arc::clone(&self.master));
            asked.spawn(async move { sentinel.lock().await.ask(&master).await });
        }
        asked.join_all().await
    }
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the master {}", self.master)
    }
}

impl Sentinel {
    async fn ask(&mut self, master: &str) -> Result<View, String> {
        match within(self.try_ask(master)).await {
            Ok(view) => {
                if self.trouble.take().is_some() {
                    tracing::info!(sentinel = %self.target, "a sentinel answers again");
                }
                Ok(view)
            }
            Err(error) => {
                self.connection = None;
                let error = error.to_string();
                if self.trouble.as_ref() != Some(&error) {
                    tracing::warn!(sentinel = %self.target, error, "a sentinel does not tell where the master is");
                }
                let told = format!("sentinel {}: {error}", self.target);
                self.trouble = Some(error);
                Err(told)
            }
        }
    }

    async fn try_ask(&mut self, master: &str) -> Result<View, ConnectError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.target.connect(None, None).await?.stream),
        };
        // Both in one write, so that a sentinel answers both before it does anything else. During a failover the first
        // has the new address before the second does.
        let mut commands = Vec::new();
        wire::command(&mut commands, &[b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", master.as_bytes()]);
        wire::command(&mut commands, &[b"SENTINEL", b"MASTER", master.as_bytes()]);
        let replies = exchange(connection, &commands, 2).await?;
        let seen = if let [address, details] = replies.as_slice() { view(address, details) } else { None };
        seen.ok_or_else(|| ConnectError::Refused("it does not answer as a sentinel does".to_owned()))
    }
}

impl fmt::Debug for Sentinel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sentinel({})", self.target)
    }
}

fn is_same(one: &View, other: &View) -> bool {
    (&one.host, one.port) == (&other.host, other.port)
}

/// The newest epoch in which more than half of the sentinels see the server that the node follows. One sentinel alone
/// must not raise the epoch: the next failover would then look old.
fn confirmed_epoch(views: &[Option<&View>], followed: &View) -> Option<u64> {
    let mut epochs: Vec<u64> =
        views.iter().flatten().filter(|view| is_same(view, followed)).map(|view| view.epoch).collect();
    epochs.sort_unstable_by_key(|epoch| std::cmp::Reverse(*epoch));
    epochs.get(views.len() / 2).copied()
}

/// The servers to try, best first: those of the newest epochs, down to the server that the node follows. An epoch that is
/// not newer than the node's counts only if all sentinels agree.
fn candidates<'v>(views: &[Option<&'v View>], followed: Option<&View>) -> Vec<&'v View> {
    let mut known: Vec<&View> = views.iter().copied().flatten().collect();
    // The sort is stable: of equal epochs the first sentinel's view comes first.
    known.sort_by_key(|view| std::cmp::Reverse(view.epoch));
    let all_agree = known.len() == views.len() && known.windows(2).all(|pair| is_same(pair[0], pair[1]));
    let mut candidates: Vec<&View> = Vec::new();
    for view in known {
        if followed.is_some_and(|followed| is_same(followed, view)) {
            break;
        }
        let is_newer = followed.is_none_or(|followed| view.epoch > followed.epoch);
        if (is_newer || all_agree) && !candidates.iter().any(|other| is_same(other, view)) {
            candidates.push(view);
        }
    }
    candidates
}

/// The view in a sentinel's replies; `None`: the replies have another form.
fn view(address: &Reply, details: &Reply) -> Option<View> {
    let (Reply::List(address), Reply::List(details)) = (address, details) else { return None };
    let [Reply::Text(host), Reply::Text(port)] = address.as_slice() else { return None };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let epoch = details.chunks_exact(2).find_map(|pair| match pair {
        [Reply::Text(name), Reply::Text(value)] if name.as_slice() == b"config-epoch" => text(value)?.parse().ok(),
        _ => None,
    })?;
    let host = text(host).filter(|host| !host.is_empty())?;
    Some(View { host, port: text(port)?.parse().ok()?, epoch })
}

/// Asks a server whether it is a master.
async fn check_role(target: &Target) -> Result<(), ConnectError> {
    let mut stream = target.connect(None, None).await?.stream;
    let mut command = Vec::new();
    wire::command(&mut command, &[b"ROLE"]);
    match exchange(&mut stream, &command, 1).await?.first() {
        Some(Reply::List(role)) if role.first() == Some(&Reply::Text(b"master"[..].into())) => Ok(()),
        _ => Err(ConnectError::Refused("it is not a master".to_owned())),
    }
}

async fn within<T>(answer: impl Future<Output = Result<T, ConnectError>>) -> Result<T, ConnectError> {
    timeout(ANSWER_TIMEOUT, answer).await.unwrap_or(Err(ConnectError::Silent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(host: &str, epoch: u64) -> View {
        View { host: host.to_owned(), port: 6379, epoch }
    }

    /// Checks which hosts are tried, by the sentinels' views (`-`: no view) and the server that the node follows.
    #[track_caller]
    fn check(views: &str, followed: &str, expected: &str) {
        let view = |text: &str| text.split_once('@').map(|(host, epoch)| seen(host, epoch.parse().unwrap()));
        let views: Vec<Option<View>> = views.split(' ').map(view).collect();
        let views: Vec<Option<&View>> = views.iter().map(Option::as_ref).collect();
        let tried: Vec<&str> = candidates(&views, view(followed).as_ref()).iter().map(|view| &*view.host).collect();
        assert_eq!(tried.join(" "), expected, "{views:?}");
    }

    #[test]
    fn the_newest_epoch_moves_the_node() {
        check("a@1 a@1 a@1", "-", "a");
        check("a@1 b@2 a@1", "-", "b a");
        check("a@1 a@1 a@1", "a@1", "");
        check("a@1 b@2 a@1", "a@1", "b");
        check("- b@2 -", "a@1", "b");
        check("c@9 b@2 b@2", "a@1", "c b");
        check("- - -", "a@1", "");
        check("- - -", "-", "");
    }

    #[test]
    fn an_old_epoch_moves_nothing_unless_all_agree() {
        check("- a@1 -", "b@2", "");
        check("b@2 a@1 a@1", "b@2", "");
        check("- a@1 a@2", "b@2", "");
        check("a@0 a@0 a@0", "b@2", "a");
        check("a@0 - a@0", "b@2", "");
        check("c@9 b@2 a@1", "b@2", "c");
    }

    #[test]
    fn the_epoch_of_the_server_that_is_followed_is_what_most_sentinels_confirm() {
        let views = |epochs: &[u64]| epochs.iter().map(|epoch| seen("a", *epoch)).collect::<Vec<_>>();
        let confirmed = |epochs: &[u64], silent: usize| {
            let views = views(epochs);
            let known = views.iter().map(Some).chain(std::iter::repeat_n(None, silent)).collect::<Vec<_>>();
            confirmed_epoch(&known, &seen("a", 1))
        };
        assert_eq!(confirmed(&[3, 3, 3], 0), Some(3));
        assert_eq!(confirmed(&[99, 3, 3], 0), Some(3), "one that lies does not count");
        assert_eq!(confirmed(&[3, 3], 1), Some(3));
        assert_eq!(confirmed(&[3], 2), None);
        assert_eq!((confirmed(&[3], 0), confirmed(&[], 3)), (Some(3), None));
        let other = seen("b", 9);
        assert_eq!(confirmed_epoch(&[Some(&other), Some(&other), Some(&other)], &seen("a", 1)), None);
        // The node follows `a` since epoch 1, and again in epoch 3 after a failover there and back: an old view moves
        // nothing.
        check("a@3 b@2 a@3", "a@3", "");
    }

    #[test]
    fn replies_of_a_sentinel() {
        let list = |texts: &[&str]| Reply::List(texts.iter().map(|text| Reply::Text(text.as_bytes().into())).collect());
        let details = list(&["name", "m", "flags", "master", "config-epoch", "7"]);
        assert_eq!(view(&list(&["10.0.0.1", "6379"]), &details), Some(seen("10.0.0.1", 7)));
        for (address, details) in [
            (Reply::Nil, details.clone()),
            (list(&["10.0.0.1"]), details.clone()),
            (list(&["", "6379"]), details.clone()),
            (list(&["10.0.0.1", "x"]), details.clone()),
            (list(&["10.0.0.1", "1"]), list(&["config-epoch", "x"])),
            (list(&["10.0.0.1", "1"]), list(&["config-epoch"])),
            (Reply::Integer(1), details),
        ] {
            assert_eq!(view(&address, &details), None);
        }
    }
}
