//! A proxy in front of a Redis whose replies can be held up: commands pass at once, replies come later.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use flowgate_testkit::redis::Redis;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// A proxy; its connections end with the runtime of the test.
pub(crate) struct Proxy {
    socket: PathBuf,
    delay_millis: Arc<AtomicU64>,
}

impl Proxy {
    /// Listens on a socket beside that of `redis`. Must be called on a runtime.
    pub(crate) fn before(redis: &Redis) -> Proxy {
        let socket = redis.directory().join("proxy.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let delay_millis = Arc::new(AtomicU64::new(0));
        let (target, delay) = (redis.socket(), Arc::clone(&delay_millis));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = UnixStream::connect(&target).await {
                    tokio::spawn(forward(client, server, Arc::clone(&delay)));
                }
            }
        });
        Proxy { socket, delay_millis }
    }

    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// From now on each reply arrives this much later.
    pub(crate) fn delay(&self, delay: Duration) {
        self.delay_millis.store(u64::try_from(delay.as_millis()).unwrap(), SeqCst);
    }
}

async fn forward(client: UnixStream, server: UnixStream, delay: Arc<AtomicU64>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (replies, mut delayed) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let commands = async { tokio::io::copy(&mut from_client, &mut to_server).await.map(drop) };
    let read = async {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let length = from_server.read(&mut chunk).await?;
            let due = Instant::now() + Duration::from_millis(delay.load(SeqCst));
            if length == 0 || replies.send((due, chunk[..length].to_vec())).is_err() {
                return Ok::<(), std::io::Error>(());
            }
        }
    };
    let write = async {
        while let Some((due, bytes)) = delayed.recv().await {
            sleep_until(due).await;
            to_client.write_all(&bytes).await?;
        }
        Ok::<(), std::io::Error>(())
    };
    // Whichever side ends first ends both.
    tokio::select! {
        _ = commands => {}
        _ = read => {}
        _ = write => {}
    }
}
