//! Packet selection and digests by hash, as PSAMP has them (RFC 5475 section 6.2).
//!
//! Two points that hash the same fields of a packet with the same function, and keep the packets
//! whose hash lies in the same range, choose the same packets without talking to each other.
//! [`HashSelector`] does that. [`Packet::bob`](crate::Packet::bob) and
//! [`Packet::ipsx`](crate::Packet::ipsx) are the hashes themselves, for digests that another
//! implementation of the RFC is to understand. For matching within Wirestamp there is
//! [`Packet::identity`](crate::Packet::identity), which has more bits and hashes more bytes.

mod bob;
mod fields;
mod ipsx;
mod range;
mod selector;

pub use bob::bob;
pub use fields::PayloadWindow;
pub use ipsx::ipsx;
pub use range::{HashRange, RangeError};
pub use selector::HashSelector;
