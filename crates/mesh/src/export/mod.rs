//! Export of results to other systems.

mod element;
mod flows;
mod ipfix;
mod poller;
mod udp;
mod values;

pub use ipfix::Ipfix;
pub use udp::{CannotExport, Exporter};
