//! Which pairs of method and stamp an interface supports, by its capabilities.

use std::fmt::Write as _;

use wirestamp_packet::LinkType;

use super::{Capabilities, CardStamps, CounterFunction, Obstacle, Privileges};
use crate::af_xdp::CAPABILITIES as XDP;
use crate::interface::link;
use crate::method::{Method, StampSource};
use crate::pairs::{IN_THE_SOFTIRQ_BY_FUNCTION, PAIRS, Pair};
use crate::pass::CAPABILITIES as PASS;

/// Where an XDP program stamps on an interface whose driver does not support XDP.
pub(crate) const STACK_WITHOUT_XDP: &str = "in the network stack, because the driver has no XDP";

/// Where raw stamps are taken if the XDP program cannot read the counter.
pub(crate) const THREAD_WITHOUT_FUNCTION: &str = "by the acquisition thread, when it finds the packet in the ring, because \
                                                   XDP programs cannot read the counter here";

/// First kernel that attaches an XDP program as a BPF link, until its descriptor is closed (`BPF_XDP` of
/// bpf_attach_type, linux/bpf.h).
const XDP_LINKS: (u32, u32) = (5, 9);
/// First kernel that attaches a tc program as a BPF link (`BPF_TCX_INGRESS` of bpf_attach_type, linux/bpf.h).
pub(super) const TCX_LINKS: (u32, u32) = (6, 6);
/// First kernel whose programs can read the network card's stamp (`Documentation/networking/xdp-rx-metadata.rst`,
/// Linux 6.3) and receive packets in several pieces (`bpf_prog_dev_bound_init` of kernel/bpf/offload.c, Linux 6.7).
/// wirestamp's programs do both.
const XDP_METADATA: (u32, u32) = (6, 7);

/// Where `pair` takes its stamps on an interface with these capabilities.
///
/// # Errors
/// The obstacle, if the pair is not supported.
pub fn verdict(pair: &Pair, of: &Capabilities) -> Result<&'static str, Obstacle> {
    let link = link(of.kind).ok_or(Obstacle::UnknownLink(of.kind))?;
    let adds_header = matches!((pair.method, pair.stamp), (Method::Ring, StampSource::Kernel));
    require(adds_header || link != LinkType::LinuxCooked2, || Obstacle::WithoutLinkHeader)?;
    let is_ethernet = link == LinkType::Ethernet;
    require(is_ethernet || !pair.method.runs_program(), || Obstacle::NotEthernet)?;
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
        Method::TracePass => {
            tc_program(of)?;
            // The network stack would run it between the two programs of this method, and may drop packets there.
            let between = of.xdp_program.filter(|_| without_xdp);
            between.map_or(Ok(()), |id| Err(Obstacle::XdpProgram(id)))?;
            let readable = pair.stamp != StampSource::Raw || of.counter_event;
            require(readable, || Obstacle::NoCounterEvent)?;
            pair.taken
        }
    };
    match pair.stamp {
        StampSource::Hardware => card_stamps(pair.method, of).map(|()| taken),
        _ => Ok(taken),
    }
}

/// Whether the network card's stamps are available with `method` on an interface with these capabilities.
///
/// # Errors
/// The obstacle.
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

/// Whether a program can read the CPU's counter, with the `function` that was found.
///
/// # Errors
/// The obstacle.
pub(super) fn counter_function(
    function: Option<CounterFunction>,
    privileges: Privileges,
) -> Result<CounterFunction, Obstacle> {
    let function = function.ok_or(Obstacle::NoCounterFunction)?;
    let allowed = function == CounterFunction::Kernel || privileges.sys_admin;
    require(allowed, || Obstacle::Privileges("cap_sys_admin"))?;
    Ok(function)
}

/// Where raw stamps are taken if the XDP program has this `obstacle`.
///
/// # Errors
/// The obstacle, if the acquisition thread cannot stamp either.
fn thread_stamps(method: Method, obstacle: Obstacle) -> Result<&'static str, Obstacle> {
    if method == Method::Xdp { Ok(THREAD_WITHOUT_FUNCTION) } else { Err(obstacle) }
}

/// Whether an XDP program can be attached.
fn xdp_program(of: &Capabilities, capabilities: &'static str) -> Result<(), Obstacle> {
    program(of, capabilities, XDP_LINKS)?;
    of.xdp_program.map_or(Ok(()), |id| Err(Obstacle::XdpProgram(id)))
}

/// Whether a tc program can be attached, in addition to any others.
///
/// # Errors
/// The obstacle.
pub(super) fn tc_program(of: &Capabilities) -> Result<(), Obstacle> {
    program(of, PASS, TCX_LINKS)
}

/// Whether a program can be loaded with these `capabilities`, and attached as a link, which requires the kernel
/// `needs`.
fn program(
    of: &Capabilities,
    capabilities: &'static str,
    needs: (u32, u32),
) -> Result<(), Obstacle> {
    require(of.privileges.include(capabilities), || Obstacle::Privileges(capabilities))?;
    require(of.kernel >= needs, || Obstacle::Kernel { has: of.kernel, needs })
}

/// Whether the kernel copies packets sent by TCP over such an interface before an XDP program receives them,
/// because TCP keeps them until they are acknowledged: on a veth (`veth_convert_skb_to_xdp_buff` of
/// drivers/net/veth.c), and where the network stack runs the program (`netif_skb_check_for_xdp` of net/core/dev.c).
pub(super) fn copies_for_xdp(of: &Capabilities) -> bool {
    of.driver.as_deref() == Some("veth") || of.xdp.is_some_and(|xdp| !xdp.in_driver)
}

fn require(met: bool, obstacle: impl FnOnce() -> Obstacle) -> Result<(), Obstacle> {
    if met { Ok(()) } else { Err(obstacle()) }
}

/// The supported pairs, as text: `ring (kernel, raw), recvmsg (kernel, raw)`.
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
