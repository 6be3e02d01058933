//! Active tests by STAMP (RFC 8762, with the extensions of RFC 8972): a [`Sender`](sender::Sender) and
//! a [`Reflector`](reflector::Reflector).
//!
//! Packets are stamped by the kernel on both sides: when it takes one from the driver, and when it gives
//! one to the driver. The second is known only when the packet has left. The sender puts it in the place
//! of what it wrote into the packet; the reflector tells it with the next packet that it returns, in the
//! follow-up telemetry of RFC 8972 section 4.7, where the sender asks for that.
//!
//! | file | what it does |
//! |---|---|
//! | `system_clock.rs` | reads the system clock, and how right it is |
//! | `socket/` | UDP with the kernel's stamps |
//! | `reflector/` | what is returned; `serve.rs` does it |
//! | `sender/` | what is sent and what the answers say, also of both clocks (`exchange.rs`); `run.rs` does it |
//! | `witness.rs` | what others may hear of each packet |

#![forbid(unsafe_code)]

pub mod reflector;
pub mod sender;
mod socket;
mod system_clock;
mod witness;

pub use socket::SocketError;
pub use system_clock::{ClockState, Kernel, SystemClock};
pub use witness::{Passage, Witness};

/// The port that IANA has given to both ends of STAMP and TWAMP (RFC 8762 section 4.1).
pub const PORT: u16 = 862;

/// Headers in front of a payload: Ethernet, IP, UDP.
const HEADERS_V4: usize = 14 + 20 + 8;
const HEADERS_V6: usize = 14 + 40 + 8;

/// Bytes on the wire of a packet with so many of payload.
fn on_wire(payload: usize, is_ipv4: bool) -> u32 {
    let headers = if is_ipv4 { HEADERS_V4 } else { HEADERS_V6 };
    u32::try_from(payload + headers).unwrap_or(u32::MAX)
}

/// The number that ends in these 32 bits and is nearest to the one expected.
fn nearest(expected: u64, low: u32) -> u64 {
    let ahead = low.wrapping_sub(low_half(expected)).cast_signed();
    expected.checked_add_signed(ahead.into()).unwrap_or(low.into())
}

/// The part of a number that packets carry.
fn low_half(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_where_their_32_bits_end() {
        let wrap = 1 << 32;
        assert_eq!(nearest(0, 5), 5);
        assert_eq!(nearest(wrap - 1, 2), wrap + 2);
        assert_eq!(nearest(wrap + 1, u32::MAX), wrap - 1);
        assert_eq!(nearest(1, u32::MAX), u64::from(u32::MAX));
    }
}
