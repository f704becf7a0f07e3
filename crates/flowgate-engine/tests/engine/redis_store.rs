//! Redis as the store: the same answers as in memory.

mod agree;
mod joint;
mod long_logs;
mod rollback_order;
mod rollbacks;
mod shared_bans;
mod sharing;
mod unreadable;
mod vectors;
