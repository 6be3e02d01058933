//! Which reception method goes with which timestamp source. The table is data: the command line
//! prints it, and the pipeline opens what it says.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use wirestamp_clock::Domain;

use crate::Error;
use crate::bpf_program::Hook;

/// How packets get from the interface to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A ring that the kernel's packet socket shares with us
    /// (`Documentation/networking/packet_mmap.rst`).
    Ring,
    /// A packet socket from which each packet is fetched by a call of recvmsg(2).
    Recvmsg,
    /// A packet socket from which a call of recvmmsg(2) fetches what has arrived, up to 64 packets.
    Recvmmsg,
    /// The ring that libpcap keeps, from which it hands packets over: with raw stamps each at once
    /// (immediate mode), otherwise in blocks, as tcpdump has them.
    LibPcap,
    /// AF_XDP sockets: an XDP program takes each frame from the network stack and gives it to us
    /// (`Documentation/networking/af_xdp.rst`).
    Xdp,
    /// An XDP program that copies each frame's head to a BPF ring buffer and passes the frame on.
    XdpPass,
    /// The same by a tc program, which comes later and to which the kernel gives packets as they
    /// are: for the interfaces where it copies them for XDP.
    TcPass,
}

/// Which clock is read for a packet, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampSource {
    /// The kernel's real-time clock, read where the packet enters the network stack.
    Kernel,
    /// The CPU's counter, read by the acquisition thread when it finds the packet; with an XDP or
    /// tc program by that, in the softIRQ, where the kernel has a function for it
    /// ([`crate::capabilities::CounterFunction`]).
    Raw,
    /// The kernel's monotonic clock, read in the driver's softIRQ by an XDP program.
    Xdp,
    /// The kernel's monotonic clock, read in the softIRQ by a tc program, where the packet enters
    /// the network stack.
    Tc,
    /// The network card's clock, read by the card itself. What it did not stamp has the stamp of
    /// [`StampSource::Kernel`], with an XDP program that of [`StampSource::Xdp`], and is counted
    /// ([`crate::Ledger::stamped_late`]).
    ///
    /// Not with `libpcap`, which does not tell the one stamp from the other, nor with `tc-pass`:
    /// some drivers leave a pointer of their own in the stamp's place until a socket asks
    /// (`SKBTX_HW_TSTAMP_NETDEV` of linux/skbuff.h), which a program does not know from a time.
    Hardware,
}

/// A method, a source that it can stamp with, and what follows from the two.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The reception method.
    pub method: Method,
    /// The timestamp source.
    pub stamp: StampSource,
    /// The clock that the source reads.
    pub domain: Domain,
    /// Where on a packet's way up the clock is read.
    pub taken: &'static str,
    /// What of a packet is captured, where that is not everything up to the snap length.
    pub limits: &'static str,
    /// What is opened for it.
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
const BY_THE_CARD: &str = "by the network card, when the packet arrives; what it does not stamp, \
                           by the kernel";
const WHOLE_FRAMES: &str = "packets that the network card or the kernel joined (GRO) are cut to \
                            the interface's MTU";
const IN_THE_SOFTIRQ: &str = "in the driver's softIRQ, before the network stack";
/// Where a raw stamp is taken that the acquisition thread does not take.
pub(crate) const IN_THE_SOFTIRQ_BY_FUNCTION: &str =
    "in the driver's softIRQ, before the network stack, by a function of the kernel's";
const BY_THE_CARD_OR_IN_THE_SOFTIRQ: &str = "by the network card, when the packet arrives; what it \
                                             does not stamp, in the driver's softIRQ";
const TAKEN_FROM_THE_STACK: &str = "incoming packets only, which nothing else on this machine gets; \
                                    the first 3840 bytes of each at most, 1792 where the MTU is \
                                    no more than 1774; packets of several queues may change places";
const HEADS: &str = "incoming packets only; the first 2048 bytes of each at most; without a VLAN tag \
                     that the network card took out";
const HEADS_OF_PACKETS: &str = "incoming packets only; the first 2048 bytes of each at most; \
                                packets that are joined (GRO) or not yet cut apart (GSO) are one, \
                                as the network stack sees them";

/// Every pair that can be asked for; the first of a method is its default.
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
        limits: WHOLE_FRAMES,
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
        taken: "by the acquisition thread, when the call that fetched the packet has returned",
        limits: WHOLE_FRAMES,
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
        taken: "by the acquisition thread, once for all packets that a call fetched, when it has \
                returned",
        limits: WHOLE_FRAMES,
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
        taken: "by the acquisition thread, when libpcap hands the packet over",
        limits: WHOLE_FRAMES,
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
        taken: "in the softIRQ, where the packet enters the network stack, by a function of the \
                kernel's",
        limits: HEADS_OF_PACKETS,
        receiver: ReceiverKind::Pass(Hook::Tc),
    },
];

impl Pair {
    /// Checks that packets can be received in so many lanes.
    ///
    /// # Errors
    /// When there is none, or several are wanted of a method whose packets cannot be shared out.
    pub(crate) fn check_lanes(&self, lanes: usize) -> Result<(), Error> {
        match (lanes, self.method) {
            (2.., Method::Ring | Method::Recvmsg | Method::Recvmmsg | Method::LibPcap) | (1, _) => {
                Ok(())
            }
            (lanes, method) => Err(Error::Lanes { lanes, method: method.name() }),
        }
    }

    /// The clock of the kernel's stamp that a packet has where it should have a network card's.
    pub(crate) fn instead_of_card(&self) -> Domain {
        if self.method.runs_xdp() { Domain::Monotonic } else { Domain::Realtime }
    }
}

impl Method {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Recvmsg => "recvmsg",
            Self::Recvmmsg => "recvmmsg",
            Self::LibPcap => "libpcap",
            Self::Xdp => "xdp",
            Self::XdpPass => "xdp-pass",
            Self::TcPass => "tc-pass",
        }
    }

    /// Whether an XDP program handles the packets.
    pub(crate) fn runs_xdp(self) -> bool {
        matches!(self, Self::Xdp | Self::XdpPass)
    }

    /// Whether a program in the kernel handles them, XDP or not.
    pub(crate) fn runs_program(self) -> bool {
        self.runs_xdp() || self == Self::TcPass
    }

    /// Whether it can take what this machine sends: an XDP program, and a tc program at the ingress,
    /// sees only what arrives.
    #[must_use]
    pub fn takes_outgoing(self) -> bool {
        !self.runs_program()
    }

    /// The source used when none is asked for.
    #[must_use]
    pub fn default_stamp(self) -> StampSource {
        let mut pairs = PAIRS.iter();
        pairs.find(|pair| pair.method == self).expect("PAIRS has every method").stamp
    }
}

impl StampSource {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Raw => "raw",
            Self::Xdp => "xdp",
            Self::Tc => "tc",
            Self::Hardware => "hardware",
        }
    }

    /// The clock that the stamp's value is read from.
    #[must_use]
    pub fn domain(self) -> Domain {
        let mut pairs = PAIRS.iter();
        pairs.find(|pair| pair.stamp == self).expect("PAIRS has every source").domain
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for StampSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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

/// What is called `name` among the members that `member` takes from each pair.
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
/// When the method cannot stamp that way; the error names what it can do.
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
    fn a_method_without_a_stamp_gets_the_first_of_its_rows() {
        assert_eq!(Method::Ring.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::Recvmsg.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::Recvmmsg.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::LibPcap.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::Xdp.default_stamp(), StampSource::Xdp);
        assert_eq!(Method::XdpPass.default_stamp(), StampSource::Xdp);
        assert_eq!(Method::TcPass.default_stamp(), StampSource::Tc);
    }

    #[test]
    fn a_source_reads_one_clock_whatever_the_method() {
        for pair in PAIRS {
            assert_eq!(pair.stamp.domain(), pair.domain, "{} {}", pair.method, pair.stamp);
        }
    }

    #[test]
    fn every_name_is_understood_and_an_unknown_one_told_apart() {
        for pair in PAIRS {
            assert_eq!(pair.method.name().parse::<Method>().unwrap(), pair.method);
            assert_eq!(pair.stamp.name().parse::<StampSource>().unwrap(), pair.stamp);
        }
        let error = "rong".parse::<Method>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no method rong; choose among libpcap, recvmmsg, recvmsg, ring, tc-pass, xdp, \
             xdp-pass"
        );
        let error = "Raw".parse::<StampSource>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no timestamp source Raw; choose among hardware, kernel, raw, tc, xdp"
        );
    }

    #[test]
    fn an_impossible_pair_names_what_is_possible() {
        let error = pair(Method::Ring, StampSource::Xdp).unwrap_err();
        assert_eq!(
            error.to_string(),
            "method ring has no xdp stamps; it has kernel, raw, hardware"
        );
    }
}
