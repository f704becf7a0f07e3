//! `flowgate serve`: runs the server until it is asked to stop.

mod admin_token;
mod announcement;
mod descriptors;
mod systemd;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use anyhow::Context;
use flowgate_engine::config::{Config, Flag, Input, ListenAddress, LoadedConfig, Purpose};
use flowgate_server::{Author, POLL_INTERVAL, Reload, Reloader, RulesFile, Server, Shutdown};

use crate::configuration::{self, Environment};
use crate::signals::{Signal, Signals};
use crate::{logging, settings, state_directory};
use systemd::Notifier;

/// Serve the Redis protocol and HTTP
///
/// Needs no configuration and no other service. Rules and lists are put in force anew when their files change, and
/// at once on SIGHUP. Stops on Ctrl-C or SIGTERM: it takes no new connections and lets the open ones finish; a
/// second signal ends it at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The configuration file [default: $FLOWGATE_CONFIG, ./flowgate.toml, ~/.config/flowgate/flowgate.toml,
    /// /etc/flowgate/flowgate.toml; the defaults if there is none]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A Koala rule file to serve over HTTP, whatever the configuration says; see docs/koala.md
    #[arg(long, value_name = "RULEFILE")]
    koala: Option<PathBuf>,
    /// Where to speak HTTP, whatever the configuration says: an address (port 0 takes a free one), unix:PATH or off
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    http: Option<String>,
    /// Where to speak the Redis protocol, whatever the configuration says
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    resp: Option<String>,
}

/// A value of `[listen]`; the reader of the configuration checks it.
fn listen_address(text: &str) -> Result<String, String> {
    let known = text == "off" || text.starts_with("unix:") || text.parse::<SocketAddr>().is_ok();
    if known {
        return Ok(text.to_owned());
    }
    Err(format!("expected an address with a port, unix:PATH or off; {}", ListenAddress::suggestion(text)))
}

/// The source of the configuration, at the start and at each reload.
#[derive(Clone)]
struct Source {
    /// The file is searched for once, at the start: if it disappears later, another file must not take its place.
    file: Option<PathBuf>,
    environment: Environment,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let mut environment = Environment::of_process()?;
    // The reader of the configuration checks options as it checks the values of a file.
    for (name, key, address) in [("--http", "http", args.http), ("--resp", "resp", args.resp)] {
        if let Some(value) = address {
            environment.set(Flag { name, section: "listen", key, value });
        }
    }
    if let Some(rules) = args.koala {
        let Ok(value) = rules.into_os_string().into_string() else { anyhow::bail!("the path of --koala is not UTF-8") };
        environment.set(Flag { name: "--koala", section: "koala", key: "rules", value });
    }
    let source = Source { file: configuration::find(args.config), environment };
    source.file.iter().try_for_each(|file| configuration::refuse_foreign(file))?;
    let loaded = configuration::load(source.file.as_deref(), &source.environment)?;
    logging::start(&loaded.config.log);
    if !loaded.warnings.is_empty() {
        tracing::warn!("the configuration has warnings\n{}", loaded.warnings);
    }

    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if loaded.config.server.threads > 0 {
        runtime.worker_threads(loaded.config.server.threads);
    }
    let runtime = runtime.enable_all().build().context("cannot start the runtime")?;
    let served = runtime.block_on(serve(source, loaded));
    // Tasks that are left after the drain are abandoned: they may never end.
    runtime.shutdown_background();
    served
}

async fn serve(source: Source, loaded: LoadedConfig) -> anyhow::Result<()> {
    // Signals are caught before the addresses are announced: a program that reads the addresses may send a signal at once.
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let Some(server) = bind(&loaded.config, &mut signals).await? else {
        eprintln!("stopping");
        return Ok(());
    };
    let made_token = admin_token::provide(&server, &loaded.config);
    if let Err(shortage) = descriptors::provide(&loaded.config) {
        tracing::warn!("{shortage}");
    }
    if let Err(scarcity) = crate::available_memory::check(&loaded.config) {
        tracing::warn!("{scarcity}");
    }
    if let Some(directory) = std::env::var_os("FLOWGATE_CONSOLE_DIR") {
        server.set_console_directory(directory.into());
    }
    // Files are watched before the addresses are announced: a program that reads the addresses may change a file at once.
    let config = loaded.config.clone();
    let reloader = Arc::new(watch(&server, source.clone(), loaded).context("cannot watch the configuration")?);
    announcement::announce(&server, source.file.as_deref(), &config, made_token.as_ref());
    settings::log(&config);
    administer(&server, source, &reloader);
    let mut attempts = reloader.attempts();
    let notifier = Notifier::of_process();
    notifier.tell(systemd::READY);

    let (trigger, shutdown) = Shutdown::new();
    let mut running = pin!(server.run(shutdown));
    loop {
        tokio::select! {
            ended = running.as_mut() => return Ok(ended?),
            signal = signals.next() => match signal {
                Signal::Reload => {
                    notifier.tell(systemd::RELOADING);
                    reloader.reload(Author::SIGHUP);
                }
                Signal::Stop => break,
            },
            attempt = attempts.changed() => {
                attempt.context("the thread that reads the configuration has failed")?;
                notifier.tell(systemd::READY);
            }
        }
    }
    eprintln!("stopping");
    notifier.tell(systemd::STOPPING);
    trigger.stop();
    loop {
        tokio::select! {
            ended = running.as_mut() => return Ok(ended?),
            signal = signals.next() => if signal == Signal::Stop {
                anyhow::bail!("stopped before all connections were finished");
            }
        }
    }
}

/// The server; `None` if it was told to stop first. A start takes long if it waits for another server, or reads many
/// counters.
async fn bind(config: &Config, signals: &mut Signals) -> anyhow::Result<Option<Server>> {
    let state = state_directory::find();
    let mut binding = pin!(Server::bind_in(config, state.as_deref()));
    loop {
        tokio::select! {
            bound = binding.as_mut() => return Ok(Some(bound?)),
            signal = signals.next() => if signal == Signal::Stop {
                return Ok(None);
            }
        }
    }
}

fn watch(server: &Server, source: Source, loaded: LoadedConfig) -> std::io::Result<Reloader> {
    let service = server.service.clone();
    let load = Box::new(move || configuration::load(source.file.as_deref(), &source.environment));
    Reload { service, loaded, load, certificates: server.certificates.clone(), poll: POLL_INTERVAL }.start()
}

/// Lets administrators change the configuration file, if there is one.
fn administer(server: &Server, source: Source, reloader: &Arc<Reloader>) {
    let Source { file, environment } = source;
    if let Some(path) = file {
        let load = Box::new(move |input: Input<'_>| configuration::load_input(input, &environment, Purpose::Serve));
        server.administer(RulesFile { path, load, reloader: Arc::clone(reloader) });
    }
}
