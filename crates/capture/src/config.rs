//! The request for a capture: interface, method, stamp source, filter, limits.

use crate::affinity::Cores;
use crate::method::{Method, StampSource};
use crate::pipeline::{Limit, SharedCount, Wait};

/// Default snap length in bytes, as in tcpdump.
pub(crate) const LARGEST_PACKET: u32 = 262_144;

/// Default memory of a receiver in bytes.
const RING_BYTES: usize = 32 << 20;
/// The same where each packet takes the memory of a full frame, and waits for a thread that stamps it: 39,936 packets
/// of an interface with an MTU of 1500, which arrive in 80 ms at 500,000 packets a second. The thread may lose its core
/// for longer than 32 ms, for which the other default is enough.
const PER_FRAME_RING_BYTES: usize = 64 << 20;

/// The packets of an interface that are captured, by their direction as seen from this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Packets that this machine receives.
    In,
    /// Packets that this machine sends. A packet on loopback is received too, and belongs to [`Direction::In`] only.
    Out,
    /// All packets.
    #[default]
    Inout,
}

/// Settings of a capture.
#[derive(Clone, Debug)]
pub struct Config {
    /// Interface name in the calling thread's network namespace.
    pub interface: String,
    /// Reception method.
    pub method: Method,
    /// Timestamp source.
    pub stamp: StampSource,
    /// Snap length: bytes kept of each packet.
    pub snaplen: u32,
    /// Filter in pcap syntax.
    pub filter: Option<String>,
    /// Direction of the captured packets. A method that does not support outgoing packets
    /// ([`Method::takes_outgoing`]) captures the incoming ones of [`Direction::Inout`], and rejects [`Direction::Out`].
    pub direction: Direction,
    /// Whether the interface is in promiscuous mode, if the method has one: then packets for other hosts are captured
    /// too. All interfaces at once (`any`), and the methods that pass packets on, never enable it.
    pub promiscuous: bool,
    /// Bytes of memory for the ring between kernel and process, or for queue and buffers where there is no ring.
    pub ring_bytes: usize,
    /// Cores of each lane; a lane is an acquiring and a converting thread. With several lanes, the kernel
    /// distributes packets by flow. They are merged in stamp order, except for packets later than
    /// [`MERGE_TIMEOUT`](crate::MERGE_TIMEOUT). The first entry also sets the consumer's core.
    pub lanes: Vec<Cores>,
    /// How the acquisition thread waits.
    pub wait: Wait,
    /// When the capture ends automatically.
    pub limit: Limit,
    /// A count of packets that this capture shares with others: with its last packet, the capture that delivers it requests
    /// its stop, which should be that of all. Later packets are [`Ledger::surplus`](crate::Ledger::surplus).
    pub shared_count: Option<SharedCount>,
    /// Whether the capture continues while the interface is down, until it is up again. Otherwise that is an error, as is
    /// its removal in any case.
    pub wait_for_interface: bool,
}

impl Config {
    /// A capture of whole packets on `interface` with the defaults of the command line. Cores are chosen for a
    /// process with one capture; see [`Cores::choose`] for more.
    #[must_use]
    pub fn new(interface: &str, method: Method, stamp: StampSource) -> Self {
        Self {
            interface: interface.to_owned(),
            method,
            stamp,
            snaplen: LARGEST_PACKET,
            filter: None,
            direction: Direction::default(),
            promiscuous: true,
            ring_bytes: match (method, stamp) {
                (Method::Ring, StampSource::Raw) => PER_FRAME_RING_BYTES,
                _ => RING_BYTES,
            },
            lanes: Cores::choose(1),
            wait: Wait::Block { realtime: false },
            limit: Limit::default(),
            shared_count: None,
            wait_for_interface: false,
        }
    }
}
