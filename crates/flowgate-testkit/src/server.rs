//! A server in a thread of the test's process.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::JoinHandle;

use flowgate::{ManualClock, Time};
use flowgate_server::{Config, Server, Service, Shutdown, Trigger};

/// A server. It is stopped with this value.
#[derive(Debug)]
#[must_use = "a server that nobody holds is stopped"]
pub struct RunningServer {
    /// The address for HTTP, if the server listens for it on TCP.
    pub http: Option<SocketAddr>,
    /// The address for the Redis protocol, if the server listens for it on TCP.
    pub resp: Option<SocketAddr>,
    /// The address for gRPC, if the server listens for it.
    pub grpc: Option<SocketAddr>,
    /// Tells the server to stop, and does not wait for its end.
    pub trigger: Trigger,
    thread: Option<JoinHandle<()>>,
}

impl RunningServer {
    /// Starts a server with this configuration.
    pub fn start(config: Config) -> RunningServer {
        let bind = async move || Server::bind(&config).await.unwrap();
        RunningServer::start_with(bind, |_| {}).0
    }

    /// Starts a server with the rules and the store of this configuration, on a clock that the test moves. `prepare`
    /// sees the server before it runs.
    pub fn start_on_manual_clock(
        config: Config,
        prepare: impl FnOnce(&Server) + Send + 'static,
    ) -> (RunningServer, ManualClock) {
        let clock = ManualClock::new(Time::from_secs(1_700_000_000));
        let service = Service::start_with_clock(&config, clock.clone().into()).unwrap();
        let bind = async move || Server::bind_service(&config, service).await.unwrap();
        (RunningServer::start_with(bind, prepare).0, clock)
    }

    /// Starts the server that `bind` makes. `prepare` sees the server before it runs; its value is returned.
    ///
    /// # Panics
    ///
    /// If the server does not start.
    pub fn start_with<T: Send + 'static>(
        bind: impl AsyncFnOnce() -> Server + Send + 'static,
        prepare: impl FnOnce(&Server) -> T + Send + 'static,
    ) -> (RunningServer, T) {
        let (trigger, shutdown) = Shutdown::new();
        let (sender, started) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let server = bind().await;
                let prepared = prepare(&server);
                let listening = &server.listening;
                let addresses = (listening.http.tcp(), listening.resp.tcp(), listening.grpc.tcp());
                sender.send((addresses, prepared)).unwrap();
                server.run(shutdown).await.unwrap();
            });
        });
        let ((http, resp, grpc), prepared) = started.recv().expect("the server starts");
        (RunningServer { http, resp, grpc, trigger, thread: Some(thread) }, prepared)
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.trigger.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the server panicked");
        }
    }
}
