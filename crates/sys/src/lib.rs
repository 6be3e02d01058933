//! System calls that the standard library lacks, each behind a safe function where that is possible.
//!
//! One subject, one module:
//!
//! - [`clock`]: the kernel's clocks, adjtimex(2).
//! - [`control_message`]: timestamps, lengths and VLAN tags that the kernel passes with packets.
//! - [`ethtool`]: settings and abilities of network drivers.
//! - [`interface`]: network interfaces by name and index.
//! - [`mmap`]: memory shared with the kernel, and registers of devices.
//! - [`netlink`]: one request and its answer, generic netlink among them.
//! - [`netns`]: network namespaces.
//! - [`packet_socket`]: sockets that receive and send whole frames.
//! - [`plain`]: types that the kernel reads and writes as plain bytes.
//! - [`process`]: signals, and child processes that are set up between fork and exec.
//! - [`scheduling`]: cores, policies and priorities of threads.
//! - [`socket`]: socket options, and messages with control messages.
//! - [`user`]: users of this machine, and the change of this process to one of them.
//!
//! `rustix` makes the calls that it supports. This crate depends on no other crate of the workspace.

#![deny(unsafe_code)]

pub mod clock;
pub mod control_message;
pub mod ethtool;
pub mod interface;
pub mod mmap;
pub mod netlink;
pub mod netns;
pub mod packet_socket;
pub mod plain;
pub mod process;
pub mod scheduling;
pub mod socket;
pub mod user;
