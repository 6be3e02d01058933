//! Obstacles: why a pair of method and stamp is not available.

/// Why an interface does not support something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Only Ethernet frames and plain IP packets are captured. The type is `ARPHRD_*` of linux/if_arp.h.
    #[error("it has neither Ethernet frames nor plain IP packets (hardware type {0})")]
    UnknownLink(u16),
    /// This method captures only Ethernet frames.
    #[error("its packets have no Ethernet header; use ring, recvmsg, recvmmsg or libpcap")]
    NotEthernet,
    /// This pair captures only frames with their link header.
    #[error("its packets are captured without their link header; use ring with kernel stamps")]
    WithoutLinkHeader,
    /// No packets arrive.
    #[error("it is down; `ip link set up` brings it up")]
    Down,
    /// Capabilities that this process lacks, as setcap(8) writes them.
    #[error("this process lacks privileges: run it with sudo, or grant {0} with setcap")]
    Privileges(&'static str),
    /// The kernel is older than the first version that supports it.
    #[error("Linux {}.{} is too old; it needs {}.{} or newer", .has.0, .has.1, .needs.0, .needs.1)]
    Kernel {
        /// Version of the running kernel.
        has: (u32, u32),
        /// First version that supports it.
        needs: (u32, u32),
    },
    /// Id of an XDP program that occupies the interface.
    #[error("XDP program {0} is attached to it; `bpftool net` and `bpftool link` list its owner")]
    XdpProgram(u32),
    /// The network card does not stamp received packets.
    #[error("its network card stamps no packets")]
    NoCardStamps,
    /// The network card stamps only some packets.
    #[error("its network card stamps only packets that synchronise clocks (PTP)")]
    OnlySomeCardStamps,
    /// No clock relates the network card's stamps to system time.
    #[error("its network card has no clock that can be compared with system time")]
    NoCardClock,
    /// XDP and tc programs cannot read the CPU's counter.
    #[error(
        "this kernel has no function that reads the counter for BPF programs: load the module \
         wirestamp (kmod/README.md)"
    )]
    NoCounterFunction,
    /// Tracing programs cannot read the CPU's counter.
    #[error("this kernel has no perf event of the counter (PMU msr, event tsc)")]
    NoCounterEvent,
    /// Raw stamps use the counter of this name, which BPF programs cannot read.
    #[error(
        "raw stamps are of the counter {0}, which BPF programs cannot read; `wirestamp clock` \
         reports why it was chosen"
    )]
    OtherCounter(&'static str),
    /// XDP programs cannot read the network card's stamp.
    #[error("its driver does not support network card stamps in XDP programs")]
    NoXdpStamps,
}
