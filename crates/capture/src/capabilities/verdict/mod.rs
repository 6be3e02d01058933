//! Which pairs of method and stamp the facts about an interface allow.

use std::fmt::Write as _;

use super::{Capabilities, CardStamps, CounterFunction, Privileges};
use crate::af_xdp::CAPABILITIES as XDP;
use crate::interface::is_ethernet;
use crate::method::{IN_THE_SOFTIRQ_BY_FUNCTION, Method, PAIRS, Pair, StampSource};
use crate::pass::CAPABILITIES as PASS;

/// Where an XDP program's stamp is taken on an interface whose driver has no XDP.
pub(crate) const STACK_WITHOUT_XDP: &str = "in the network stack, because the driver has no XDP";

/// Where the raw stamp of a packet is taken that an XDP program hands over, but cannot stamp.
pub(crate) const THREAD_WITHOUT_FUNCTION: &str = "by the acquisition thread, when it finds the packet in the ring, because no XDP program can read \
     the counter here";

/// The first kernel that attaches an XDP program for as long as a descriptor is open, as a BPF link
/// (`BPF_XDP` of bpf_attach_type, linux/bpf.h).
const XDP_LINKS: (u32, u32) = (5, 9);
/// The first kernel that attaches a tc program as a BPF link (`BPF_TCX_INGRESS` of bpf_attach_type,
/// linux/bpf.h).
pub(super) const TCX_LINKS: (u32, u32) = (6, 6);
/// The first kernel whose programs can ask for the network card's stamp
/// (`Documentation/networking/xdp-rx-metadata.rst`, Linux 6.3) and take packets in several pieces
/// (`bpf_prog_dev_bound_init` of kernel/bpf/offload.c, Linux 6.7). Ours do both.
const XDP_METADATA: (u32, u32) = (6, 7);

/// Why an interface cannot do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Only Ethernet frames are captured. The type is `ARPHRD_*` of linux/if_arp.h.
    #[error("it is no Ethernet interface (hardware type {0})")]
    NotEthernet(u16),
    /// No packets arrive.
    #[error("it is down; `ip link set up` brings it up")]
    Down,
    /// Capabilities that this process lacks, as setcap(8) writes them.
    #[error("this process lacks privileges: run it with sudo, or grant it {0} with setcap")]
    Privileges(&'static str),
    /// The kernel's version, and the first that can do it.
    #[error("Linux {}.{} is too old; {}.{} can do it", .has.0, .has.1, .needs.0, .needs.1)]
    Kernel {
        /// What is running.
        has: (u32, u32),
        /// What it takes.
        needs: (u32, u32),
    },
    /// The id of an XDP program that has the interface to itself.
    #[error("XDP program {0} runs on it already; `bpftool net` and `bpftool link` say whose it is")]
    XdpProgram(u32),
    /// The network card does not stamp what arrives.
    #[error("its network card stamps no packets")]
    NoCardStamps,
    /// The network card stamps a few packets only.
    #[error("its network card stamps only packets that synchronise clocks")]
    OnlySomeCardStamps,
    /// Nothing can relate the network card's stamps to system time.
    #[error("its network card has no clock that could be compared with system time")]
    NoCardClock,
    /// XDP and tc programs cannot read the CPU's counter.
    #[error(
        "this kernel has no function that reads the counter for BPF programs: load the module \
         wirestamp, as kmod/README.md says"
    )]
    NoCounterFunction,
    /// Raw stamps are of the counter of this name, which XDP and tc programs cannot read.
    #[error(
        "raw stamps are of the counter {0} here, which BPF programs cannot read; `wirestamp clock` \
         says why it was chosen"
    )]
    OtherCounter(&'static str),
    /// XDP programs cannot ask for the network card's stamp.
    #[error("its driver gives XDP programs no stamps of the network card")]
    NoXdpStamps,
}

/// Where `pair` takes its stamps on an interface with these capabilities.
///
/// # Errors
/// Why it cannot be had there.
pub fn verdict(pair: &Pair, of: &Capabilities) -> Result<&'static str, Obstacle> {
    require(is_ethernet(of.kind), || Obstacle::NotEthernet(of.kind))?;
    require(of.up, || Obstacle::Down)?;
    let without_xdp = of.xdp.is_some_and(|xdp| !xdp.in_driver);
    let taken = match pair.method {
        Method::Ring | Method::Recvmsg | Method::Recvmmsg | Method::LibPcap => {
            require(of.privileges.net_raw, || Obstacle::Privileges("cap_net_raw"))?;
            pair.taken
        }
        Method::Xdp | Method::XdpPass => {
            let capabilities = if pair.method == Method::Xdp { XDP } else { PASS };
            xdp_program(of, capabilities)?;
            match (pair.stamp, counter_function(of.counter_function, of.privileges)) {
                (StampSource::Raw, Err(obstacle)) => thread_stamps(pair.method, obstacle)?,
                (StampSource::Xdp | StampSource::Raw, _) if without_xdp => STACK_WITHOUT_XDP,
                (StampSource::Raw, Ok(_)) => IN_THE_SOFTIRQ_BY_FUNCTION,
                _ => pair.taken,
            }
        }
        Method::TcPass => {
            tc_program(of)?;
            if pair.stamp == StampSource::Raw {
                counter_function(of.counter_function, of.privileges)?;
            }
            pair.taken
        }
    };
    match pair.stamp {
        StampSource::Kernel | StampSource::Raw | StampSource::Xdp | StampSource::Tc => Ok(taken),
        StampSource::Hardware => card_stamps(pair.method, of).map(|()| taken),
    }
}

/// Whether the network card's own stamps can be had with `method` on an interface with these
/// capabilities.
///
/// # Errors
/// Why not.
pub fn card_stamps(method: Method, of: &Capabilities) -> Result<(), Obstacle> {
    require(of.stamping.clock.is_some(), || match of.stamping.card {
        CardStamps::Nothing => Obstacle::NoCardStamps,
        _ => Obstacle::NoCardClock,
    })?;
    match of.stamping.card {
        CardStamps::Nothing => return Err(Obstacle::NoCardStamps),
        CardStamps::SomePackets => return Err(Obstacle::OnlySomeCardStamps),
        CardStamps::AllPackets => {}
    }
    if method.runs_xdp() {
        let needs = XDP_METADATA;
        require(of.kernel >= needs, || Obstacle::Kernel { has: of.kernel, needs })?;
        let given = of.xdp.is_some_and(|xdp| xdp.in_driver && xdp.card_stamps);
        require(given, || Obstacle::NoXdpStamps)?;
    }
    require(of.privileges.net_admin, || Obstacle::Privileges("cap_net_admin"))
}

/// Whether a program can read the CPU's counter, of which this `function` was found.
///
/// # Errors
/// Why not.
pub(super) fn counter_function(
    function: Option<CounterFunction>,
    privileges: Privileges,
) -> Result<CounterFunction, Obstacle> {
    let function = function.ok_or(Obstacle::NoCounterFunction)?;
    let allowed = function == CounterFunction::Kernel || privileges.sys_admin;
    require(allowed, || Obstacle::Privileges("cap_sys_admin"))?;
    Ok(function)
}

/// Where raw stamps are taken if the XDP program cannot, which has this `obstacle`.
///
/// # Errors
/// The obstacle, where nobody else can.
fn thread_stamps(method: Method, obstacle: Obstacle) -> Result<&'static str, Obstacle> {
    if method == Method::Xdp { Ok(THREAD_WITHOUT_FUNCTION) } else { Err(obstacle) }
}

/// Whether an XDP program of ours can be attached.
fn xdp_program(of: &Capabilities, capabilities: &'static str) -> Result<(), Obstacle> {
    program(of, capabilities, XDP_LINKS)?;
    of.xdp_program.map_or(Ok(()), |id| Err(Obstacle::XdpProgram(id)))
}

/// Whether a tc program of ours can be attached: beside any others.
///
/// # Errors
/// Why not.
pub(super) fn tc_program(of: &Capabilities) -> Result<(), Obstacle> {
    program(of, PASS, TCX_LINKS)
}

/// Whether a program can be loaded for a method that takes these `capabilities`, and attached as a
/// link that came with the kernel `needs`.
fn program(
    of: &Capabilities,
    capabilities: &'static str,
    needs: (u32, u32),
) -> Result<(), Obstacle> {
    require(of.privileges.include(capabilities), || Obstacle::Privileges(capabilities))?;
    require(of.kernel >= needs, || Obstacle::Kernel { has: of.kernel, needs })
}

/// Whether the kernel copies packets that TCP sends over such an interface before an XDP program
/// sees them, because TCP keeps them for itself until they are acknowledged: on a veth
/// (`veth_convert_skb_to_xdp_buff` of drivers/net/veth.c), and where the network stack runs the
/// program (`netif_skb_check_for_xdp` of net/core/dev.c).
pub(super) fn copies_for_xdp(of: &Capabilities) -> bool {
    of.driver.as_deref() == Some("veth") || of.xdp.is_some_and(|xdp| !xdp.in_driver)
}

fn require(met: bool, obstacle: impl FnOnce() -> Obstacle) -> Result<(), Obstacle> {
    if met { Ok(()) } else { Err(obstacle()) }
}

/// The pairs that can be had, as words: `ring (kernel, raw), recvmsg (kernel, raw)`.
pub(super) fn alternatives(of: &Capabilities) -> String {
    let possible: Vec<_> = PAIRS.iter().filter(|pair| verdict(pair, of).is_ok()).collect();
    let mut words = String::new();
    for pairs in possible.chunk_by(|a, b| a.method == b.method) {
        let stamps: Vec<_> = pairs.iter().map(|pair| pair.stamp.name()).collect();
        let separator = if words.is_empty() { "" } else { ", " };
        let _ = write!(words, "{separator}{} ({})", pairs[0].method, stamps.join(", "));
    }
    words
}

#[cfg(test)]
mod tests;
