//! Reception methods and timestamp sources.

use strum::{Display, IntoStaticStr, VariantNames};

/// Reception method: how packets get from the interface to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Method {
    /// A packet socket's ring, shared with the kernel (`Documentation/networking/packet_mmap.rst`).
    Ring,
    /// A packet socket; each recvmsg(2) returns one packet.
    Recvmsg,
    /// A packet socket; each recvmmsg(2) returns the packets that have arrived, max 64.
    Recvmmsg,
    /// The ring of libpcap. With raw stamps, libpcap returns each packet at once (immediate mode); otherwise in
    /// blocks, as in tcpdump.
    #[strum(serialize = "libpcap")]
    LibPcap,
    /// AF_XDP sockets: an XDP program redirects each frame to this process (`Documentation/networking/af_xdp.rst`),
    /// and the network stack does not receive it.
    Xdp,
    /// An XDP program that copies the head of each frame to a BPF ring buffer and passes the frame (XDP_PASS).
    XdpPass,
    /// A tc program that does the same later in the receive path, on the kernel's packets (`sk_buff`). For interfaces
    /// where the kernel copies packets for XDP.
    TcPass,
    /// As [`Method::TcPass`], but a program at the tracepoint `netif_receive_skb`, shortly before, stamps. It can read
    /// the CPU's counter without a kernel module.
    TracePass,
}

/// Timestamp source: which clock stamps a packet, and where it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum StampSource {
    /// The kernel's real-time clock, read where the packet enters the network stack.
    Kernel,
    /// The CPU's counter. The acquisition thread reads it when it finds the packet. An XDP or tc program reads it
    /// in the softIRQ, where the kernel has a function for that ([`crate::capabilities::CounterFunction`]); a tracing
    /// program, where the kernel has a perf event of the counter.
    Raw,
    /// The kernel's monotonic clock, read in the driver's softIRQ by an XDP program.
    Xdp,
    /// The kernel's monotonic clock, read in the softIRQ by a tc program, where the packet enters
    /// the network stack.
    Tc,
    /// The kernel's monotonic clock, read in the softIRQ by a program at the tracepoint `netif_receive_skb`, where
    /// the packet enters the network stack.
    Trace,
    /// The network card's clock, read by the card. Packets that the card did not stamp have the stamp of
    /// [`StampSource::Kernel`], or with an XDP program that of [`StampSource::Xdp`], and are counted
    /// ([`crate::Ledger::stamped_late`]).
    ///
    /// Not with `libpcap`, which does not distinguish the two stamps. Not with `tc-pass` and `trace-pass`: some
    /// drivers store a pointer in the stamp's place until a socket requests stamps (`SKBTX_HW_TSTAMP_NETDEV` of linux/skbuff.h),
    /// and a program cannot distinguish it from a time.
    Hardware,
}

impl Method {
    /// The names of all methods.
    #[must_use]
    pub const fn names() -> &'static [&'static str] {
        Self::VARIANTS
    }

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether an XDP program receives the packets.
    pub(crate) fn runs_xdp(self) -> bool {
        matches!(self, Self::Xdp | Self::XdpPass)
    }

    /// Whether a BPF program receives the packets, XDP or tc.
    pub(crate) fn runs_program(self) -> bool {
        self.runs_xdp() || matches!(self, Self::TcPass | Self::TracePass)
    }

    /// Whether the method captures outgoing packets. XDP programs and tc programs at the ingress see only incoming
    /// ones.
    #[must_use]
    pub fn takes_outgoing(self) -> bool {
        !self.runs_program()
    }
}

impl StampSource {
    /// The names of all timestamp sources.
    #[must_use]
    pub const fn names() -> &'static [&'static str] {
        Self::VARIANTS
    }

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}
