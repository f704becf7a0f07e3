//! Counts of the Redis protocol: connections, commands, and each bound that was hit.

use crate::metrics::{Counter, ListenerCounters};

/// The counts since the start. `open` and `occupied` are current values.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// The connections, commands and wrong passwords of the listener.
    pub(crate) listener: ListenerCounters,
    /// Bytes of half-received commands and unread replies on open connections.
    pub(crate) occupied: Counter,
    /// Connections that were closed because they broke the protocol or its bounds.
    pub(crate) protocol_errors: Counter,
    /// Connections that were closed because they spoke HTTP.
    pub(crate) cross_protocol: Counter,
    /// Connections that were closed because the client left too many replies unread.
    pub(crate) backlogs: Counter,
    /// Connections that were closed because the buffers of all clients together took too many bytes.
    pub(crate) crowded: Counter,
    /// Connections that were closed because they were idle for too long.
    pub(crate) idle: Counter,
    /// Wrong passwords that were answered late, because their address had given many.
    pub(crate) held_up: Counter,
    /// Transactions that were refused because they were too long.
    pub(crate) long_transactions: Counter,
}

impl Counters {
    /// Every count with its name, for a report.
    pub(crate) fn list(&self) -> [(&'static str, u64); 14] {
        [
            ("connected_clients", self.listener.open.get()),
            ("total_connections_received", self.listener.connections.get()),
            ("mem_clients_normal", self.occupied.get()),
            ("rejected_connections", self.listener.refused.get()),
            ("total_commands_processed", self.listener.requests.get()),
            ("protocol_errors", self.protocol_errors.get()),
            ("cross_protocol_connections", self.cross_protocol.get()),
            ("client_output_buffer_limit_disconnections", self.backlogs.get()),
            ("evicted_clients", self.crowded.get()),
            ("idle_disconnections", self.idle.get()),
            ("tls_handshake_errors", self.listener.handshakes.get()),
            ("acl_access_denied_auth", self.listener.unauthorized.get()),
            ("delayed_auth_errors", self.held_up.get()),
            ("oversized_transactions", self.long_transactions.get()),
        ]
    }
}
