//! The probe: measures the assigned tasks and delivers the observations to the collector.

mod active;
mod answer_log;
mod assignment_store;
mod assignment_stream;
mod backlog;
mod carrier;
mod carrier_troubles;
mod channel;
mod clock_sources;
mod daemon;
mod delay_observer;
mod deliver;
mod deliveries;
mod flow_observer;
#[cfg(feature = "kafka")]
pub(crate) mod kafka;
mod machine;
mod observer;
mod packet_counter;
mod purpose;
mod runner;
mod shared;
mod shared_spool;
mod tap;
mod test_stats;
mod troubles;

use std::io;

use thiserror::Error;
use tonic::{Code, Status};

pub use carrier::{Carrier, Direct};
pub use carrier_troubles::CarrierTroubles;
pub use channel::ChannelName;
pub use daemon::{Probe, Settings};
pub use deliver::deliver;
#[cfg(feature = "kafka")]
pub use kafka::Kafka;
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
    #[error(transparent)]
    Spool(#[from] DatabaseError),
    /// Kafka does not accept the batches.
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Kafka(#[from] crate::kafka::Error),
    /// The clock cannot be read.
    #[error("cannot read the clock: {0}")]
    Clock(String),
    /// A system file that exists on every Linux machine cannot be read, or a thread cannot be started.
    #[error("cannot read system information: {0}")]
    Machine(io::Error),
}

impl Error {
    /// Whether the controller refused this probe, because another one with the same certificate is connected.
    fn is_excluded(&self) -> bool {
        let Self::Member(member::Error::Refused { status, .. }) = self else { return false };
        status.code() == Code::AlreadyExists
    }

    /// Whether the certificate of this probe was revoked.
    fn is_revoked(&self) -> bool {
        matches!(self, Self::Member(error) if error.is_revoked())
    }

    /// A call that was rejected or not answered.
    fn refused(node: String, status: Status) -> Self {
        member::Error::Refused { node, status: Box::new(status) }.into()
    }
}
