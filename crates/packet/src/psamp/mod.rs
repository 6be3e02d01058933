//! Packet selection and digests by hash, according to PSAMP (RFC 5475 section 6.2).
//!
//! Two points that hash the same fields with the same function, and keep packets whose hash is in the same range,
//! select the same packets without communication. [`HashSelector`] does that. [`Packet::bob`](crate::Packet::bob) and
//! [`Packet::ipsx`](crate::Packet::ipsx) are the hashes themselves, for digests that are compatible with other
//! implementations of the RFC. For matching within Wirestamp there is [`Packet::identity`](crate::Packet::identity),
//! which has more bits and hashes more bytes.

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
