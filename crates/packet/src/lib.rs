//! Views over frames, flows and packet identity.
//!
//! A captured frame becomes a [`Packet`]: a view that borrows the bytes and gives access to the packet's [`FlowKey`],
//! its transport payload and, if enough bytes were captured, its [`PacketId`], which is the same at every observation
//! point on the path.
//!
//! ```
//! use wirestamp_packet::{IdentityKey, LinkType, Packet};
//!
//! # let frame = [0u8; 60];
//! match Packet::parse(LinkType::Ethernet, &frame) {
//!     Ok(packet) => match packet.identity(IdentityKey::default()) {
//!         Some(id) => println!("{} {id:?}", packet.flow()),
//!         None => println!("{} captured too short to be recognised", packet.flow()),
//!     },
//!     Err(reason) => println!("{reason}"),
//! }
//! ```
//!
//! Modules for further content: [`iperf3`]
//! parses that tool's datagrams, [`rtp`] the headers of calls and videos, [`rtcp`] the reports on them, [`sdp`] their destinations
//! in signalling, [`sip`] the messages of calls;
//! [`video`] the frames of videos;
//! [`stamp`] parses and writes the packets of active tests; [`TcpSegment`] holds the sequence range of a TCP segment.
//!
//! # No panics
//!
//! No bytes make a function of this crate panic: each function reads only bytes whose presence it has checked. The
//! tests use arbitrary, mutated and truncated frames.

#![forbid(unsafe_code)]

mod capture_loss;
mod encapsulation;
mod flow;
mod frame;
mod identity;
mod internet;
mod ip_header;
pub mod iperf3;
mod link;
mod parse_error;
pub mod rtcp;
pub mod rtp;
#[cfg(test)]
mod samples;
pub mod sdp;
mod segmentation;
mod shard;
pub mod sip;
pub mod stamp;
mod tcp;
pub mod transport_stream;
mod tunnel;
pub mod video;
pub mod wstp;

pub use capture_loss::CaptureLoss;
pub use encapsulation::Encapsulation;
pub use encapsulation::layer::{EncapsulationKind, EncapsulationLayer};
pub use flow::FlowKey;
pub use frame::Packet;
pub use identity::{
    IDENTITY_BYTES, IdentityKey, JoinedDatagram, MatchRule, PacketId, Reassembly, Recognised,
};
pub use ip_header::IpHeader;
pub use link::LinkType;
pub use parse_error::ParseError;
pub use segmentation::Segmentation;
pub use shard::Shard;
pub use tcp::TcpSegment;
