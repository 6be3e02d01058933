//! Capture files: pcapng in nanoseconds out; pcapng and classic pcap in.
//!
//! Beside what every tool reads, our interface block carries a [`Provenance`] as a comment: which
//! clock made the stamps, and how wrong they can be.

mod buffer;
mod provenance;
mod reader;
mod writer;

pub use provenance::Provenance;
pub use reader::{Packet, Reader};
pub use writer::Writer;
