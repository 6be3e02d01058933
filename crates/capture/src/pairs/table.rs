//! The supported pairs, each with its texts.

use wirestamp_clock::Domain;

use super::{Pair, ReceiverKind};
use crate::bpf_program::Hook;
use crate::method::{Method, StampSource};

const IN_THE_STACK: &str = "by the kernel, where the packet enters the network stack";
const BY_THE_CARD: &str = "by the network card, on arrival; packets that it does not stamp, \
                           by the kernel";
const WHOLE_FRAMES: &str = "packets that the network card or the kernel merged (GRO) are cut to \
                            the interface's MTU";
const WHOLE_FRAMES_BY_THREAD: &str = "worth it with --spin and a core of its own: otherwise each stamp includes the wake-up latency \
     of a thread, and the wake-ups cost several times the CPU time of kernel stamps; packets that \
     the network card or the kernel merged (GRO) are cut to the interface's MTU";
const IN_THE_SOFTIRQ: &str = "in the driver's softIRQ, before the network stack";
/// Where a BPF program takes raw stamps.
pub(crate) const IN_THE_SOFTIRQ_BY_FUNCTION: &str =
    "in the driver's softIRQ, before the network stack, by a kernel function";
const BY_THE_CARD_OR_IN_THE_SOFTIRQ: &str = "by the network card, on arrival; packets that \
                                             it does not stamp, in the driver's softIRQ";
const TAKEN_FROM_THE_STACK: &str = "incoming packets only, and no other program on this machine \
                                    receives them; max 3840 bytes of each, or 1792 where the MTU is \
                                    max 1774; packets of several queues may be reordered";
const HEADS: &str = "incoming packets only; max 2048 bytes of each; without a VLAN tag that \
                     the network card removed";
const HEADS_OF_PACKETS: &str = "incoming packets only; max 2048 bytes of each; packets that are \
                                merged (GRO) or not yet segmented (GSO) are one, as in the \
                                network stack";
const TRACED: &str = "incoming packets only; max 2048 bytes of each; packets that are merged (GRO) or not yet \
                      segmented (GSO) are one, as in the network stack; packets that the kernel does not \
                      pass to tracing programs are stamped later, at tc ingress, with the monotonic clock, and \
                      counted: all packets of VLAN, macvlan and bond interfaces, and those that interrupt \
                      certain tasks";

/// All supported pairs; the first pair of a method has its default source.
pub const PAIRS: &[Pair] = &[
    Pair {
        method: Method::Ring,
        stamp: StampSource::Kernel,
        domain: Domain::Realtime,
        taken: IN_THE_STACK,
        limits: "",
        receiver: ReceiverKind::Blocks,
    },
    Pair {
        method: Method::Ring,
        stamp: StampSource::Raw,
        domain: Domain::Counter,
        taken: "by the acquisition thread, when it finds the packet in the ring",
        limits: WHOLE_FRAMES_BY_THREAD,
        receiver: ReceiverKind::PerFrame,
    },
    Pair {
        method: Method::Ring,
        stamp: StampSource::Hardware,
        domain: Domain::Nic,
        taken: BY_THE_CARD,
        limits: "",
        receiver: ReceiverKind::Blocks,
    },
    Pair {
        method: Method::Recvmsg,
        stamp: StampSource::Kernel,
        domain: Domain::Realtime,
        taken: IN_THE_STACK,
        limits: WHOLE_FRAMES,
        receiver: ReceiverKind::Recvmsg,
    },
    Pair {
        method: Method::Recvmsg,
        stamp: StampSource::Raw,
        domain: Domain::Counter,
        taken: "by the acquisition thread, when the call that received the packet has returned",
        limits: WHOLE_FRAMES_BY_THREAD,
        receiver: ReceiverKind::Recvmsg,
    },
    Pair {
        method: Method::Recvmsg,
        stamp: StampSource::Hardware,
        domain: Domain::Nic,
        taken: BY_THE_CARD,
        limits: WHOLE_FRAMES,
        receiver: ReceiverKind::Recvmsg,
    },
    Pair {
        method: Method::Recvmmsg,
        stamp: StampSource::Kernel,
        domain: Domain::Realtime,
        taken: IN_THE_STACK,
        limits: WHOLE_FRAMES,
        receiver: ReceiverKind::Recvmmsg,
    },
    Pair {
        method: Method::Recvmmsg,
        stamp: StampSource::Raw,
        domain: Domain::Counter,
        taken: "by the acquisition thread, once for all packets that a call received, when it \
                has returned",
        limits: WHOLE_FRAMES_BY_THREAD,
        receiver: ReceiverKind::Recvmmsg,
    },
    Pair {
        method: Method::Recvmmsg,
        stamp: StampSource::Hardware,
        domain: Domain::Nic,
        taken: BY_THE_CARD,
        limits: WHOLE_FRAMES,
        receiver: ReceiverKind::Recvmmsg,
    },
    Pair {
        method: Method::LibPcap,
        stamp: StampSource::Kernel,
        domain: Domain::Realtime,
        taken: IN_THE_STACK,
        limits: WHOLE_FRAMES,
        receiver: ReceiverKind::LibPcap,
    },
    Pair {
        method: Method::LibPcap,
        stamp: StampSource::Raw,
        domain: Domain::Counter,
        taken: "by the acquisition thread, when libpcap returns the packet",
        limits: WHOLE_FRAMES_BY_THREAD,
        receiver: ReceiverKind::LibPcap,
    },
    Pair {
        method: Method::Xdp,
        stamp: StampSource::Xdp,
        domain: Domain::Monotonic,
        taken: IN_THE_SOFTIRQ,
        limits: TAKEN_FROM_THE_STACK,
        receiver: ReceiverKind::AfXdp,
    },
    Pair {
        method: Method::Xdp,
        stamp: StampSource::Raw,
        domain: Domain::Counter,
        taken: "in the driver's softIRQ, before the network stack, where the kernel has a function \
                for that (kmod/README.md), otherwise by the acquisition thread, when it finds the \
                packet in the ring",
        limits: TAKEN_FROM_THE_STACK,
        receiver: ReceiverKind::AfXdp,
    },
    Pair {
        method: Method::Xdp,
        stamp: StampSource::Hardware,
        domain: Domain::Nic,
        taken: BY_THE_CARD_OR_IN_THE_SOFTIRQ,
        limits: TAKEN_FROM_THE_STACK,
        receiver: ReceiverKind::AfXdp,
    },
    Pair {
        method: Method::XdpPass,
        stamp: StampSource::Xdp,
        domain: Domain::Monotonic,
        taken: IN_THE_SOFTIRQ,
        limits: HEADS,
        receiver: ReceiverKind::Pass(Hook::Xdp),
    },
    Pair {
        method: Method::XdpPass,
        stamp: StampSource::Raw,
        domain: Domain::Counter,
        taken: IN_THE_SOFTIRQ_BY_FUNCTION,
        limits: HEADS,
        receiver: ReceiverKind::Pass(Hook::Xdp),
    },
    Pair {
        method: Method::XdpPass,
        stamp: StampSource::Hardware,
        domain: Domain::Nic,
        taken: BY_THE_CARD_OR_IN_THE_SOFTIRQ,
        limits: HEADS,
        receiver: ReceiverKind::Pass(Hook::Xdp),
    },
    Pair {
        method: Method::TcPass,
        stamp: StampSource::Tc,
        domain: Domain::Monotonic,
        taken: "in the softIRQ, where the packet enters the network stack",
        limits: HEADS_OF_PACKETS,
        receiver: ReceiverKind::Pass(Hook::Tc),
    },
    Pair {
        method: Method::TcPass,
        stamp: StampSource::Raw,
        domain: Domain::Counter,
        taken: "in the softIRQ, where the packet enters the network stack, by a kernel \
                function",
        limits: HEADS_OF_PACKETS,
        receiver: ReceiverKind::Pass(Hook::Tc),
    },
    Pair {
        method: Method::TracePass,
        stamp: StampSource::Trace,
        domain: Domain::Monotonic,
        taken: "in the softIRQ, at the tracepoint netif_receive_skb, where the packet enters the \
                network stack",
        limits: TRACED,
        receiver: ReceiverKind::Pass(Hook::Trace),
    },
    Pair {
        method: Method::TracePass,
        stamp: StampSource::Raw,
        domain: Domain::Counter,
        taken: "in the softIRQ, at the tracepoint netif_receive_skb, where the packet enters the \
                network stack, by a perf event",
        limits: TRACED,
        receiver: ReceiverKind::Pass(Hook::Trace),
    },
];
