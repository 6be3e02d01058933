//! Impairments planned for each packet, so that the outcome of each packet is known.
//!
//! ```text
//!   source            wire                             sink
//!   [out] ---veth--- [tap-a]   stage   [far] ---veth--- [tap-b]
//!   10.77.3.1                                          10.77.3.2
//!   fd77:3::1                                          fd77:3::2
//! ```
//!
//! A bottleneck ([`wirestamp_lab::PathLab`]) impairs packets as real networks do, and only counts its drops.
//! Here an [`ImpairmentPlan`] decides the delivery of each packet from a seed and the packet's number.
//! A [`Stage`] in a [`wirestamp_lab::wire::Wire`] executes the plan in user space; the kernel forwards
//! nothing between the two interfaces, which have no addresses. Two records document the result:
//!
//! - [`StageReport`]: the kernel's stamp of each arrival at tap A, and the clock readings before and
//!   after sending each packet.
//! - [`ReferenceReport`] of a [`ReferenceCapture`]: the kernel's stamps and the order of arrivals at
//!   tap B.
//!
//! Any other capture with kernel stamps at these taps reads exactly the same stamps.
//!
//! | file | contents |
//! |---|---|
//! | `plan.rs` | planned delivery of each packet |
//! | `random.rs` | random numbers of the plan |
//! | `queue.rs` | frames that wait until they are due |
//! | `stage.rs` | receives frames, and sends the due ones |
//! | `report.rs` | report of the stage |
//! | `reference.rs` | reference capture after the stage |
//! | `socket.rs` | system calls |

#![forbid(unsafe_code)]

mod plan;
mod queue;
mod random;
mod reference;
mod report;
mod socket;
mod stage;

pub use plan::{ImpairmentPlan, PlannedDelivery};
pub use reference::{ReferenceArrival, ReferenceCapture, ReferenceReport};
pub use report::{SendTimes, StageReport, StagedPacket};
pub use stage::{NumberOf, Stage};
