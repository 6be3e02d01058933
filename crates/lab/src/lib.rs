//! Test beds of network namespaces that clean up after themselves.
//!
//! A bed consists of *anonymous* namespaces: they have no name in `/run/netns`, and the process holds
//! them by file descriptor. When the last descriptor is closed, the kernel removes them with all
//! interfaces, queues and routes. It also closes the descriptors of a killed process, so no cleanup
//! code is needed.
//!
//! - [`Netns`]: one namespace; sockets and commands inside it.
//! - [`PathLab`]: source, router with a bottleneck, sink, and a tap before and after the bottleneck.
//! - [`MeshLab`]: the same with two routers, and a separate management network.
//! - [`wire::Wire`]: source and sink with a host between them that forwards nothing.
//! - [`up`], [`down`], [`run`]: the same bed with names, for people and scripts.
//!
//! Addresses exist only inside the namespaces, and no interface of the machine is connected to
//! them: traffic cannot leave a bed.

#![forbid(unsafe_code)]

mod chain;
mod error;
mod impairments;
mod iproute;
mod link;
mod mesh;
mod path;
mod privilege;
mod registry;
pub mod results;
mod run;
mod truth;
pub mod wire;

pub use chain::PathLab;
pub use error::LabError;
pub use impairments::{Impairments, Selector};
pub use link::{EGRESS, SOURCE_INTERFACE, TAP_A, TAP_B};
pub use mesh::{CONTROLLER_V4, LAST_EGRESS, MeshLab};
pub use path::{SINK_V4, SINK_V6, SOURCE_V4, SOURCE_V6};
pub use privilege::{MissingPrivilege, check as check_privilege};
pub use registry::{PREFIX, down, up};
pub use run::run;
pub use truth::BottleneckCounters;
pub use wirestamp_sys::netns::Netns;
