//! Test packets of STAMP, the simple two-way active measurement protocol (RFC 8762, with the session identifier and
//! the extensions of RFC 8972).
//!
//! A sender's packet has its send time. A reflector returns it with the times at which it received and returned it.
//! All numbers are big-endian. Offsets of the fields in bytes:
//!
//! ```text
//!                            open                authenticated
//!                            sent   reflected    sent   reflected
//! sequence number (32 bits)     0           0       0           0
//! timestamp (64)                4           4      16          16
//! error estimate (16)          12          12      24          24
//! session identifier (16)      14          14      26          26
//! receive timestamp (64)                   16                  32
//! sender's sequence number                 24                  48
//! sender's timestamp                       28                  64
//! sender's error estimate                  36                  72
//! sender's TTL (8)                         40                  80
//! HMAC (128)                                       96          96
//! extensions                   44          44     112         112
//! ```
//!
//! TWAMP Light (RFC 5357 appendix I) has the same packets without session identifier and extensions. Its sender's
//! packets have only the first 14 bytes, followed by padding.

mod authentication;
mod error_estimate;
mod extension;
mod packet;
#[cfg(test)]
mod tests;
mod time;
mod value;

pub use authentication::{Key, Mode};
pub use error_estimate::ErrorEstimate;
pub use extension::{Extension, ExtensionFlags, Extensions, extensions};
pub use packet::{NotStamp, Reflected, Sent};
pub use time::{Format, Stamped};
pub use value::{ClassOfService, FollowUp, StampMethod, SyncSource, TimestampInformation, Value};
