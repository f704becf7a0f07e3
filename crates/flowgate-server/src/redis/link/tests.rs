//! Tests of connections that end, and of names that come to stand for another server. The servers answer every command
//! with their name.

use flowgate_engine::config::RedisUrl;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::*;
use crate::redis::health::Health;
use crate::redis::target::Target;

/// A server that answers to each command, a `PING`, with its name.
struct Named {
    address: SocketAddr,
    /// Connections end when this changes.
    cut: watch::Sender<()>,
    connections: Arc<AtomicU64>,
}

impl Named {
    async fn start(name: &'static str) -> Named {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, (cut, _)) = (listener.local_addr().unwrap(), watch::channel(()));
        let cuts = cut.clone();
        let connections = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Relaxed);
                let mut cut = cuts.subscribe();
                tokio::spawn(async move {
                    let mut chunk = [0; 4096];
                    while let Ok(length) =
                        tokio::select! { read = stream.read(&mut chunk) => read, _ = cut.changed() => Ok(0) }
                        && length > 0
                    {
                        let commands = chunk[..length].windows(4).filter(|word| *word == b"PING").count();
                        stream.write_all(format!("+{name}\r\n").repeat(commands).as_bytes()).await.unwrap();
                    }
                });
            }
        });
        Named { address, cut, connections }
    }

    fn node(&self) -> Arc<Node> {
        let target = Target::new(&RedisUrl::parse(&format!("redis://{}", self.address)).unwrap());
        Arc::new(Node::new(target, Span::from_secs(10), "fg:", Arc::new(Health::default())))
    }
}

/// The name of the server that answers; an error where the command is refused or lost.
async fn who(link: &Link) -> Result<String, Failure> {
    let arrival = link.send(1, |out| crate::redis::wire::command(out, &[b"PING"]))?;
    match arrival.await {
        Ok(CommandResult::Reply(Reply::Text(name))) => Ok(String::from_utf8(name.into_vec()).unwrap()),
        Ok(other) => panic!("{other:?}"),
        Err(_) => Err(Failure::Lost),
    }
}

#[tokio::test]
async fn all_links_of_a_node_follow_one_to_another_address() {
    let (old, new) = (Named::start("old").await, Named::start("new").await);
    let node = old.node();
    let links = [(); 3].map(|()| Link::start(Arc::clone(&node), &Handle::current()));
    for link in &links {
        assert_eq!(who(link).await.unwrap(), "old");
    }
    // The node moves as if a fourth link had found another address behind the name.
    node.is_at(Some(new.address));
    for link in &links {
        assert_eq!(who(link).await.unwrap(), "new");
    }
    assert!(!node.is_open());
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_anew_at_once() {
    let server = Named::start("server").await;
    let node = server.node();
    let link = Link::start(Arc::clone(&node), &Handle::current());
    assert_eq!(who(&link).await.unwrap(), "server");
    // The connection exists, so it is at least this old.
    let connected = node.now();
    while node.now() <= connected + SETTLED_AFTER {
        assert_eq!(who(&link).await.unwrap(), "server");
        sleep(Duration::from_millis(5)).await;
    }
    server.cut.send(()).unwrap();
    // Commands under way may be lost, but none is refused meanwhile.
    while server.connections.load(Relaxed) < 2 || who(&link).await.is_err() {
        if let Err(failure) = who(&link).await {
            assert_eq!(failure, Failure::Lost);
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(server.connections.load(Relaxed), 2);
}
