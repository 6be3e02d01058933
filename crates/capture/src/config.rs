//! The request for a capture: interface, method, stamp source, filter, limits.

use crate::affinity::Cores;
use crate::method::{Method, StampSource};
use crate::pipeline::{Limit, Wait};

/// What tcpdump keeps of a packet when it is not told otherwise: more than any packet has.
pub(crate) const LARGEST_PACKET: u32 = 262_144;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Config {
    /// The interface, by its name in the calling thread's network namespace.
    pub interface: String,
    /// How packets are received.
    pub method: Method,
    /// Which clock stamps them.
    pub stamp: StampSource,
    /// Bytes of each packet to keep.
    pub snaplen: u32,
    /// A filter in pcap syntax.
    pub filter: Option<String>,
    /// Whether packets that this machine sends are captured too, where the method sees them.
    pub outgoing: bool,
    /// Bytes of memory for the ring between the kernel and us, or for the queue and the buffers
    /// where there is no ring.
    pub ring_bytes: usize,
    /// Where the threads run: one lane, which is an acquiring and a converting thread, for each. With
    /// several, the kernel spreads the packets over them, flow by flow, and they are merged in the
    /// order of their stamps again, as long as none is later than [`LATENESS`](crate::LATENESS).
    /// The first says where the consumer runs.
    pub lanes: Vec<Cores>,
    /// How the acquisition thread waits.
    pub wait: Wait,
    /// When the capture ends by itself.
    pub limit: Limit,
}

impl Config {
    /// A capture of whole packets on `interface` with the defaults of the command line. Its cores
    /// are chosen for a process with one capture; see [`Cores::choose`] for more.
    #[must_use]
    pub fn new(interface: &str, method: Method, stamp: StampSource) -> Self {
        Self {
            interface: interface.to_owned(),
            method,
            stamp,
            snaplen: LARGEST_PACKET,
            filter: None,
            outgoing: true,
            ring_bytes: 32 << 20,
            lanes: Cores::choose(1),
            wait: Wait::Block { realtime: false },
            limit: Limit::default(),
        }
    }
}
