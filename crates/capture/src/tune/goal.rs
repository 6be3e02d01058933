//! What a capture needs of the machine.

use wirestamp_clock::Counter;

use crate::Config;
use crate::affinity::Cores;
use crate::capabilities::counter_function;
use crate::method::{Pair, ReceiverKind, StampSource};
use crate::pipeline::Wait;

/// What follows for the machine from what is asked of a capture.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    /// Where the threads of each lane run.
    pub(super) lanes: Vec<Cores>,
    /// Whether the stamp is taken by the softIRQ, before the acquisition thread has any part in it.
    pub(super) stamped_in_softirq: bool,
    /// Whether frames are taken before the kernel can join them.
    pub(super) taken_before_gro: bool,
    /// Whether the acquisition thread never sleeps.
    pub(super) spins: bool,
    /// Whether it has the driver look for packets itself, in place of the interrupt.
    pub(super) busy_polls: bool,
    /// Whether real-time priority was asked for.
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

    /// The cores that its threads are tied to.
    pub(super) fn cores(&self) -> Vec<usize> {
        let of_lane = |lane: &Cores| [lane.acquire, lane.convert, lane.consume];
        self.lanes.iter().flat_map(of_lane).flatten().collect()
    }
}

/// Whether a receiver whose thread spins makes the driver's poll function run, as an AF_XDP socket
/// with `SO_PREFER_BUSY_POLL` does (`Documentation/networking/napi.rst`, "Busy polling").
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
