//! The table of reception methods and their timestamp sources. The command line prints it, and captures are opened
//! by it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use wirestamp_clock::Domain;

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

impl Method {
    /// The source used by default.
    #[must_use]
    pub fn default_stamp(self) -> StampSource {
        let mut pairs = PAIRS.iter();
        pairs.find(|pair| pair.method == self).expect("PAIRS has every method").stamp
    }
}

impl StampSource {
    /// Clock domain of the stamps.
    #[must_use]
    pub fn domain(self) -> Domain {
        let mut pairs = PAIRS.iter();
        pairs.find(|pair| pair.stamp == self).expect("PAIRS has every source").domain
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        named("method", name, |pair| pair.method)
    }
}

impl FromStr for StampSource {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        named("timestamp source", name, |pair| pair.stamp)
    }
}

/// Parses `name` as one of the members that `member` takes from each pair.
fn named<T: fmt::Display>(
    what: &'static str,
    name: &str,
    member: fn(&Pair) -> T,
) -> Result<T, Error> {
    PAIRS.iter().map(member).find(|found| found.to_string() == name).ok_or_else(|| {
        let names: BTreeSet<_> = PAIRS.iter().map(|pair| member(pair).to_string()).collect();
        let known = Vec::from_iter(names).join(", ");
        Error::NoSuchName { what, name: name.to_owned(), known }
    })
}

/// The pair of `method` and `stamp`.
///
/// # Errors
/// The method does not support this source; the error lists those that it supports.
pub fn pair(method: Method, stamp: StampSource) -> Result<&'static Pair, Error> {
    PAIRS.iter().find(|pair| pair.method == method && pair.stamp == stamp).ok_or_else(|| {
        let of_method: Vec<_> =
            PAIRS.iter().filter(|p| p.method == method).map(|p| p.stamp.name()).collect();
        Error::NoSuchPair {
            method: method.to_string(),
            stamp: stamp.to_string(),
            alternatives: of_method.join(", "),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_source_is_first_of_method() {
        assert_eq!(Method::Ring.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::Recvmsg.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::Recvmmsg.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::LibPcap.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::Xdp.default_stamp(), StampSource::Xdp);
        assert_eq!(Method::XdpPass.default_stamp(), StampSource::Xdp);
        assert_eq!(Method::TcPass.default_stamp(), StampSource::Tc);
        assert_eq!(Method::TracePass.default_stamp(), StampSource::Trace);
    }

    #[test]
    fn source_has_same_clock_in_every_method() {
        for pair in PAIRS {
            assert_eq!(pair.stamp.domain(), pair.domain, "{} {}", pair.method, pair.stamp);
        }
    }

    #[test]
    fn every_name_parses_and_unknown_names_fail() {
        for pair in PAIRS {
            assert_eq!(pair.method.name().parse::<Method>().unwrap(), pair.method);
            assert_eq!(pair.stamp.name().parse::<StampSource>().unwrap(), pair.stamp);
        }
        let error = "rong".parse::<Method>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no method is called rong; choose one of libpcap, recvmmsg, recvmsg, ring, tc-pass, \
             trace-pass, xdp, xdp-pass"
        );
        let error = "Raw".parse::<StampSource>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no timestamp source is called Raw; choose one of hardware, kernel, raw, tc, trace, xdp"
        );
    }

    #[test]
    fn unsupported_pair_lists_supported_sources() {
        let error = pair(Method::Ring, StampSource::Xdp).unwrap_err();
        assert_eq!(
            error.to_string(),
            "method ring has no xdp stamps; it has kernel, raw, hardware"
        );
    }
}
