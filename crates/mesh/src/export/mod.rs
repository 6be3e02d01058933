//! Results go to others.

mod element;
mod ipfix;
mod udp;

pub use ipfix::Ipfix;
pub use udp::{CannotExport, Exporter};
