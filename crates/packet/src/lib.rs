//! Views over frames, flows and packet identity.
//!
//! A captured frame becomes a [`Packet`]: a view that borrows the bytes and knows the packet's
//! [`FlowKey`], its transport payload and, if enough of it was captured, its [`PacketId`], which
//! is the same at every observation point on the path.
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
//! What more a packet says has modules of its own: [`psamp`] chooses packets by hash, so that points
//! choose the same ones, [`iperf3`] reads what that tool's datagrams carry, [`rtp`] the headers of
//! calls and videos, [`sdp`] where signalling says that they go, [`stamp`] reads and writes the packets of active tests, and [`TcpSegment`] which bytes of a
//! conversation a packet has.
//!
//! # No panics
//!
//! Whatever the bytes are, nothing in this crate panics: each function reads only what it has
//! checked to be there, and the tests feed it arbitrary, mutated and truncated frames.

#![forbid(unsafe_code)]

mod capture_loss;
mod flow;
mod frame;
mod identity;
mod internet;
pub mod iperf3;
pub mod psamp;
pub mod rtp;
#[cfg(test)]
mod samples;
pub mod sdp;
pub mod stamp;
mod tcp;

pub use capture_loss::CaptureLoss;
pub use flow::FlowKey;
pub use frame::{LinkType, Packet, ParseError};
pub use identity::{IDENTITY_BYTES, IdentityKey, PacketId};
pub use tcp::TcpSegment;
