//! The mesh: several machines measure together.
//!
//! So far there are its foundations. An authority of its own signs the certificates with which probes,
//! controller, collectors and people know each other, and takes them back ([`pki`]). What is wanted of the
//! probes is described by a [`task`]. What a probe has for the collector waits in a [`spool`]. The
//! [`collector`] makes results of what two points saw.

#![forbid(unsafe_code)]

pub mod collector;
mod name;
pub mod pki;
pub mod spool;
pub mod task;

pub use name::{Name, NotAName};
