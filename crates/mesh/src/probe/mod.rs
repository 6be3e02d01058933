//! The probe: measures what the controller says, and delivers it to the collector.

mod active;
mod attend;
mod channel;
mod deliver;
mod duties;
mod flows;
mod keepers;
mod look;
mod machine;
mod membership;
mod run;
mod runner;
mod stock;
mod tally;
mod tap;
mod watch;

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use tonic::{Code, Status};

pub use channel::ChannelName;
pub use deliver::deliver;
pub use membership::{enrol, renew};
pub use run::{Probe, Settings};
pub use stock::Stock;

use crate::transport::{Unusable, reason};
use crate::{DatabaseError, pki};

/// Why a probe cannot do something.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no connection to be made.
    #[error(transparent)]
    Connection(#[from] Unusable),
    /// A key or a certificate is not as it should be.
    #[error(transparent)]
    Certificate(#[from] pki::Error),
    /// The other side says no, or is not there.
    #[error("{node}: {}", reason(status))]
    Refused {
        /// Who was called, and where.
        node: String,
        /// What it says.
        status: Box<Status>,
    },
    /// The controller has signed something else.
    #[error("the controller answers with the certificate of another key")]
    AnotherKey,
    /// What is held for the collector cannot be read or written.
    #[error("what is held for the collector: {0}")]
    Spool(#[from] DatabaseError),
    /// It was not let in yet.
    #[error("there is no {}: a probe is let in with a token, which `wirestamp pki token` makes", .0.display())]
    NotLetIn(PathBuf),
    /// Its credentials cannot be read or written.
    #[error("cannot use credentials: {0}")]
    Credentials(io::Error),
    /// Its credentials are somebody else's.
    #[error("the certificate is none of a probe")]
    NobodysCertificate,
    /// The clock cannot be read.
    #[error("cannot read the clock: {0}")]
    Clock(String),
    /// Something that every Linux machine has is not there.
    #[error("cannot ask the system: {0}")]
    Machine(io::Error),
}

impl Error {
    /// Whether it may be gone when the same is tried again: nobody was reached, or nobody who could help.
    fn may_pass(&self) -> bool {
        match self {
            Self::Refused { status, .. } => status.code() == Code::Unavailable,
            _ => false,
        }
    }
}
