//! Two taps that mirror one sender, before and after a device that is known to the nanosecond: the
//! test set-up of Grigorjew et al., Figure 1.
//!
//! ```text
//!   wire   [far] ---veth--- [tap-b]   sink      second replica, behind the device
//!   source [out] ---veth--- [tap-a]   wire      first replica, before it
//! ```
//!
//! The device under test is the sender itself: it sends the first replica of a packet over one link,
//! waits for the delay of the device, and sends the second over the other. It reads the counter at both,
//! which gives the true delay of each packet.

mod bed;
mod block;
mod frame;
mod round;
mod sender;
mod tap;
mod technique;

pub(crate) use bed::Bed;
pub(crate) use block::{Block, Moments};
pub(crate) use round::Round;
pub(crate) use technique::Technique;
