//! Packets that foreign exporters report: digests of them as IPFIX over UDP (PSAMP, RFC 5476).
//!
//! Such datagrams prove nothing: whoever can send with the address of an exporter can report what never passed. So
//! only what a task names is heard, an address and an observation domain; the rest is counted and left.
//!
//! Nothing is kept of it but results. What was reported and not settled is unknown behind a restart, and nobody's
//! loss: there is nobody who could report it again.

mod heard;
mod listener;
mod path;

pub use heard::Heard;
pub use listener::Listener;
