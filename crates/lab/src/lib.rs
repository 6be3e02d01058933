//! Test beds of network namespaces that leave nothing behind.
//!
//! A bed is made of *anonymous* namespaces: they have no name in `/run/netns`, the process holds
//! them by file descriptor, and the kernel takes them down, with every interface, queue and route
//! inside, when the last descriptor is closed. It closes them for a process that was killed as it
//! does for one that ended well, so there is nothing to clean and no handler that could be missed.
//!
//! - [`Netns`]: one namespace; sockets and commands inside it.
//! - [`PathLab`]: source, router with a bottleneck, sink, and a tap before and after the bottleneck.
//! - [`MeshLab`]: the same with two routers, and a network beside it for those who manage.
//! - [`impair::Wire`]: source and sink with a stage between that delays, drops, copies and reorders
//!   packets as a plan says, so that what happened to each is known.
//! - [`up`], [`down`], [`run`]: the same bed with names, for people and scripts.
//!
//! Addresses exist only inside the namespaces, and no interface of the machine is connected to
//! them: traffic in a bed cannot leave it.

mod chain;
mod error;
pub mod impair;
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

pub use error::LabError;
pub use impairments::{Impairments, Selector};
pub use mesh::{CONTROLLER_V4, LAST_EGRESS, MeshLab};
pub use path::{
    EGRESS, PathLab, SINK_V4, SINK_V6, SOURCE_INTERFACE, SOURCE_V4, SOURCE_V6, TAP_A, TAP_B,
};
pub use privilege::{MissingPrivilege, check as check_privilege};
pub use registry::{PREFIX, down, up};
pub use run::run;
pub use truth::BottleneckCounters;
pub use wirestamp_sys::netns::Netns;
