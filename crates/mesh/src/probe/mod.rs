//! The probe: measures the assigned tasks and delivers the observations to the collector.

mod active;
mod assignment_store;
mod assignment_stream;
mod carrier;
mod channel;
mod clock_sources;
mod daemon;
mod delay_observer;
mod deliver;
mod flow_observer;
mod machine;
mod observer;
mod packet_counter;
mod purpose;
mod runner;
mod shared;
mod shared_spool;
mod tap;
mod test_stats;

use std::io;

use thiserror::Error;
use tonic::Status;

pub use carrier::{Carrier, Direct};
pub use channel::ChannelName;
pub use daemon::{Probe, Settings};
pub use deliver::deliver;
pub use shared_spool::SharedSpool;

use crate::DatabaseError;
use crate::member;

/// Errors of a probe.
#[derive(Debug, Error)]
pub enum Error {
    /// The probe is not a member of the mesh, or cannot call another node.
    #[error(transparent)]
    Member(#[from] member::Error),
    /// The spool cannot be read or written.
    #[error("cannot use the spool: {0}")]
    Spool(#[from] DatabaseError),
    /// The clock cannot be read.
    #[error("cannot read the clock: {0}")]
    Clock(String),
    /// A system file that exists on every Linux machine cannot be read, or a thread cannot be started.
    #[error("cannot read system information: {0}")]
    Machine(io::Error),
}

impl Error {
    /// A call that was rejected or not answered.
    fn refused(node: String, status: Status) -> Self {
        member::Error::Refused { node, status: Box::new(status) }.into()
    }
}
