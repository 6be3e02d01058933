//! Impairments chosen packet by packet, so that the truth about each is known.
//!
//! ```text
//!   source            wire                             sink
//!   [out] ---veth--- [tap-a]   stage   [far] ---veth--- [tap-b]
//!   10.77.3.1                                          10.77.3.2
//!   fd77:3::1                                          fd77:3::2
//! ```
//!
//! A bottleneck ([`crate::PathLab`]) impairs packets as networks do, and says how many it dropped.
//! Here a [`Plan`] decides from a seed and a packet's number what is to happen to that packet, a
//! [`Stage`] does it in user space (the kernel forwards nothing between the two interfaces, which
//! have no addresses), and two records say what was done: the stage's [`Account`], with the
//! kernel's stamp of each arrival at tap A and the times between which each packet was sent on, and
//! the [`Testimony`] of a [`Witness`], with the kernel's stamps and the order of arrivals at tap B.
//! A capture at either tap that has the kernel stamp its packets is given the very same stamps.
//!
//! | file | what it does |
//! |---|---|
//! | `plan.rs` | what is to happen to which packet |
//! | `random.rs` | the generator that the plan draws from |
//! | `queue.rs` | holds frames until they are due |
//! | `stage.rs` | takes frames in, and sends on what is due |
//! | `account.rs` | what the stage did |
//! | `witness.rs` | what came out of it |
//! | `wire.rs` | the namespaces and links |
//! | `socket.rs` | the system calls |

mod account;
mod plan;
mod queue;
mod random;
mod socket;
mod stage;
mod wire;
mod witness;

pub use account::{Account, Passage, Sending};
pub use plan::{Fate, Plan};
pub use stage::{NumberOf, Stage};
pub use wire::{FAR, SINK_V4, SINK_V6, SOURCE_V4, SOURCE_V6, Wire};
pub use witness::{Sighting, Testimony, Witness};
