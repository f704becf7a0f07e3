//! A server of a test's own: on a port that the system chooses, on a clock that is moved by hand, in a thread of its own.

use std::io::BufReader;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use flowgate::{ManualClock, MemoryConfig, MemoryStore, Time};
use flowgate_engine::Engine;
use flowgate_server::{Config, Server, Service, Shutdown, Trigger};

/// Much longer than anything takes: a test that hangs fails instead.
pub(crate) const STUCK: Duration = Duration::from_secs(60);

/// A server, stopped when it is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) clock: ManualClock,
    /// Whether it serves Koala's endpoints, which only docs/koala.md describes.
    #[allow(dead_code, reason = "the Redis protocol has none")]
    pub(crate) koala: bool,
    trigger: Trigger,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// A server with one listener and its rules; `prepare` sees it before it runs.
    pub(crate) fn serve(config: Config, prepare: impl FnOnce(&Server) + Send + 'static) -> Running {
        let clock = ManualClock::new(Time::from_secs(1_700_000_000));
        let max_bytes = usize::try_from(config.store.max_memory.bytes()).unwrap();
        let when_full = config.store.when_full;
        let memory = MemoryStore::new(MemoryConfig { max_bytes, when_full, ..MemoryConfig::default() });
        let engine = Engine::new(&config.policy, memory).unwrap();
        let service = Service::new(engine, clock.clone().into());
        service.replace_koala(config.koala_file.as_deref()).unwrap();
        let koala = config.koala_file.is_some();
        let (trigger, shutdown) = Shutdown::new();
        let (bound, address) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let server = Server::bind_service(&config, service).await.unwrap();
                prepare(&server);
                bound.send(server.http_address().or(server.resp_address()).unwrap()).unwrap();
                server.run(shutdown).await.unwrap();
            });
        });
        Running { address: address.recv().unwrap(), clock, koala, trigger, thread: Some(thread) }
    }

    /// A connection on which nothing waits for ever.
    pub(crate) fn stream(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(STUCK)).unwrap();
        stream.set_write_timeout(Some(STUCK)).unwrap();
        BufReader::new(stream)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.trigger.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the server panicked");
        }
    }
}
