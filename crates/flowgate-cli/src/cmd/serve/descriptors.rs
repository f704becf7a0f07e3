//! File descriptors: each connection takes one, and a process has few unless it asks the system for more.

use std::fmt;

use flowgate_engine::config::{Config, ListenAddress};

/// The descriptors that the server uses besides connections: listeners, event loops, files that it reads, the store.
const RESERVE: u64 = 256;

/// The system allows fewer descriptors than the configuration may need.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shortage {
    needed: u64,
    allowed: u64,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shortage { needed, allowed } = self;
        write!(
            f,
            "max_connections may need {needed} open files and the system allows {allowed}: clients beyond that will \
             wait. Raise the limit (ulimit -n, LimitNOFILE= of systemd) or lower max_connections in [server]"
        )
    }
}

/// Raises the limit of this process to what `config` may need, as far as the system lets it.
///
/// Aims at every listener being full; one full listener is the minimum.
pub(super) fn provide(config: &Config) -> Result<(), Shortage> {
    let one_door = (config.server.max_connections as u64).saturating_add(RESERVE);
    let allowed = raise_to(needed(config));
    if allowed < one_door { Err(Shortage { needed: one_door, allowed }) } else { Ok(()) }
}

fn needed(config: &Config) -> u64 {
    let listen = &config.listen;
    let listeners = [&listen.http, &listen.resp, &listen.grpc]
        .into_iter()
        .filter(|address| **address != ListenAddress::Off)
        .count();
    (config.server.max_connections as u64).saturating_mul(listeners as u64).saturating_add(RESERVE)
}

/// Raises the limit to `needed` if the system lets it, and returns the limit in force.
#[cfg(unix)]
fn raise_to(needed: u64) -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` means that the system sets no limit.
    let Some(allowed) = current else { return u64::MAX };
    if allowed >= needed {
        return allowed;
    }
    let most = maximum.map_or(needed, |maximum| maximum.min(needed));
    // Only a privileged process can raise `maximum`. Every process can raise `current` up to `maximum`.
    let attempts = [
        Rlimit { current: Some(needed), maximum: Some(maximum.map_or(needed, |maximum| maximum.max(needed))) },
        Rlimit { current: Some(most), maximum },
    ];
    let raised = attempts.into_iter().find(|attempt| setrlimit(Resource::Nofile, *attempt).is_ok());
    raised.and_then(|raised| raised.current).unwrap_or(allowed)
}

#[cfg(not(unix))]
fn raise_to(_: u64) -> u64 {
    // These systems have no such limit.
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_door_counts() {
        let needed = |toml: &str| needed(&Config::from_toml(toml).unwrap());
        assert_eq!(needed(""), 2 * 10_000 + RESERVE);
        assert_eq!(needed("listen = { http = 'off' }\nserver = { max_connections = 100 }"), 100 + RESERVE);
    }

    #[cfg(unix)]
    #[test]
    fn more_than_the_system_has_is_said() {
        let mut config = Config::default();
        config.server.max_connections = usize::MAX;
        let Shortage { needed, allowed } = provide(&config).unwrap_err();
        assert!(allowed > 0 && allowed < needed);
    }
}
