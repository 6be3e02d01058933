//! The table of reception methods and their timestamp sources. The command line prints it, and captures are opened
//! by it.

mod lookup;
mod table;

use wirestamp_clock::Domain;

pub use self::lookup::pair;
pub(crate) use self::table::IN_THE_SOFTIRQ_BY_FUNCTION;
pub use self::table::PAIRS;
use crate::Error;
use crate::bpf_program::Hook;
use crate::config::Direction;
use crate::method::{Method, StampSource};

/// A reception method with one of its timestamp sources, and the properties of the two.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Reception method.
    pub method: Method,
    /// Timestamp source.
    pub stamp: StampSource,
    /// Clock domain of the source.
    pub domain: Domain,
    /// Where on the receive path the clock is read.
    pub taken: &'static str,
    /// Limits on the captured packets or bytes; empty if everything up to the snap length is captured.
    pub limits: &'static str,
    /// Receiver to open.
    pub(crate) receiver: ReceiverKind,
}

/// The implementations of [`crate::receiver::Receiver`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReceiverKind {
    /// [`crate::ring::BlockRing`]
    Blocks,
    /// [`crate::ring::PerFrameRing`]
    PerFrame,
    /// [`crate::socket::Socket`] with [`crate::socket::Recvmsg`]
    Recvmsg,
    /// [`crate::socket::Socket`] with [`crate::socket::Recvmmsg`]
    Recvmmsg,
    /// [`crate::libpcap::LibPcap`]
    LibPcap,
    /// [`crate::af_xdp::AfXdp`]
    AfXdp,
    /// [`crate::pass::Pass`] with a program at that hook
    Pass(Hook),
}

impl Pair {
    /// Checks that the method supports this number of lanes.
    ///
    /// # Errors
    /// There are no lanes, or several lanes of a method whose packets cannot be distributed.
    pub(crate) fn check_lanes(&self, lanes: usize) -> Result<(), Error> {
        match (lanes, self.method) {
            (2.., Method::Ring | Method::Recvmsg | Method::Recvmmsg | Method::LibPcap) | (1, _) => {
                Ok(())
            }
            (lanes, method) => Err(Error::Lanes { lanes, method: method.name() }),
        }
    }

    /// Rejects a capture of outgoing packets only, if the method supports none.
    pub(crate) fn check_direction(&self, direction: Direction) -> Result<(), Error> {
        if direction == Direction::Out && !self.method.takes_outgoing() {
            return Err(Error::Outgoing { method: self.method.name() });
        }
        Ok(())
    }

    /// Clock domain of the kernel's stamp that replaces a missing stamp, if the pair can lack stamps: of the network
    /// card, or of the counter in a tracing program.
    pub(crate) fn fallback(&self) -> Option<Domain> {
        match (self.method, self.stamp) {
            (Method::TracePass, StampSource::Raw) => Some(Domain::Monotonic),
            (method, StampSource::Hardware) if method.runs_xdp() => Some(Domain::Monotonic),
            (_, StampSource::Hardware) => Some(Domain::Realtime),
            _ => None,
        }
    }
}
