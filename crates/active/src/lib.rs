//! Active tests by STAMP (RFC 8762, with the extensions of RFC 8972): a [`Sender`](sender::Sender) and
//! a [`Reflector`](reflector::Reflector).
//!
//! The kernel stamps packets on both sides: when it receives one from the driver, and when it hands one
//! to the driver. The transmit stamp is known only after the packet has left. The sender uses it instead
//! of the time in the packet. The reflector sends it with its next answer, in the follow-up telemetry of
//! RFC 8972 section 4.7, if the sender requests that.
//!
//! | file | contents |
//! |---|---|
//! | `system_clock.rs` | system clock and its error bound |
//! | `socket/` | UDP with kernel stamps |
//! | `reflector/` | answers to packets; `rate_limit.rs` limits those of a session; `serve.rs` runs the sockets |
//! | `sender/` | packets, answers and clock offsets (`clock_exchange.rs`); `run.rs` runs the socket |
//! | `observer.rs` | notifications for each packet |

#![forbid(unsafe_code)]

mod observer;
pub mod reflector;
pub mod sender;
mod socket;
mod system_clock;

pub use observer::{PacketObserver, TestPacket};
pub use socket::SocketError;
pub use system_clock::{ClockState, KernelClock, SystemClock};

/// The port assigned by IANA to STAMP and TWAMP (RFC 8762 section 4.1).
pub const PORT: u16 = 862;

/// Bytes of the headers before a payload: Ethernet, IP, UDP.
const HEADERS_V4: usize = 14 + 20 + 8;
const HEADERS_V6: usize = 14 + 40 + 8;

/// Bytes on the wire of a packet with `payload` bytes of payload.
fn on_wire(payload: usize, is_ipv4: bool) -> u32 {
    let headers = if is_ipv4 { HEADERS_V4 } else { HEADERS_V6 };
    u32::try_from(payload + headers).unwrap_or(u32::MAX)
}

/// The number with these low 32 bits that is nearest to `expected`.
fn nearest(expected: u64, low: u32) -> u64 {
    let ahead = low.wrapping_sub(low_half(expected)).cast_signed();
    expected.checked_add_signed(ahead.into()).unwrap_or(low.into())
}

/// The low 32 bits of a number, which packets carry.
fn low_half(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_continue_beyond_32_bits() {
        let wrap = 1 << 32;
        assert_eq!(nearest(0, 5), 5);
        assert_eq!(nearest(wrap - 1, 2), wrap + 2);
        assert_eq!(nearest(wrap + 1, u32::MAX), wrap - 1);
        assert_eq!(nearest(1, u32::MAX), u64::from(u32::MAX));
    }
}
