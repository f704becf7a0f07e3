//! `flowgate serve`: runs the server until it is asked to stop.

use std::net::SocketAddr;
use std::pin::pin;

use anyhow::Context;
use flowgate_server::{Config, Server, Shutdown};

/// Serve the Redis protocol and HTTP
///
/// Needs no configuration and no other service. Stops on Ctrl-C or SIGTERM: it takes no new connections
/// and lets the open ones finish; a second signal ends it at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to speak HTTP; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value_t = Config::default().http)]
    http: SocketAddr,
    /// Where to speak the Redis protocol; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value_t = Config::default().resp)]
    resp: SocketAddr,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let config = Config { http: args.http, resp: args.resp, ..Config::default() };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(serve(config))
}

async fn serve(config: Config) -> anyhow::Result<()> {
    // Signals are caught before the addresses are announced: whoever reads those may send one at once.
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let server = Server::bind(config).await?;
    announce(&server);

    let (trigger, shutdown) = Shutdown::new();
    let mut running = pin!(server.run(shutdown));
    tokio::select! {
        () = running.as_mut() => return Ok(()),
        () = signals.next() => eprintln!("stopping"),
    }
    trigger.stop();
    tokio::select! {
        () = running => Ok(()),
        () = signals.next() => anyhow::bail!("stopped before all connections were finished"),
    }
}

fn announce(server: &Server) {
    let (http, resp) = (server.http_address(), server.resp_address());
    eprintln!("flowgate {}", env!("FLOWGATE_VERSION"));
    eprintln!("  http  http://{http}");
    eprintln!("  resp  redis://{resp}");
    eprintln!("try: curl http://{http}/healthz");
}

/// The signals that ask for an end: Ctrl-C everywhere, SIGTERM where there is one.
struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    #[cfg(windows)]
    fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: tokio::signal::windows::ctrl_c()? })
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(windows)]
    async fn next(&mut self) {
        self.interrupt.recv().await;
    }
}
