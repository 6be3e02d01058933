//! Captures packets and stamps them.
//!
//! [`Capture::open`] sets up a reception method with a timestamp source ([`PAIRS`] lists which go
//! together), [`Capture::run`] runs the three-stage pipeline and hands every packet with its
//! [`Stamp`](wirestamp_clock::Stamp) to a [`Sink`]. The [`Ledger`] at the end accounts for each
//! packet. [`mod@file`] writes and reads capture files. [`capabilities`] says which pairs an
//! interface can do, and why not the others. [`layers`] follows packets through their host. [`tune`]
//! prepares the machine. [`xsk`] has AF_XDP
//! sockets for whoever wants to send through them too.
//!
//! `unsafe` is confined to memory that the kernel fills, `mapping`, `receiver`, `ring`, `socket`,
//! `libpcap`, `vlan`, `xsk`, `af_xdp`, `pass`, `bpf_program` and `pipeline`, and to what the
//! libraries lack: the system calls of `packet_socket`, `interface`, `card_stamps`,
//! `capabilities::ethtool`, `tune::ethtool` and `priority`, the type of `filter`'s instructions, and
//! the C library's `file::local_time`.
#![deny(unsafe_code)]

mod af_xdp;
mod affinity;
mod bpf_program;
pub mod capabilities;
mod capture;
mod card_stamps;
mod config;
mod error;
mod facts;
mod fanout;
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
mod pass;
mod pipeline;
mod pool;
mod receiver;
mod ring;
mod socket;
pub mod softirq_cost;
mod source;
mod stop;
pub mod tune;
mod vlan;
mod waiter;
pub mod xsk;

pub use affinity::Cores;
pub use capture::Capture;
pub use config::Config;
pub use error::Error;
pub use facts::Facts;
pub use filter::Filter;
pub use interface::interfaces;
pub use ledger::Ledger;
pub use live_ledger::LiveLedger;
pub use method::{Method, PAIRS, Pair, StampSource, pair};
pub use pipeline::{CapturedPacket, LATENESS, Limit, Sink, Wait};
pub use stop::Stop;
pub use wirestamp_packet::CaptureLoss;
