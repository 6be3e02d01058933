//! Export of results to other systems.

mod element;
mod flows;
mod ipfix;
#[cfg(feature = "kafka")]
mod kafka;
mod poller;
mod udp;
mod values;

pub use ipfix::Ipfix;
#[cfg(feature = "kafka")]
pub use kafka::KafkaExporter;
pub use udp::{CannotExport, Exporter};
