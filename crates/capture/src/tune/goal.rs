//! Requirements of a capture on the machine.

use wirestamp_clock::Counter;

use crate::Config;
use crate::affinity::Cores;
use crate::capabilities::counter_function;
use crate::method::StampSource;
use crate::pairs::{Pair, ReceiverKind};
use crate::pipeline::Wait;

/// Requirements that follow from the capture's configuration.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    /// Cores of each lane's threads.
    pub(super) lanes: Vec<Cores>,
    /// Whether the softIRQ takes the stamp, before the acquisition thread.
    pub(super) stamped_in_softirq: bool,
    /// Whether frames are taken before the kernel can merge them.
    pub(super) taken_before_gro: bool,
    /// Whether the acquisition thread never sleeps.
    pub(super) spins: bool,
    /// Whether it polls the driver itself, instead of waiting for the interrupt.
    pub(super) busy_polls: bool,
    /// Whether real-time priority is requested.
    pub(super) realtime: bool,
}

impl Goal {
    pub(super) fn of(config: &Config, pair: &Pair) -> Self {
        Self {
            lanes: config.lanes.clone(),
            stamped_in_softirq: pair.stamp != StampSource::Raw
                || pair.method.runs_program() && counter_function(Counter::select()).is_ok(),
            taken_before_gro: pair.method.runs_xdp(),
            spins: config.wait == Wait::Spin,
            busy_polls: config.wait == Wait::Spin && busy_polls(pair.receiver),
            realtime: config.wait == Wait::Block { realtime: true },
        }
    }

    /// The cores that its threads are pinned to.
    pub(super) fn cores(&self) -> Vec<usize> {
        let of_lane = |lane: &Cores| [lane.acquire, lane.convert, lane.consume];
        self.lanes.iter().flat_map(of_lane).flatten().collect()
    }
}

/// Whether a spinning receiver thread runs the driver's poll function, as an AF_XDP socket with
/// `SO_PREFER_BUSY_POLL` does (`Documentation/networking/napi.rst`, "Busy polling").
fn busy_polls(receiver: ReceiverKind) -> bool {
    match receiver {
        ReceiverKind::Blocks
        | ReceiverKind::PerFrame
        | ReceiverKind::Recvmsg
        | ReceiverKind::Recvmmsg
        | ReceiverKind::LibPcap
        | ReceiverKind::Pass(_) => false,
        ReceiverKind::AfXdp => true,
    }
}
