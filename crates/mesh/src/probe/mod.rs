//! The probe: measures what the controller says, and delivers it to the collector.

mod active;
mod attend;
mod carrier;
mod channel;
mod clock_sources;
mod deliver;
mod duties;
mod flows;
mod heard;
mod look;
mod machine;
mod run;
mod runner;
mod stock;
mod tally;
mod tap;
mod watch;

use std::io;

use thiserror::Error;
use tonic::Status;

pub use carrier::{Carrier, Direct};
pub use channel::ChannelName;
pub use deliver::deliver;
pub use run::{Probe, Settings};
pub use stock::Stock;

use crate::DatabaseError;
use crate::member;

/// Why a probe cannot do something.
#[derive(Debug, Error)]
pub enum Error {
    /// It does not belong to the mesh, or cannot call another node.
    #[error(transparent)]
    Member(#[from] member::Error),
    /// What is held for the collector cannot be read or written.
    #[error("what is held for the collector: {0}")]
    Spool(#[from] DatabaseError),
    /// The clock cannot be read.
    #[error("cannot read the clock: {0}")]
    Clock(String),
    /// Something that every Linux machine has is not there.
    #[error("cannot ask the system: {0}")]
    Machine(io::Error),
}

impl Error {
    /// Somebody who was called says no, or is not there.
    fn refused(node: String, status: Status) -> Self {
        member::Error::Refused { node, status: Box::new(status) }.into()
    }
}
