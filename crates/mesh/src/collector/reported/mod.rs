//! Packets reported by foreign exporters: digests as IPFIX over UDP (PSAMP, RFC 5476).
//!
//! Datagrams are not authenticated: anyone who can send from an exporter's address can report packets. So only
//! addresses and observation domains that a task names are accepted; others are counted and dropped.
//!
//! Only results are stored. Reports that are not settled are undetermined after a restart, and excluded from loss,
//! because exporters do not send them again.

mod exporter_stats;
mod listener;
mod path;

pub use exporter_stats::ExporterStats;
pub use listener::Listener;
