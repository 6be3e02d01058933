//! Results go to others.

mod asking;
mod element;
mod flows;
mod ipfix;
mod udp;
mod values;

pub use ipfix::Ipfix;
pub use udp::{CannotExport, Exporter};
