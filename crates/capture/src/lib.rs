//! Captures packets with precise timestamps.
//!
//! [`Capture::open`] opens a reception method with a timestamp source ([`PAIRS`] lists the supported pairs).
//! [`Capture::run`] runs the three-stage pipeline and passes each packet with its [`Stamp`](wirestamp_clock::Stamp)
//! to a [`Sink`]. The final [`Ledger`] has the outcome of each packet.
//!
//! [`mod@file`] writes and reads capture files. [`capabilities`] reports which pairs an interface supports, and why
//! not the others. [`layers`] follows packets through the layers of their host. [`tune`] tunes the machine. [`xsk`]
//! has AF_XDP sockets, also for senders.
//!
//! System calls are in [`wirestamp_sys`]. `unsafe` here is limited to frames in memory shared with the kernel
//! (`receiver`, `xsk::transmitter`), to calls of libbpf and libpcap that their crates lack (`bpf_program`,
//! `libpcap`), and to the skeletons that libbpf-cargo generates.
#![deny(unsafe_code)]

mod af_xdp;
mod affinity;
mod bpf_program;
pub mod capabilities;
mod capture;
mod card_stamps;
mod config;
mod error;
pub mod events;
mod facts;
pub mod file;
mod filter;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod interface;
pub mod layers;
mod ledger;
mod libpcap;
mod live_ledger;
mod method;
mod packet_socket;
mod pairs;
mod pass;
mod pipeline;
mod pool;
mod receiver;
mod ring;
mod skeletons;
mod socket;
pub mod softirq_cost;
mod source;
mod stop;
pub mod tune;
mod waiter;
pub mod xsk;

pub use affinity::{Cores, ThreadCores};
pub use capture::Capture;
pub use config::{Config, Direction};
pub use error::Error;
pub use facts::Facts;
pub use filter::Filter;
pub use interface::{interface_states, interfaces, link_type};
pub use ledger::Ledger;
pub use live_ledger::LiveLedger;
pub use method::{Method, StampSource};
pub use pairs::{PAIRS, Pair, pair};
pub use pipeline::{CapturedPacket, Limit, MERGE_TIMEOUT, SharedCount, Sink, Wait};
pub use stop::Stop;
pub use wirestamp_packet::CaptureLoss;
