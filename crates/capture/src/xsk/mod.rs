//! AF_XDP sockets: memory that the network card's driver, or the kernel in its place, fills with
//! frames and sends frames from (`Documentation/networking/af_xdp.rst` in the kernel's source).
//!
//! A [`Umem`] is memory in chunks of one size. A chunk belongs either to us or to the kernel, and
//! changes hands through the four rings of a [`Socket`], which is bound to one queue of an
//! interface:
//!
//! | ring | we | what goes through it |
//! |---|---|---|
//! | fill | [produce](Producer) | chunks for frames that will arrive |
//! | receive | [consume](Consumer) | chunks with frames that have arrived |
//! | transmit | produce | chunks with frames to be sent |
//! | completion | consume | chunks whose frames have been sent |
//!
//! Frames arrive once an XDP program redirects them to the socket. Sending takes no program;
//! [`Transmitter`] does all of it:
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
//! Nothing here locks or starts a thread. Each end of a ring has one owner, on whichever thread.

mod ring;
mod socket;
mod sys;
mod transmitter;
mod umem;

pub use ring::{Consumer, Descriptor, Entry, Producer};
pub use socket::{Bound, Rings, Sizes, Socket, Statistics};
pub use transmitter::Transmitter;
pub use umem::{HEADROOM, Umem};
