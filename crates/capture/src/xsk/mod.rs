//! AF_XDP sockets: memory into which the network card's driver, or the kernel, writes received frames, and from which
//! it sends frames (`Documentation/networking/af_xdp.rst` in the kernel's source).
//!
//! A [`Umem`] is memory in chunks of one size. A chunk belongs either to the process or to the kernel, and is
//! exchanged through the four rings of a [`Socket`], which is bound to one queue of an interface:
//!
//! | ring | this process | content |
//! |---|---|---|
//! | fill | [produces](Producer) | chunks for frames that will arrive |
//! | receive | [consumes](Consumer) | chunks with frames that have arrived |
//! | transmit | produces | chunks with frames to send |
//! | completion | consumes | chunks whose frames were sent |
//!
//! Frames arrive once an XDP program redirects them to the socket. Sending requires no program; [`Transmitter`]
//! implements it:
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! let mut transmitter = wirestamp_capture::xsk::Transmitter::open(2, 0, 1024)?; // of interface 2
//! let queued = transmitter.queue(|frame| {
//!     frame[..6].fill(0xff);
//!     60
//! });
//! assert!(queued, "all of its memory is free");
//! transmitter.flush()?;
//! while transmitter.in_flight() > 0 {
//!     transmitter.reclaim()?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here locks or starts a thread. Each end of a ring has one owner, on any thread.

mod ring;
mod socket;
mod transmitter;
mod umem;

pub use ring::{Consumer, Descriptor, Entry, Producer};
pub use socket::{Bound, Rings, Sizes, Socket, Statistics};
pub use transmitter::Transmitter;
pub use umem::{HEADROOM, Umem};
