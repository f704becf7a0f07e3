//! How the servers of the store stand, for people.

use std::sync::PoisonError;

use super::servers::Servers;

/// A server as this node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerStanding {
    pub(crate) address: String,
    pub(crate) is_away: bool,
    pub(crate) connections: usize,
}

impl Servers {
    /// The servers that are known, by address.
    pub(crate) fn standings(&self) -> Vec<ServerStanding> {
        let pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let mut standings: Vec<ServerStanding> = pools.values().map(|pool| pool.node.standing()).collect();
        standings.sort_by(|a, b| a.address.cmp(&b.address));
        standings
    }
}
