//! Inspects the settings of each server once: a Redis that evicts keys loses counters and bans.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::link::CommandResult;
use super::pool::Pool;
use super::servers::Servers;
use super::wire::{self, Reply};

impl Servers {
    /// Warns of each server that evicts keys, once it can be asked.
    pub(crate) async fn inspect(&self) {
        let pools: Vec<Arc<Pool>> = {
            let pools = self.pools.lock();
            pools.values().filter(|pool| !pool.node.is_inspected.load(Relaxed)).cloned().collect()
        };
        for pool in pools {
            let Ok(link) = pool.link() else { continue };
            let Ok(arrival) = link.send(1, |out| wire::command(out, &[b"INFO", b"memory"])) else { continue };
            let Ok(CommandResult::Reply(reply)) = arrival.await else { continue };
            let node = &pool.node;
            node.is_inspected.store(true, Relaxed);
            if let Some(policy) = eviction(&reply) {
                const WARNING: &str = "this Redis evicts keys when it is full, and with them counters and bans: set \
                                       maxmemory-policy to noeviction";
                tracing::warn!(redis = %node.target, policy, "{WARNING}");
            }
        }
    }
}

/// The `maxmemory-policy` if it evicts keys; `None` also if the server does not tell it.
fn eviction(info: &Reply) -> Option<&str> {
    let Reply::Text(info) = info else { return None };
    let lines = std::str::from_utf8(info).ok()?.lines();
    let policy = lines.filter_map(|line| line.strip_prefix("maxmemory_policy:")).next()?;
    Some(policy.trim()).filter(|policy| *policy != "noeviction")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_policies_are_recognized() {
        let of = |info: &str| eviction(&Reply::Text(info.as_bytes().into())).map(str::to_owned);
        assert_eq!(of("# Memory\r\nmaxmemory_policy:volatile-ttl\r\nx:1\r\n").as_deref(), Some("volatile-ttl"));
        assert_eq!(of("maxmemory_policy:noeviction\r\n"), None);
        assert_eq!(of("# Memory\r\n"), None);
        assert_eq!(eviction(&Reply::Error("NOPERM".to_owned())), None);
    }
}
